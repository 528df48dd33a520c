//! `caulk run --guard`: one life of the command after the other, until it is done or restarts do not help.

use std::ffi::OsString;
use std::thread;

use anyhow::{Context, anyhow, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Bytes;
use caulk_guard::{Checkpoint, Decision, End, Life, Lives, Resume, choose};
use caulk_supervise::{Checkpoints, GpuBudget, Guarded, Guarding, Options, Outcome, Restarts};

use super::run::live;
use crate::alarms::Thresholds;
use crate::cli::RunArgs;
use crate::printer::Printer;
use crate::recorder::Recorder;
use crate::settings::Budget;
use crate::{assemble, target};

/// Without `--budget`, this share of what there is.
const USUAL: Budget = Budget::Share(0.9);

/// What all lives have in common.
struct Plan {
    resume: Option<Resume>,
    guarding: Guarding,
}

/// Runs the command until it needs no further life; returns where that is recorded, and how the last one ended.
///
/// # Errors
/// Options that make no sense, and what keeps a life from starting.
pub(crate) fn run(
    args: &RunArgs,
    mut options: Options,
    recorder: Recorder,
    printer: Printer,
) -> anyhow::Result<(Utf8PathBuf, Outcome)> {
    let mut plan = match Plan::of(args, &options) {
        Ok(plan) => plan,
        Err(error) => {
            recorder.discard();
            return Err(error);
        }
    };
    let mut lives = Lives::new(args.guard.max_restarts);
    let mut used: Option<Checkpoint> = None;
    let run = recorder.folder().to_owned();
    let mut recorder = Some(recorder);
    for number in 1.. {
        let before = plan.guarding.checkpoints.newest();
        options.guard = Some(plan.guarding.clone());
        let recorder = match recorder.take() {
            Some(recorder) => recorder,
            None => next_recorder(args, &options.command, &run, number, printer)?,
        };
        let (_, outcome) = live(&options, recorder)?;
        let Some(guarded) = outcome.guarded.clone() else { return Ok((run, outcome)) };
        plan.guarding.checkpoints = guarded.checkpoints.clone();
        plan.guarding.later = true;
        let life = plan.life(&guarded, before.as_ref(), used.as_ref());
        let decision = lives.after(life);
        let found = plan.guarding.checkpoints.find();
        let Some((pause, older)) = announce(decision, printer) else { return Ok((run, outcome)) };
        used = choose(&found, used.as_ref().filter(|_| older)).cloned();
        options.command = plan.command(args, used.as_ref()).context("there is nothing to go on with")?;
        if let Some(cause) = cause(&outcome, guarded.end) {
            printer.guard(&cause);
        }
        printer.guard(&started_again(number, &options.command, pause.as_secs()));
        thread::sleep(pause);
    }
    unreachable!("the numbers of lives do not end")
}

/// Says why no further life follows, or how the next one begins: its pause, and whether it takes an older checkpoint.
fn announce(decision: Decision, printer: Printer) -> Option<(std::time::Duration, bool)> {
    match decision {
        Decision::Restart { pause, older } => return Some((pause, older)),
        Decision::Over => {}
        Decision::GiveUp(restarts) => printer.guard(&format!(
            "gives up: {restarts} restart{} in a row without progress (--max-restarts)",
            if restarts == 1 { "" } else { "s" }
        )),
        Decision::NothingToResume => {
            printer.guard("does not start it again: there is no checkpoint to go on from");
        }
    }
    None
}

/// Why the program has ended, where it was not the guard that ended it.
fn cause(outcome: &Outcome, end: End) -> Option<String> {
    let text = &outcome.death.text;
    match end {
        End::Killed => Some(format!("the program was killed: it {text}")),
        End::OutOfMemory => Some(format!("the program ran out of memory: it {text}")),
        End::Failed => Some(format!("the program did not come to its first step: it {text}")),
        End::Stopped | End::Finished | End::DoesNotFit | End::Told => None,
    }
}

fn started_again(number: u32, command: &[OsString], pause_s: u64) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let pause = if pause_s > 0 { format!(" in {pause_s} s") } else { String::new() };
    format!("restart {number}{pause}: {}", words.join(" "))
}

fn next_recorder(
    args: &RunArgs,
    command: &[OsString],
    run: &Utf8Path,
    number: u32,
    printer: Printer,
) -> anyhow::Result<Recorder> {
    let folder = assemble::life_folder(run, number);
    Ok(Recorder::create(
        &folder,
        target::describe(command)?,
        args.budget,
        Thresholds::of(&args.alarms),
        printer,
    )?)
}

impl Plan {
    fn of(args: &RunArgs, options: &Options) -> anyhow::Result<Self> {
        let guard = &args.guard;
        let resume = guard.resume_cmd.as_deref().map(Resume::parse).transpose().context("--resume-cmd")?;
        let checkpoints = checkpoints(guard.checkpoint.as_deref(), &args.command)?;
        let restarts = match (&resume, checkpoints.pattern()) {
            (Some(resume), None) if !resume.needs_checkpoint() => Restarts::Always,
            (None, None) => Restarts::Never,
            _ => Restarts::FromCheckpoint,
        };
        let guarding = Guarding {
            budget: budget(args, options)?,
            gpu_budget: guard.gpu_budget.map(|budget| match budget {
                Budget::Bytes(bytes) => GpuBudget::Bytes(bytes),
                Budget::Share(share) => GpuBudget::Share(share),
            }),
            checkpoints,
            later: false,
            restarts,
            grace: guard.grace.0,
        };
        Ok(Self { resume, guarding })
    }

    /// What the next life depends on. `before`: the newest checkpoint at this life's start; `used`: the one it began with.
    fn life(&self, guarded: &Guarded, before: Option<&Checkpoint>, used: Option<&Checkpoint>) -> Life {
        let checkpoints = &self.guarding.checkpoints;
        let found = checkpoints.find();
        let newest = choose(&found, None);
        let newer = newest.is_some_and(|newest| Some(newest) != before);
        Life {
            end: guarded.end,
            progressed: if checkpoints.are_known() { newer } else { guarded.epochs > 0 },
            stepped: guarded.stepped,
            has_older: used.is_some_and(|used| choose(&found, Some(used)).is_some()),
            resumable: match self.guarding.restarts {
                Restarts::Never => false,
                Restarts::Always => true,
                Restarts::FromCheckpoint => newest.is_some(),
            },
        }
    }

    fn command(&self, args: &RunArgs, checkpoint: Option<&Checkpoint>) -> Option<Vec<OsString>> {
        let Some(resume) = &self.resume else { return Some(args.command.clone()) };
        let words = resume.words(checkpoint.map(|checkpoint| checkpoint.path.as_str()))?;
        Some(words.into_iter().map(OsString::from).collect())
    }
}

/// The budget in bytes; `%` is of the nearest of the control group's limit and the machine's memory.
fn budget(args: &RunArgs, options: &Options) -> anyhow::Result<u64> {
    let physical = target::memory();
    let all = caulk_supervise::cgroup_room(options).map_or(physical, |(limit, _)| limit.min(physical));
    let budget = args.budget.unwrap_or(USUAL).of(all);
    if budget > all {
        bail!(
            "the budget of {} is more than there is\nhint: the limit here is {}; write for example --budget 90%",
            Bytes(budget),
            Bytes(all)
        );
    }
    Ok(budget)
}

/// The pattern is taken from the root on: the program may change its directory.
fn checkpoints(pattern: Option<&str>, command: &[OsString]) -> anyhow::Result<Checkpoints> {
    let Some(pattern) = pattern else { return Ok(Checkpoints::default()) };
    let here = std::env::current_dir().context("failed to find the working directory")?;
    let path = here.join(pattern).into_os_string();
    let path = path
        .into_string()
        .map_err(|path| anyhow!("--checkpoint: `{}` is not UTF-8", path.to_string_lossy()))?;
    Checkpoints::matching(Some(path), command).map_err(|problem| {
        anyhow!(
            "--checkpoint: `{pattern}` is no pattern: {problem}\nhint: write for example 'runs/*/last.ckpt'"
        )
    })
}
