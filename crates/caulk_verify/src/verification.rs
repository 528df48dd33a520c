//! All checks of a checklist, and what they come to.

use caulk_core::{EndingKind, Series};

use crate::{
    Checked, Checklist, ChecklistItem, Criterion, Grade, MemoryAnswer, Observed, host, leaks, presence,
    stable,
};

/// The checks of one run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Verification {
    /// In the order of the checklist.
    pub checks: Vec<Checked>,
}

impl Verification {
    /// What the required checks come to: a failure counts before an open question. Nothing is open if nothing is required.
    pub fn grade(&self) -> Grade {
        let required = |grade: Grade| self.checks.iter().any(|check| check.required && check.grade == grade);
        match () {
            () if required(Grade::Fail) => Grade::Fail,
            () if required(Grade::Undecided) => Grade::Undecided,
            () => Grade::Pass,
        }
    }

    /// Whether the command itself failed, for another reason than memory.
    pub fn command_failed(&self) -> bool {
        let failed = |name: Criterion| {
            self.checks.iter().any(|check| check.name == name && check.grade == Grade::Fail)
        };
        failed(Criterion::Ended) && !failed(Criterion::NoOom)
    }
}

/// Checks a run.
pub fn verify(observed: &Observed<'_>, checklist: &Checklist) -> Verification {
    let of =
        |item: &ChecklistItem| Checked { required: item.required, ..check(observed, checklist, item.name) };
    Verification { checks: checklist.items.iter().map(of).collect() }
}

fn check(observed: &Observed<'_>, checklist: &Checklist, name: Criterion) -> Checked {
    match name {
        Criterion::Ended => ended(observed),
        Criterion::Stable => stable::stable(observed, checklist.bytes(name)),
        Criterion::HostBelowBudget => host::below(observed, checklist.bytes(name)),
        Criterion::GpuNotFilling => stable::gpu(observed, checklist.gpu_share()),
        Criterion::NoOom => no_oom(observed),
        Criterion::RestartsFromCheckpoint => restarts(observed),
        _ => leaks::failed(observed, name).unwrap_or_else(|| clean(observed, name)),
    }
}

/// A criterion that no leak was found against.
fn clean(observed: &Observed<'_>, name: Criterion) -> Checked {
    if name == Criterion::FilesFlat {
        return stable::count(observed, name, Series::Fds);
    }
    if name == Criterion::ThreadsFlat {
        return stable::count(observed, name, Series::Threads);
    }
    if name == Criterion::WorkersFlat {
        return stable::workers(observed);
    }
    if name == Criterion::DeviceTensorsMoved {
        return if observed.gpus.is_empty() {
            Checked::not_applicable(name, "the program used no GPU")
        } else {
            Checked::pass(name, "no tensor was found to stay on the device")
        };
    }
    if !observed.saw_inside() {
        let figure = "caulk saw the program from outside only";
        return Checked::undecided(
            name,
            figure,
            "a run with caulk's agent in it: see the notes of `caulk report`",
        );
    }
    let graphs = matches!(name, Criterion::GradientsCleared | Criterion::DetachedWhenStored);
    if graphs && !presence::trains(observed) {
        return Checked::not_applicable(name, "no backward pass was seen");
    }
    if name == Criterion::GradientsCleared {
        let (checked, stale) = presence::gradients(observed);
        return match checked {
            0 => Checked::not_applicable(name, "no backward pass after an optimizer step was measured"),
            _ => Checked::pass(
                name,
                format!("{stale} of {checked} backward passes began with gradients left over"),
            ),
        };
    }
    let found_in_time = !matches!(observed.memory, MemoryAnswer::Unknown);
    if found_in_time {
        Checked::pass(name, "none found")
    } else {
        Checked::undecided(name, "none found in the time that was watched", "a run of more epochs")
    }
}

fn ended(observed: &Observed<'_>) -> Checked {
    let name = Criterion::Ended;
    let text = observed.recording.info.death.as_ref().map_or("its end was not seen", |death| &death.text);
    let epochs = observed.epochs.map_or_else(String::new, |epochs| format!(", {epochs} epochs"));
    match observed.ending.map(|ending| ending.kind) {
        Some(EndingKind::Ok) => Checked::pass(name, format!("{text}{epochs}")),
        Some(EndingKind::StoppedByCaulk) => Checked::pass(name, format!("ended by caulk: {text}")),
        None => Checked::undecided(name, text, "a run until its end"),
        Some(_) => Checked::fail(name, format!("{text}{epochs}")),
    }
}

fn no_oom(observed: &Observed<'_>) -> Checked {
    let name = Criterion::NoOom;
    let of_memory = |kind: &EndingKind| {
        matches!(kind, EndingKind::MemoryError | EndingKind::CudaOutOfMemory | EndingKind::OomKill)
    };
    match observed.ending.map(|ending| ending.kind).filter(of_memory) {
        Some(EndingKind::CudaOutOfMemory) => Checked::fail(name, "the GPU ran out of memory"),
        Some(EndingKind::OomKill) => {
            Checked::fail(name, "the kernel killed the program because memory ran out")
        }
        Some(_) => Checked::fail(name, "the program ran out of memory"),
        None => Checked::pass(name, "memory did not run out"),
    }
}

fn restarts(observed: &Observed<'_>) -> Checked {
    let name = Criterion::RestartsFromCheckpoint;
    match observed.restarted {
        None => Checked::not_applicable(name, "no command that continues from a checkpoint was given"),
        Some(true) => Checked::pass(name, "the command continued from the newest checkpoint"),
        Some(false) => Checked::fail(name, "the command did not continue from a checkpoint"),
    }
}
