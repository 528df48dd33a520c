//! `caulk check`: find code that keeps memory alive.

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{Applicability, LeakClass, no_command, written_out};
use caulk_report::check::{self as formats, CheckReport, FixSummary};
use caulk_source::absolute;

use crate::check::baseline::{self, BaselineError, Known};
use crate::check::observed::Observed;
use crate::check::silence;
use crate::check::spot::Spot;
use crate::check::watch::Watch;
use crate::check::{Buffers, Changes, Collected, Project, STDIN, targets};
use crate::cli::{CheckArgs, ReportFormat};
use crate::exit;
use crate::places::Places;
use crate::printer::{self, Printer};

/// Most that is taken from standard input, in bytes; it is more than a file may be.
const LONGEST: u64 = 256 << 20;

/// Checks and prints what was found.
///
/// # Errors
/// If a path is not there, settings cannot be used, or the findings cannot be written.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<i32> {
    // A defect of caulk is no finding: it must not end as one.
    catch_unwind(AssertUnwindSafe(|| check(args))).unwrap_or_else(|_| {
        Err(anyhow::anyhow!("caulk failed on this code; see above\nhint: `--exclude` leaves a file out; please report the message"))
    })
}

fn check(args: &CheckArgs) -> anyhow::Result<i32> {
    let directory = directory()?;
    if let Some(spot) = &args.explain_silence {
        return explain(args, &directory, spot);
    }
    if args.watch {
        return watch(args, &directory);
    }
    let (paths, buffers) = input(args, &directory)?;
    let projects = targets(&directory, &paths, &args.rules, &args.files, &buffers)?;
    match args.fixes.most() {
        Some(most) => fix(args, &directory, projects, &buffers, most),
        None => find(args, &directory, &projects),
    }
}

/// Checks again whenever a file changes, until the user has seen enough.
fn watch(args: &CheckArgs, directory: &Utf8Path) -> anyhow::Result<i32> {
    const FAILED: &str =
        "failed to watch the project's folders\nhint: name fewer paths, or raise fs.inotify.max_user_watches";
    let mut watch = Watch::new().context(FAILED)?;
    loop {
        let projects = targets(directory, &args.paths, &args.rules, &args.files, &Buffers::new())?;
        // What is looked at was read when its folder was watched already: no change falls in between.
        if watch.add(&projects).context(FAILED)? {
            continue;
        }
        printer::clear().context("failed to write to standard output")?;
        find(args, directory, &projects)?;
        Printer::new(args.quiet).say("\nWaiting for changes; Ctrl-C ends.\n");
        watch.wait();
    }
}

/// Explains one line within the projects of a check; if its file is no part of them, within the file's own project.
fn explain(args: &CheckArgs, directory: &Utf8Path, spot: &Spot) -> anyhow::Result<i32> {
    let look = |paths: &[Utf8PathBuf]| targets(directory, paths, &args.rules, &args.files, &Buffers::new());
    let mut projects = look(&args.paths)?;
    projects.retain(|project| silence::knows(project, directory, spot));
    if projects.is_empty() {
        projects = look(std::slice::from_ref(&spot.file))?;
    }
    projects.truncate(1);
    let mut out = String::new();
    for project in projects {
        let said = silence::explain(&project, directory, spot)?;
        let said: Vec<String> = said.iter().map(|line| no_command(&written_out(line)).into_owned()).collect();
        out.push_str(&said.join("\n  "));
        out.push('\n');
    }
    data(&out)?;
    Ok(exit::SUCCESS)
}

fn find(args: &CheckArgs, directory: &Utf8Path, projects: &[Project]) -> anyhow::Result<i32> {
    let mut collected = Collected::default();
    for project in projects {
        let known = known(args, directory, project)?;
        let look = if args.files.no_cache { Project::check } else { Project::check_cached };
        collected.add(project, look(project, known.as_ref()));
    }
    if let Some(run) = &args.with {
        Observed::read(&Places::here().resolve(run)?)?.join(&mut collected.report, directory);
    }
    let mut report = collected.finish();
    if let Some(path) = &args.baseline.write_baseline {
        remember(&report, path, directory)?;
        say_unread(&report);
        return Ok(if report.incomplete { exit::UNUSABLE } else { exit::SUCCESS });
    }
    hide_hints(&mut report, args);
    data(&render(&report, args))?;
    if args.statistics || args.format == ReportFormat::Gitlab {
        say_unread(&report);
    }
    Ok(code(&report))
}

/// Says which files were not looked at, where the output has no room for that.
fn say_unread(report: &CheckReport) {
    for problem in &report.unread {
        Printer::new(false).warn(&formats::place_and_message(problem, &report.cells));
    }
}

/// Applies fixes, or shows what they would change, and reports what is left.
fn fix(
    args: &CheckArgs,
    directory: &Utf8Path,
    projects: Vec<Project>,
    buffers: &Buffers,
    most: Applicability,
) -> anyhow::Result<i32> {
    let mut collected = Collected::default();
    let mut applied: BTreeMap<LeakClass, usize> = BTreeMap::new();
    let (mut out, mut any, mut failed) = (String::new(), false, false);
    for mut project in projects {
        let known = known(args, directory, &project)?;
        let mut changes = Changes::make(&mut project, directory, most, known.as_ref());
        any |= changes.any();
        if args.fixes.diff {
            out.push_str(&changes.diff());
        } else if buffers.is_empty() {
            changes.write(&mut project, known.as_ref());
        } else {
            out.push_str(&standard_input(&project, &changes, buffers));
        }
        for (class, number) in changes.applied() {
            *applied.entry(class).or_default() += number;
        }
        failed |= changes.failed;
        let report = &mut collected.report;
        report.problems.append(&mut changes.problems);
        report.problems.extend(changes.left.iter().cloned());
        report.left.append(&mut changes.left);
        collected.add(&project, changes.found);
    }
    let mut report = collected.finish();
    let applied = applied.into_iter().collect();
    report.fixed = Some(FixSummary { applied, only_shown: args.fixes.diff });
    hide_hints(&mut report, args);
    if args.fixes.diff {
        data(&out)?;
        let summary = formats::summary(&report, &printer::file_options());
        Printer::new(args.quiet).say(&summary);
        let code = if any { exit::FOUND } else { exit::SUCCESS };
        return Ok(if report.incomplete { exit::UNUSABLE } else { code });
    }
    if buffers.is_empty() {
        data(&render(&report, args))?;
    } else {
        data(&out)?;
        Printer::new(false).say(&render(&report, args));
    }
    Ok(if failed { exit::UNUSABLE } else { code(&report) })
}

/// What came from standard input, fixed.
fn standard_input(project: &Project, changes: &Changes, buffers: &Buffers) -> String {
    let own = project.documents.values().filter(|document| buffers.contains_key(&document.path));
    let text = |document: &caulk_source::Document| {
        let changed = changes.text(&document.path).map(str::to_owned);
        changed.or_else(|| document.with(&document.text)).unwrap_or_default()
    };
    own.map(text).collect()
}

/// The baseline of a project: of the command line, else of its settings.
fn known(args: &CheckArgs, directory: &Utf8Path, project: &Project) -> Result<Option<Known>, BaselineError> {
    if args.baseline.write_baseline.is_some() {
        return Ok(None);
    }
    let own = args.baseline.baseline.as_ref().map(|file| absolute(directory, file));
    own.or_else(|| project.settings.baseline.clone()).map(|path| Known::read(&path)).transpose()
}

fn remember(report: &CheckReport, path: &Utf8Path, directory: &Utf8Path) -> anyhow::Result<()> {
    let on_disk = |file: &str| absolute(directory, file.into());
    baseline::write(directory, &absolute(directory, path), &report.findings, on_disk)?;
    let number = report.findings.len();
    let findings = if number == 1 { "1 finding".to_owned() } else { format!("{number} findings") };
    Printer::new(false)
        .say(&format!("Wrote {findings} to `{path}`; `--baseline {path}` reports what is new.\n"));
    Ok(())
}

/// The working directory.
pub(crate) fn directory() -> anyhow::Result<Utf8PathBuf> {
    let directory = std::env::current_dir().context("failed to find the working directory")?;
    Utf8PathBuf::from_path_buf(directory)
        .map_err(|path| anyhow::anyhow!("the working directory `{}` is not UTF-8", path.display()))
}

/// What to look at: paths, or standard input as the buffer of a file.
fn input(args: &CheckArgs, directory: &Utf8Path) -> anyhow::Result<(Vec<Utf8PathBuf>, Buffers)> {
    if args.paths != ["-"] {
        return Ok((args.paths.clone(), Buffers::new()));
    }
    let mut bytes = Vec::new();
    std::io::stdin().take(LONGEST).read_to_end(&mut bytes).context("failed to read standard input")?;
    let name = args.files.stdin_filename.as_deref().unwrap_or(STDIN.into());
    let path = absolute(directory, name);
    let paths = if path.exists() { vec![path.clone()] } else { Vec::new() };
    Ok((paths, Buffers::from([(path, bytes)])))
}

fn data(text: &str) -> anyhow::Result<()> {
    printer::data(text).context("failed to write to standard output")
}

/// Leaves out hints unless the user asked for them; programs get everything.
fn hide_hints(report: &mut CheckReport, args: &CheckArgs) {
    if !args.info && args.format != ReportFormat::Json {
        report.hide_hints();
    }
}

fn render(report: &CheckReport, args: &CheckArgs) -> String {
    let options = printer::data_options();
    match args.format {
        ReportFormat::Json if args.statistics => formats::statistics_json(report),
        _ if args.statistics => formats::statistics(report),
        format => caulk_report::check_in(report, format.into(), &options, args.quiet),
    }
}

fn code(report: &CheckReport) -> i32 {
    if report.incomplete {
        exit::UNUSABLE
    } else if report.fails() {
        exit::FOUND
    } else {
        exit::SUCCESS
    }
}
