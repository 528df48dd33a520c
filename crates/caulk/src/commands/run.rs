//! `caulk run`: start a command, record it, and explain it at its end, whatever that is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_report::{Report, TextOptions};
use caulk_supervise::Outcome;

use super::live::live;
use super::{KEPT_REPORT, guarded, metrics, recording};
use crate::cli::{PERIOD, RunArgs, RunFormat};
use crate::plan::{self, Document};
use crate::printer::{self, Printer};
use crate::recorder::Recorded;
use crate::settings::Boundary;
use crate::{assemble, exit, files, lives, target};

/// Runs the command; the result is the exit code to end with.
///
/// # Errors
/// What keeps the command from starting. Once it has run, nothing but its own end decides.
pub(crate) fn run(args: &RunArgs, printer: Printer) -> anyhow::Result<i32> {
    for path in args.report.iter().chain(&args.report_json) {
        files::check(path)?;
    }
    let plan = args.apply.as_deref().map(plan::read).transpose()?;
    if let Some(own) = plan.as_ref().and_then(Document::left_to_the_program) {
        printer.note(&format!("the plan is applied to loaders alone; set in the program: {own}"));
    }
    if plan.as_ref().is_some_and(|plan| plan.setting().is_empty()) {
        printer.note("the plan sets nothing of a loader: the program runs as it is");
    }
    let mut options = options(args, plan.as_ref());
    // Taken before anything is recorded or started.
    let metrics = args.metrics.map(|address| metrics::bind(address, args.metrics_public)).transpose()?;
    let recorder = recording::begin(args, printer)?;
    options.metrics = match metrics.map(|bound| metrics::serve(bound, recorder.id(), printer)).transpose() {
        Ok(exporter) => exporter,
        Err(error) => {
            recorder.discard();
            return Err(error);
        }
    };
    let (lives, outcome) = if args.guard.guard {
        guarded::run(args, options, recorder, printer)?
    } else {
        let (recorded, outcome) = live(&options, recorder)?;
        (vec![recorded], outcome)
    };
    Ok(explain(args, lives, &outcome, printer))
}

/// The Python package to look in with, unless the user wants none.
fn package(args: &RunArgs) -> Option<Utf8PathBuf> {
    let exe = std::env::current_exe().ok().filter(|_| !args.no_agent)?;
    caulk_supervise::find_package(&exe)
}

/// The heap sampler that goes with the package, unless the user wants none.
fn sampler(args: &RunArgs, package: Option<&Utf8Path>) -> Option<Utf8PathBuf> {
    let exe = std::env::current_exe().ok().filter(|_| !args.no_heap)?;
    caulk_supervise::find_sampler(package?, &exe)
}

pub(super) fn options(args: &RunArgs, plan: Option<&Document>) -> caulk_supervise::Options {
    let mut options = caulk_supervise::Options::new(args.command.clone());
    options.package = package(args);
    options.sampler = sampler(args, options.package.as_deref());
    options.precise = args.precise;
    options.outside_only = args.no_agent;
    options.progress = args.progress.into();
    options.period = PERIOD;
    if args.quiet && args.progress == crate::cli::Progress::Auto {
        options.progress = caulk_supervise::Progress::None;
    }
    options.budget = args.budget.map(|budget| budget.of(target::memory()));
    let settings = args.boundary.map(Boundary::setting).into_iter();
    let everywhere = if args.apply_everywhere { ",everywhere:1" } else { "" };
    let plan = plan.filter(|plan| !plan.setting().is_empty());
    let apply = plan.map(|plan| format!("apply={}{everywhere}", plan.setting()));
    let settings: Vec<String> = settings.chain(args.trim.then(|| "trim=1".into())).chain(apply).collect();
    options.agent_settings = settings.join(";");
    options
}

/// Judges what was recorded and shows it. Nothing that goes wrong here is the command's fault, so all of it is a
/// warning.
fn explain(args: &RunArgs, lives: Vec<Recorded>, outcome: &Outcome, printer: Printer) -> i32 {
    let folder = lives.first().and_then(Recorded::folder).map(Utf8Path::to_owned);
    let judged = catch_unwind(AssertUnwindSafe(|| assemble::ended(lives)));
    let report = match judged {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => {
            printer.warn_of(&error.context("the run cannot be explained"), None);
            return outcome.exit_code;
        }
        Err(_) => {
            let kept = folder.map_or_else(String::new, |folder| format!("; `{folder}` is complete"));
            printer.warn(&format!(
                "the run cannot be explained: caulk failed on its recording\nhint: please report it{kept}"
            ));
            return outcome.exit_code;
        }
    };
    if let Err(error) = deliver(args, folder.as_deref(), &report, printer) {
        printer.warn_of(&error, None);
    }
    exit::after_run(outcome.exit_code, args.fail_on_leak && report.leak_found())
}

/// Brings the report to wherever it was asked for; tries every place before it fails. A text for which there is no room
/// is shown.
fn deliver(
    args: &RunArgs,
    folder: Option<&Utf8Path>,
    report: &Report,
    printer: Printer,
) -> anyhow::Result<()> {
    let json = caulk_report::json(report);
    if let Some(folder) = folder {
        // Lists can do without; a recording that cannot be written was warned of already.
        let _ = caulk_record::write_file(&folder.join(KEPT_REPORT), json.as_bytes());
    }
    let mut results: Vec<anyhow::Result<()>> = Vec::new();
    if let Some(path) = &args.report_json {
        results.push(files::write(path, &json).map_err(Into::into));
    }
    let text = |options| caulk_report::text(report, &TextOptions { full: args.full, ..options });
    let show = || printer.say(&text(printer.options()));
    match (&args.report, args.format) {
        (Some(path), RunFormat::Report(format)) => {
            let options = TextOptions { full: args.full, ..printer::file_options() };
            let result = files::write(path, caulk_report::run_in(report, format.into(), &options));
            results.push(result.map_err(Into::into).inspect_err(|_| show()));
        }
        (Some(path), RunFormat::Pprof) => {
            show();
            results.push(profile(folder, path));
        }
        (None, _) => show(),
    }
    results.into_iter().collect::<Result<(), _>>().context("a report is missing")
}

/// Writes the heap profile of the life by which the report judges memory.
fn profile(folder: Option<&Utf8Path>, path: &Utf8Path) -> anyhow::Result<()> {
    let folder = folder.context("a profile is made from a recording, and this run has none")?;
    let life = lives::folder(folder, assemble::judged_life(folder)?);
    Ok(files::write(path, assemble::profile(&life)?)?)
}
