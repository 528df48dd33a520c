//! What the guard says: one line for each thing that it does.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;
use caulk_core::Bytes;
use caulk_guard::{Answer, Checkpoint, Ladder, Standing, Wish};

use super::asks::Way;
use super::meter::OWN_LIMITS;
use crate::proc::line;
use crate::{GpuBudget, Guarding, Restarts, death};

/// At the start: what is watched, what is done at which level, what it can go on with. `known`: what else is watched.
pub(super) fn beginning(
    settings: &Guarding,
    ladder: &Ladder,
    early: bool,
    known: &[Option<&str>],
    newest: Option<&Checkpoint>,
) -> Vec<String> {
    let restarts = settings.restarts != Restarts::Never;
    let gpu = settings.gpu_budget.map_or(String::new(), |budget| match budget {
        GpuBudget::Bytes(bytes) => format!(" and {} of GPU memory", Bytes(bytes)),
        GpuBudget::Share(share) => format!(" and {:.0} % of GPU memory", share * 100.0),
    });
    let watches: Vec<&str> = [Some("all processes")].iter().chain(known).flatten().copied().collect();
    let early =
        if early { " (earlier than usual: the kernel kills the whole control group at once)" } else { "" };
    let watched = format!(
        "keeps below {}{gpu}: {}{early}; watches {}",
        Bytes(settings.budget),
        ladder.text(restarts),
        watches.join(", ")
    );
    let newest =
        newest.map_or_else(|| "none is there yet".into(), |newest| format!("newest: {}", newest.path));
    let old = match settings.checkpoints.old() {
        0 => String::new(),
        1 => "; one that is older than this run is left alone".into(),
        old => format!("; {old} that are older than this run are left alone"),
    };
    let files = settings.checkpoints.pattern();
    let files = files.map(|pattern| format!("checkpoints: {pattern} ({newest}{old})"));
    let next = match settings.restarts {
        Restarts::Never => {
            "no restarts: neither `--resume-cmd` nor `--checkpoint` says how to go on, so that the program is never \
             ended"
        }
        Restarts::Always => "restarts need no checkpoint",
        Restarts::FromCheckpoint => "restarts need a checkpoint",
    };
    [watched].into_iter().chain(files).chain([next.to_owned()]).collect()
}

/// Whether the command starts with a limit of its own.
pub(super) fn has_own_limit(proc_root: &Utf8Path) -> bool {
    let limits = fs::read(proc_root.join("self/limits")).unwrap_or_default();
    OWN_LIMITS.iter().any(|name| line(&limits, name).is_some())
}

/// Once the program trains: by what it can be asked for a checkpoint.
pub(super) fn way(way: Option<&Way>, files: bool) -> String {
    match way {
        Some(way) => format!("checkpoints can be asked for: {}", by(way)),
        None if files => {
            "no checkpoints can be asked for: the program handles no SIGUSR1 and has given nothing to \
             `caulk.on_checkpoint`; those count that it makes by itself"
                .into()
        }
        None => "no checkpoints can be asked for: the program handles no SIGUSR1 and has given nothing to \
             `caulk.on_checkpoint`, and `--checkpoint` names no files that it makes by itself"
            .into(),
    }
}

fn by(way: &Way) -> String {
    match way {
        Way::Agent(name) => format!("by {name}"),
        Way::Signal => "by SIGUSR1, which the program handles".into(),
    }
}

pub(super) fn warn(standing: &Standing) -> String {
    format!("memory is getting short: {}", standing.text())
}

pub(super) fn ask_cleanup(standing: &Standing) -> String {
    format!("asks for a cleanup: {}", standing.text())
}

pub(super) fn ask_checkpoint(standing: &Standing, way: &Way) -> String {
    format!("asks for a checkpoint, {}: {}", by(way), standing.text())
}

pub(super) fn answer(
    wish: Wish,
    answer: Answer,
    newest: Option<&Checkpoint>,
    complaints: &[String],
) -> String {
    match (wish, answer) {
        (_, Answer::Freed(bytes)) => format!("the cleanup gave back {}", Bytes(bytes)),
        (_, Answer::Saved) => match newest {
            Some(newest) => format!("checkpoint made: {}", newest.path),
            None => "checkpoint made".into(),
        },
        (Wish::Cleanup, Answer::Failed) => "the cleanup failed".into(),
        (Wish::Checkpoint, Answer::Failed) => format!("no checkpoint was made: {}", complaints.join("; ")),
    }
}

pub(super) fn unanswered(wish: Wish) -> String {
    match wish {
        Wish::Cleanup => "no answer to the request for a cleanup".into(),
        Wish::Checkpoint => "no checkpoint was made in time".into(),
    }
}

pub(super) fn end(standing: &Standing) -> String {
    format!("ends the program, to start it again: {}", standing.text())
}

pub(super) fn kill(grace: Duration) -> String {
    format!("it has not ended in {} s (--grace): kills it", grace.as_secs())
}

pub(super) fn does_not_fit(standing: &Standing) -> String {
    format!(
        "ends the program: before its first step it takes {}; a restart would not help; grant more, or make it smaller",
        standing.room.text()
    )
}

pub(super) fn go_on(standing: &Standing) -> String {
    format!("the limit is reached, and there is nothing to start again with: {}", standing.room.text())
}

pub(super) fn told(signal: i32) -> String {
    let name = death::name(signal).unwrap_or("a signal");
    format!("{name} from outside: passed on, and from now on the program is not started again")
}
