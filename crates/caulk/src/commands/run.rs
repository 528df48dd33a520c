//! `caulk run`: start a command, record it, and explain it at its end, whatever that is.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_report::Report;
use caulk_supervise::Outcome;
use jiff::Zoned;

use super::{KEPT_REPORT, guarded};
use crate::alarms::Thresholds;
use crate::cli::{PERIOD, RunArgs};
use crate::places::Places;
use crate::plan::{self, Document};
use crate::printer::{self, Printer};
use crate::recorder::Recorder;
use crate::settings::Boundary;
use crate::{assemble, exit, files, target};

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
    let options = options(args, plan.as_ref());
    let recorder = recorder(args, printer)?;
    let (folder, outcome) = if args.guard.guard {
        guarded::run(args, options, recorder, printer)?
    } else {
        live(&options, recorder)?
    };
    Ok(explain(args, &folder, &outcome, printer))
}

/// Runs the command once, from its start to its end, and returns where that is recorded.
///
/// # Errors
/// If it could not be started; then nothing is recorded.
pub(crate) fn live(
    options: &caulk_supervise::Options,
    mut recorder: Recorder,
) -> anyhow::Result<(Utf8PathBuf, Outcome)> {
    match caulk_supervise::run(options, &mut recorder) {
        Ok(outcome) => Ok((recorder.finish(&outcome), outcome)),
        Err(error) => {
            recorder.discard();
            Err(error.into())
        }
    }
}

/// A recording in the folder that the user wants it in, or in the first of the usual places that takes it.
fn recorder(args: &RunArgs, printer: Printer) -> anyhow::Result<Recorder> {
    let target = target::describe(&args.command)?;
    let create = |folder: &Utf8Path| {
        Recorder::create(folder, target.clone(), args.budget, Thresholds::of(&args.alarms), printer)
    };
    if let Some(folder) = &args.output {
        return Ok(create(folder)?);
    }
    let (name, now) = (target::name(&args.command), Zoned::now());
    let places = Places::here();
    let mut refusal = None;
    for home in [&places.home].into_iter().chain(&places.spare) {
        let made = caulk_record::new_run_folder(home, &name, &now).and_then(|folder| {
            // A folder that takes no file is of no use to anybody.
            create(&folder).inspect_err(|_| drop(fs::remove_dir_all(&folder)))
        });
        match (made, refusal) {
            (Ok(recorder), None) => return Ok(recorder),
            (Ok(recorder), Some(refused)) => {
                let place = format!("this run is recorded in `{}`", recorder.folder());
                printer.warn_of(&anyhow::Error::new(refused).context(place), None);
                return Ok(recorder);
            }
            (Err(error), before) => refusal = before.or(Some(error)),
        }
    }
    Err(refusal.context("there is no place for a recording")?.into())
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

fn options(args: &RunArgs, plan: Option<&Document>) -> caulk_supervise::Options {
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
fn explain(args: &RunArgs, folder: &Utf8Path, outcome: &Outcome, printer: Printer) -> i32 {
    let judged = catch_unwind(AssertUnwindSafe(|| assemble::report(folder)));
    let report = match judged {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => {
            printer.warn_of(&error.context("the run cannot be explained"), None);
            return outcome.exit_code;
        }
        Err(_) => {
            printer.warn(&format!(
                "the run cannot be explained: caulk failed on its recording\nhint: please report it; `{folder}` is \
                 complete"
            ));
            return outcome.exit_code;
        }
    };
    if let Err(error) = deliver(args, folder, &report, printer) {
        printer.warn_of(&error, None);
    }
    exit::after_run(outcome.exit_code, args.fail_on_leak && report.leak_found())
}

/// Brings the report to wherever it was asked for; tries every place before it fails.
fn deliver(args: &RunArgs, folder: &Utf8Path, report: &Report, printer: Printer) -> anyhow::Result<()> {
    let json = caulk_report::json(report);
    // Lists can do without; a recording that cannot be written has been told of already.
    let _ = files::write(&folder.join(KEPT_REPORT), &json);
    let mut results = Vec::new();
    if let Some(path) = &args.report_json {
        results.push(files::write(path, &json));
    }
    match &args.report {
        Some(path) => results.push(files::write(path, caulk_report::text(report, &printer::file_options()))),
        None => printer.say(&caulk_report::text(report, &printer.options())),
    }
    results.into_iter().collect::<Result<(), _>>().context("a report is missing")
}
