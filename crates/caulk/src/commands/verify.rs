//! `caulk verify`: run a command, or take a recorded run, and check its memory against a checklist.

use std::fs;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Recording;
use caulk_report::{Outlook, Report, outlook};
use caulk_verify::{Checklist, Grade, MemoryAnswer, Observed, Verification, verify};

use super::live::live;
use super::run::options;
use super::{KEPT_REPORT, recording, resumed};
use crate::cli::{RunArgs, VerifyArgs};
use crate::places::Places;
use crate::printer::{self, Printer};
use crate::{assemble, exit, files, lives, target};

/// Number of the signal of Ctrl-C, and the exit code after it.
const INTERRUPT: i32 = 2;

/// A run with its report.
struct Run {
    recording: Recording,
    report: Report,
    folder: Option<Utf8PathBuf>,
    restarted: Option<bool>,
}

/// Checks a run; the result is the exit code to end with.
///
/// # Errors
/// A wrong checklist, no such run, what keeps the command from starting, and results that cannot be written.
pub(crate) fn run(args: &VerifyArgs, printer: Printer) -> anyhow::Result<i32> {
    if args.print_checklist {
        printer::data(Checklist::usual()).context("failed to write to standard output")?;
        return Ok(exit::SUCCESS);
    }
    let checklist = checklist(args.checklist.as_deref())?;
    for path in [&args.json, &args.junit, &args.markdown, &args.html].into_iter().flatten() {
        files::check(path)?;
    }
    let mut run = match &args.from {
        Some(name) => recorded(name, printer)?,
        None => started(args, printer)?,
    };
    if let Some(budget) = args.budget {
        run.recording.info.limits.budget_bytes = Some(budget.of(target::memory()));
    }
    let verification = checked(&run.recording, &run.report, run.restarted, &checklist);
    deliver(args, &run, &verification, printer)?;
    let death = run.recording.info.death.as_ref();
    if death.is_some_and(|death| death.signal == Some(INTERRUPT) || death.code == Some(exit::INTERRUPTED)) {
        return Ok(exit::INTERRUPTED);
    }
    Ok(code(&verification))
}

/// Checks a run that was judged.
pub(crate) fn checked(
    recording: &Recording,
    report: &Report,
    restarted: Option<bool>,
    checklist: &Checklist,
) -> Verification {
    let memory = match outlook(&report.verdicts) {
        Outlook::Grows(verdict) => MemoryAnswer::Grows(verdict),
        Outlook::GrowsWithin(verdict) => MemoryAnswer::GrowsWithin(verdict),
        Outlook::Retains(verdict) | Outlook::MapsFiles(verdict) => MemoryAnswer::Retains(verdict),
        Outlook::Undecided(verdict) => MemoryAnswer::Undecided(verdict),
        Outlook::Steady(verdict) => MemoryAnswer::Steady(verdict),
        Outlook::Unknown => MemoryAnswer::Unknown,
    };
    let observed = Observed {
        recording,
        memory,
        verdicts: &report.verdicts,
        findings: &report.findings,
        gpus: &report.gpus,
        ending: report.ending.as_ref(),
        epochs: report.summary.epochs,
        restarted,
    };
    verify(&observed, checklist)
}

fn code(verification: &Verification) -> i32 {
    match verification.grade() {
        Grade::Fail if verification.command_failed() => exit::COMMAND_FAILED,
        Grade::Fail => exit::FOUND,
        Grade::Undecided => exit::UNDECIDED,
        Grade::Pass | Grade::NotApplicable => exit::SUCCESS,
    }
}

fn checklist(file: Option<&Utf8Path>) -> anyhow::Result<Checklist> {
    let Some(file) = file else { return Ok(Checklist::default()) };
    let text = fs::read_to_string(file).with_context(|| format!("failed to read checklist `{file}`"))?;
    Checklist::read(&text).with_context(|| format!("checklist `{file}` is wrong"))
}

/// A run that was recorded before: the life by which its report judges memory.
fn recorded(name: &str, printer: Printer) -> anyhow::Result<Run> {
    let places = Places::here();
    places.warn(printer);
    let run = places.resolve(name)?;
    let folder = lives::folder(&run, assemble::judged_life(&run)?);
    let recording = caulk_record::read(&folder)?;
    let report = assemble::judged(&recording, Some(&folder));
    Ok(Run { recording, report, folder: Some(run), restarted: None })
}

/// Runs the command, and `--resume-cmd` if it is given.
fn started(args: &VerifyArgs, printer: Printer) -> anyhow::Result<Run> {
    let mut usual = RunArgs::of(&args.command);
    usual.budget = args.budget;
    usual.boundary = args.boundary;
    usual.output.clone_from(&args.output);
    let mut options = options(&usual, None);
    options.epochs = args.epochs;
    let trial = resumed::Trial::of(args)?;
    let (recorded, _) = live(&options, recording::begin(&usual, printer)?)?;
    let folder = recorded.folder().map(Utf8Path::to_owned);
    let recording = recorded.read()?;
    let report = assemble::judged(&recording, folder.as_deref());
    if let Some(folder) = &folder {
        // Lists can do without.
        let _ = caulk_record::write_file(&folder.join(KEPT_REPORT), caulk_report::json(&report).as_bytes());
    }
    let restarted =
        trial.map(|trial| trial.goes_on(&usual, &options, &recording.info.id, printer)).transpose()?;
    Ok(Run { recording, report, folder, restarted })
}

/// Writes the results to the files that were named, and the text to standard error, where a command of the user's has its own
/// standard output.
fn deliver(
    args: &VerifyArgs,
    run: &Run,
    verification: &Verification,
    printer: Printer,
) -> anyhow::Result<()> {
    let folder = run.folder.as_ref().map_or("", |_| run.report.folder.as_str());
    if args.from.is_some() {
        let text = caulk_report::verification_text(verification, &printer::data_options());
        printer::data(&text).context("failed to write to standard output")?;
    } else {
        printer.say(&caulk_report::verification_text(verification, &printer.options()));
        if !folder.is_empty() {
            printer.note(&format!("`caulk report {folder}` explains the run"));
        }
    }
    if let Some(path) = &args.json {
        files::write(path, caulk_report::verification_json(verification, folder))?;
    }
    if let Some(path) = &args.junit {
        let name = target::name(&args.command);
        let seconds = run.report.summary.duration_s;
        files::write(path, caulk_report::verification_junit(verification, &name, seconds))?;
    }
    if let Some(path) = &args.markdown {
        files::write(path, caulk_report::verification_markdown(verification))?;
    }
    if let Some(path) = &args.html {
        files::write(path, caulk_report::verification_html(verification, &run.report, !args.no_source))?;
    }
    Ok(())
}
