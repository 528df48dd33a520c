//! `caulk run --guard`: one life of the command after the other, until it is done or restarts do not help.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use camino::Utf8Path;
use caulk_core::Bytes;
use caulk_guard::{Checkpoint, Decision, End, EndedLife, Lives, Resume, choose};
use caulk_supervise::{Checkpoints, GpuBudget, Guarded, Guarding, HardLimit, Options, Outcome, Restarts};

use super::live::live;
use super::recording;
use crate::brief::joined;
use crate::cli::RunArgs;
use crate::printer::Printer;
use crate::recorder::{Recorded, Recorder};
use crate::settings::Budget;
use crate::target;

/// Without `--budget`, this share of what there is.
const USUAL: Budget = Budget::Share(0.9);

/// The lives of a run: what they have in common, and what the last one has left.
struct Series<'a> {
    args: &'a RunArgs,
    printer: Printer,
    lives: Lives,
    resume: Option<Resume>,
    guarding: Guarding,
    /// The newest checkpoint when the last life began, and the one that it began with.
    before: Option<Checkpoint>,
    used: Option<Checkpoint>,
}

/// How it goes on.
struct Next {
    command: Vec<OsString>,
    pause: Duration,
}

/// Runs the command until it needs no further life; returns what was recorded of all, and how the last one ended.
///
/// # Errors
/// Options that make no sense, and what keeps the first life from starting.
pub(crate) fn run(
    args: &RunArgs,
    mut options: Options,
    recorder: Recorder,
    printer: Printer,
) -> anyhow::Result<(Vec<Recorded>, Outcome)> {
    let (folder, id) = (recorder.folder().map(Utf8Path::to_owned), recorder.id().to_owned());
    let mut series = match Series::of(args, &options, &id, printer) {
        Ok(series) => series,
        Err(error) => {
            recorder.discard();
            return Err(error);
        }
    };
    let (recorded, mut outcome) = series.live(&mut options, recorder)?;
    let mut recorded = vec![recorded];
    for number in 2.. {
        let Some(next) = series.next(&outcome) else { break };
        printer.guard(&next.text(number - 1));
        if !caulk_supervise::pause(next.pause)? {
            printer.guard("told to end from outside: does not start it again");
            break;
        }
        options.command = next.command;
        let recorder = recording::begin_life(args, &options.command, folder.as_deref(), &id, number, printer);
        match series.live(&mut options, recorder) {
            Ok((life, later)) => {
                recorded.push(life);
                outcome = later;
            }
            Err(error) => {
                printer.warn_of(&error.context("the command could not be started again"), None);
                break;
            }
        }
    }
    Ok((recorded, outcome))
}

impl<'a> Series<'a> {
    fn of(args: &'a RunArgs, options: &Options, id: &str, printer: Printer) -> anyhow::Result<Self> {
        let guard = &args.guard;
        let resume = guard
            .resume_cmd
            .as_deref()
            .map(Resume::parse)
            .transpose()
            .context("`--resume-cmd` is no command")?;
        let checkpoints = checkpoints(guard.checkpoint.as_deref(), &args.command)?;
        let restarts = match (&resume, checkpoints.pattern()) {
            (Some(resume), None) if !resume.needs_checkpoint() => Restarts::Always,
            (None, None) => Restarts::Never,
            _ => Restarts::FromCheckpoint,
        };
        let gpu_budget = guard.gpu_budget.map(|budget| match budget {
            Budget::Bytes(bytes) => GpuBudget::Bytes(bytes),
            Budget::Share(share) => GpuBudget::Share(share),
        });
        let (budget, grace) = (budget(args, options)?, guard.grace.0);
        let hard = guard.hard_limit.map(|means| HardLimit::choose(options, budget, means.wanted()));
        let hard = hard.transpose()?;
        let run = plain(id);
        let guarding = Guarding { budget, hard, gpu_budget, checkpoints, run, later: false, restarts, grace };
        let lives = Lives::new(guard.max_restarts);
        Ok(Self { args, printer, lives, resume, guarding, before: None, used: None })
    }

    /// One life.
    fn live(&mut self, options: &mut Options, recorder: Recorder) -> anyhow::Result<(Recorded, Outcome)> {
        self.before = self.guarding.checkpoints.newest();
        options.guard = Some(self.guarding.clone());
        let (recorded, outcome) = live(options, recorder)?;
        if let Some(guarded) = &outcome.guarded {
            self.guarding.checkpoints = guarded.checkpoints.clone();
        }
        self.guarding.later = true;
        Ok((recorded, outcome))
    }

    /// How it goes on after a life; `None` where that was the last one, for which the reason is said.
    fn next(&mut self, outcome: &Outcome) -> Option<Next> {
        let guarded = outcome.guarded.as_ref()?;
        let found = self.guarding.checkpoints.find();
        let (pause, older) = match self.lives.after(self.life(guarded, &found)) {
            Decision::Restart { pause, older } => (pause, older),
            decision => {
                if let Some(text) = farewell(decision) {
                    self.printer.guard(&text);
                }
                return None;
            }
        };
        if let Some(cause) = cause(outcome, guarded.end) {
            self.printer.guard(&cause);
        }
        self.used = choose(&found, self.used.as_ref().filter(|_| older)).cloned();
        Some(Next { command: self.command()?, pause })
    }

    /// What the next life depends on, with the checkpoints that there are now.
    fn life(&self, guarded: &Guarded, found: &[Checkpoint]) -> EndedLife {
        let newest = choose(found, None);
        let newer = newest.is_some_and(|newest| Some(newest) != self.before.as_ref());
        let used = self.used.as_ref();
        EndedLife {
            end: guarded.end,
            progressed: if self.guarding.checkpoints.are_known() { newer } else { guarded.epochs > 0 },
            stepped: guarded.stepped,
            has_older: used.is_some_and(|used| choose(found, Some(used)).is_some()),
            resumable: match self.guarding.restarts {
                Restarts::Never => false,
                Restarts::Always => true,
                Restarts::FromCheckpoint => newest.is_some(),
            },
        }
    }

    fn command(&self) -> Option<Vec<OsString>> {
        let Some(resume) = &self.resume else { return Some(self.args.command.clone()) };
        let words = resume.words(self.used.as_ref().map(|used| used.path.as_str()))?;
        Some(words.into_iter().map(OsString::from).collect())
    }
}

impl Next {
    /// `restart 2 in 4 s: python train.py --resume ...`, as a shell takes it, without secrets: it may go to a log.
    fn text(&self, restart: usize) -> String {
        let words: Vec<String> =
            self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let pause = match self.pause.as_secs() {
            0 => String::new(),
            seconds => format!(" in {seconds} s"),
        };
        format!("restart {restart}{pause}: {}", joined(&caulk_record::redact(&words)))
    }
}

/// Why no further life follows, where that needs to be said.
fn farewell(decision: Decision) -> Option<String> {
    match decision {
        Decision::Restart { .. } | Decision::Over => None,
        Decision::GiveUp(restarts) => {
            let plural = if restarts == 1 { "" } else { "s" };
            Some(format!("gives up: {restarts} restart{plural} in a row without progress (--max-restarts)"))
        }
        Decision::NothingToResume => {
            Some("does not start it again: there is no checkpoint to go on from".into())
        }
    }
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

/// A name of a folder without the characters that have a meaning elsewhere.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().map(keep).collect()
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
pub(super) fn checkpoints(pattern: Option<&str>, command: &[OsString]) -> anyhow::Result<Checkpoints> {
    let Some(pattern) = pattern else { return Ok(Checkpoints::default()) };
    let path = target::directory().join(pattern).into_os_string();
    let path = path
        .into_string()
        .map_err(|path| anyhow!("--checkpoint: `{}` is not UTF-8", path.to_string_lossy()))?;
    Checkpoints::matching(Some(path), command).map_err(|problem| {
        anyhow!(
            "--checkpoint: `{pattern}` is no pattern: {problem}\nhint: write for example 'runs/*/last.ckpt'"
        )
    })
}
