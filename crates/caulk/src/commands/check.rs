//! `caulk check`: find code that keeps memory alive.

use std::io::Read;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_report::check::{self, CheckReport};
use caulk_source::absolute;

use crate::check::baseline::{self, BaselineError, Known};
use crate::check::{Buffers, Collected, Project, STDIN, targets};
use crate::cli::{CheckArgs, OutputFormat};
use crate::exit;
use crate::printer::{self, Printer};

/// Checks and prints what was found.
///
/// # Errors
/// If a path is not there, settings cannot be used, or the findings cannot be written.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<i32> {
    let directory = directory()?;
    let (paths, buffers) = input(args, &directory)?;
    let mut collected = Collected::default();
    for project in targets(&directory, &paths, &args.rules, &args.files, &buffers)? {
        let mut outcome = project.check();
        if let Some(known) = known(args, &directory, &project)? {
            let on_disk = |file: &str| project.names.on_disk(file);
            collected.report.known += known.take_out(&mut outcome.diagnostics, on_disk);
        }
        collected.add(&project, outcome);
    }
    let mut report = collected.report;
    report.sort();
    if let Some(path) = &args.baseline.write_baseline {
        return remember(&report, path, &directory);
    }
    printer::data(&render(&report, args)).context("failed to write to standard output")?;
    Ok(code(&report))
}

/// The baseline of a project: of the command line, else of its settings.
fn known(args: &CheckArgs, directory: &Utf8Path, project: &Project) -> Result<Option<Known>, BaselineError> {
    if args.baseline.write_baseline.is_some() {
        return Ok(None);
    }
    let own = args.baseline.baseline.as_ref().map(|file| absolute(directory, file));
    own.or_else(|| project.settings.baseline.clone()).map(|path| Known::read(&path)).transpose()
}

fn remember(report: &CheckReport, path: &Utf8Path, directory: &Utf8Path) -> anyhow::Result<i32> {
    baseline::write(&absolute(directory, path), &report.findings, |file| absolute(directory, file.into()))?;
    let number = report.findings.len();
    let findings = if number == 1 { "1 finding".to_owned() } else { format!("{number} findings") };
    Printer::new(false)
        .say(&format!("Wrote {findings} to `{path}`; `--baseline {path}` reports what is new.\n"));
    Ok(exit::SUCCESS)
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
    std::io::stdin().read_to_end(&mut bytes).context("failed to read standard input")?;
    let name = args.files.stdin_filename.as_deref().unwrap_or(STDIN.into());
    let path = absolute(directory, name);
    let paths = if path.exists() { vec![path.clone()] } else { Vec::new() };
    Ok((paths, Buffers::from([(path, bytes)])))
}

fn render(report: &CheckReport, args: &CheckArgs) -> String {
    let options = printer::data_options();
    match args.output_format {
        OutputFormat::Json if args.statistics => check::statistics_json(report),
        _ if args.statistics => check::statistics(report),
        OutputFormat::Text => check::text(report, &options, args.quiet),
        OutputFormat::Concise => check::concise(report, &options, args.quiet),
        OutputFormat::Json => check::json(report),
        OutputFormat::Sarif => check::sarif(report),
        OutputFormat::Github => check::github(report),
        OutputFormat::Gitlab => check::gitlab(report),
    }
}

fn code(report: &CheckReport) -> i32 {
    if report.fails() {
        exit::FOUND
    } else if report.files == 0 && !report.problems.is_empty() {
        exit::UNUSABLE
    } else {
        exit::SUCCESS
    }
}
