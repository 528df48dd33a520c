//! Processes of one role and number, one after the other: to people a worker that is made anew every epoch is one.
//!
//! What lives at the end lives in the last of them, if it was still there: when the process that it works for cut its last
//! boundary, or, where that one was killed or cuts none, when the run ended.

use std::collections::BTreeMap;

use caulk_core::wire::{AT_END, Boundary};
use caulk_core::{ProcessRef, Recording, Role};

use crate::process::Process;
use crate::units::Scale;

/// Processes that ended so shortly before the run did so with it, in nanoseconds.
const WITH_THE_RUN_NS: u64 = 1_000_000_000;

/// All of them that have told of their heap.
pub(crate) struct Generations<'p, 'a> {
    /// In order of appearance; at least one.
    pub(crate) all: Vec<&'p Process<'a>>,
    /// The last one was there at the end.
    pub(crate) lives: bool,
}

impl<'p, 'a> Generations<'p, 'a> {
    /// Joins the processes of a recording.
    pub(crate) fn join(recording: &Recording, processes: &'p [Process<'a>]) -> Vec<Self> {
        let groups = by_role(processes.iter().filter(|process| !process.heaps.is_empty()));
        let ending = Ending { end_ns: end_ns(recording), processes };
        let group = |all: Vec<&'p Process<'a>>| {
            let lives = all.last().is_some_and(|last| ending.sees(last));
            Self { all, lives }
        };
        groups.into_iter().map(group).collect()
    }

    /// The one that was there at the end.
    pub(crate) fn living(&self) -> Option<&'p Process<'a>> {
        self.all.last().copied().filter(|_| self.lives)
    }

    pub(crate) fn reference(&self) -> ProcessRef {
        self.all[0].reference()
    }

    /// The scale of all their boundaries. A process that was killed before its first one has told what it held all the same.
    pub(crate) fn scale(&self) -> Scale {
        let boundaries: Vec<&Boundary> =
            self.all.iter().flat_map(|process| process.boundaries.iter().copied()).collect();
        Scale::among(&boundaries).unwrap_or(Scale::BY_TIME)
    }
}

/// Processes of each role and number together, in their order.
pub(crate) fn by_role<'p, 'a>(all: impl Iterator<Item = &'p Process<'a>>) -> Vec<Vec<&'p Process<'a>>> {
    let mut groups: BTreeMap<(Role, u32), Vec<&Process<'_>>> = BTreeMap::new();
    for process in all {
        groups.entry((process.record.role, process.record.index)).or_default().push(process);
    }
    groups.into_values().collect()
}

/// The end of the run, for each process.
struct Ending<'p, 'a> {
    end_ns: u64,
    processes: &'p [Process<'a>],
}

impl Ending<'_, '_> {
    /// Was the process there at the end, and the one that it works for?
    fn sees(&self, process: &Process<'_>) -> bool {
        let master = self.master(process);
        self.is_reached_by(process, master)
            && master.is_none_or(|master| self.is_reached_by(master, self.master(master)))
    }

    fn is_reached_by(&self, process: &Process<'_>, master: Option<&Process<'_>>) -> bool {
        let last_ns = process.record.last_ns;
        let trains = |master: &Process<'_>| master.boundaries.iter().any(|boundary| boundary.steps > 0);
        match (process.record.role, master.and_then(last_told_ns)) {
            (Role::Main, _) => true,
            // Ranks are the run where the process that has started them does not train itself.
            (Role::Rank, _) if !master.is_some_and(trains) => true,
            (_, Some(told_ns)) => last_ns >= told_ns,
            (_, None) => last_ns.saturating_add(WITH_THE_RUN_NS) >= self.end_ns,
        }
    }

    /// The process whose boundaries it takes over, or its parent, or the main one: whichever has told of its heap.
    fn master(&self, process: &Process<'_>) -> Option<&Process<'_>> {
        let of = process.boundaries.iter().map(|boundary| boundary.of).find(|of| *of != 0);
        let tells = |other: &&Process<'_>| other.record.pid != process.record.pid && !other.heaps.is_empty();
        let others = || self.processes.iter().rev().filter(tells);
        let wanted = of.unwrap_or(process.record.parent);
        others()
            .find(|other| other.record.pid == wanted)
            .or_else(|| others().find(|other| other.record.role == Role::Main))
    }
}

/// When a process has last told of its heap; `None` where that was at its end, or at no boundary.
fn last_told_ns(process: &Process<'_>) -> Option<u64> {
    let last = process.heaps.last().filter(|heap| heap.boundary != AT_END)?;
    process.boundary(last.boundary).map(|boundary| boundary.time_ns)
}

/// The end, or the last that was seen of any process.
fn end_ns(recording: &Recording) -> u64 {
    let seen = recording.processes.iter().map(|process| process.last_ns);
    recording.info.end_ns.unwrap_or_else(|| seen.max().unwrap_or(0))
}
