//! The processes that a process has started, directly or through others, and when they were alive.

use std::collections::HashSet;

use caulk_core::wire::Message;
use caulk_core::{AgentEvent, ProcessRecord, Recording};

use crate::process::Process;
use crate::units::median;

/// Time for which a process lives on unseen: four looks a second.
const BETWEEN_LOOKS_NS: u64 = 300_000_000;

/// A process that has said that it ends may take so long for it, on a crowded machine: memory has to be given back.
const ENDING_NS: u64 = 10_000_000_000;

/// Descendants of one process.
pub(crate) struct Children<'a> {
    records: Vec<&'a ProcessRecord>,
    /// When each has said that it ends, if it has.
    ends: Vec<Option<u64>>,
    /// Of these, workers of a `DataLoader`.
    workers: usize,
}

impl<'a> Children<'a> {
    /// All that were seen; a parent is seen before its children.
    pub(crate) fn of(recording: &'a Recording, process: &Process<'_>) -> Self {
        let mut family = HashSet::from([process.record.pid]);
        let children = recording.processes.iter().filter(|other| {
            let below = other.pid != process.record.pid && family.contains(&other.parent);
            below && family.insert(other.pid)
        });
        let records: Vec<&ProcessRecord> = children.collect();
        let workers = recording.events.iter().filter(|event| {
            matches!(&event.message, Message::Hello(hello) if hello.worker.is_some())
                && records.iter().any(|child| child.pid == event.pid)
        });
        let says_bye = |event: &&AgentEvent| matches!(event.message, Message::Bye(_));
        let byes: Vec<&AgentEvent> = recording.events.iter().filter(says_bye).collect();
        let ends = records.iter().map(|child| {
            let is_its = |bye: &&&AgentEvent| bye.pid == child.pid && bye.time_ns >= child.first_ns;
            byes.iter().find(is_its).map(|bye| bye.time_ns)
        });
        Self { workers: workers.count(), ends: ends.collect(), records }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many were alive at a time, of the monotonic clock in nanoseconds, as far as looks tell, without those that were
    /// about to end.
    pub(crate) fn alive_at(&self, time_ns: u64) -> usize {
        let alive = |child: &ProcessRecord, end: Option<u64>| {
            let is_ending = end.is_some_and(|end| (end..end.saturating_add(ENDING_NS)).contains(&time_ns));
            let seen = child.first_ns..=child.last_ns.saturating_add(BETWEEN_LOOKS_NS);
            seen.contains(&time_ns) && !is_ending
        };
        self.records.iter().zip(&self.ends).filter(|(child, end)| alive(child, **end)).count()
    }

    /// Private dirty bytes of one of those that were alive at a time: the median, each at the last reading before it, by a
    /// look or by its own agent. `None` where none was read.
    pub(crate) fn own_bytes_at(&self, time_ns: u64, recording: &Recording) -> Option<f64> {
        let alive = self.records.iter().filter(|child| child.first_ns <= time_ns && time_ns <= child.last_ns);
        let own = |child: &&ProcessRecord| {
            let looks = recording.samples.iter().filter(|look| look.pid == child.pid);
            let looks = looks.filter_map(|look| Some((look.time_ns, look.private_dirty_bytes?)));
            let events = recording.events.iter().filter(|event| event.pid == child.pid);
            let told = events.filter_map(|event| match &event.message {
                Message::Boundary(at) if at.private_bytes > 0 => Some((at.time_ns, at.private_bytes)),
                _ => None,
            });
            let before = looks.chain(told).filter(|(read_ns, _)| *read_ns <= time_ns);
            before.max_by_key(|(read_ns, _)| *read_ns).map(|(_, bytes)| bytes as f64)
        };
        median(alive.filter_map(own).collect())
    }

    /// Are most of them workers of a `DataLoader`?
    pub(crate) fn are_workers(&self) -> bool {
        2 * self.workers > self.records.len()
    }
}

#[cfg(test)]
mod tests {
    use caulk_core::wire::{Bye, Hello};

    use super::*;

    #[test]
    fn who_has_said_that_it_ends_is_alive_no_more_unless_it_stays() {
        let second = 1_000_000_000;
        let record =
            |pid, parent| ProcessRecord { pid, parent, last_ns: 30 * second, ..ProcessRecord::default() };
        let says = |pid, message| AgentEvent { time_ns: 2 * second, pid, message };
        let recording = Recording {
            processes: vec![record(7, 1), record(8, 7)],
            events: vec![says(7, Message::Hello(Hello::default())), says(8, Message::Bye(Bye::default()))],
            ..Recording::default()
        };
        let children = Children::of(&recording, &Process::all(&recording)[0]);
        let alive = [1, 3, 11, 13, 29, 40].map(|at| children.alive_at(at * second));
        assert_eq!(alive, [1, 0, 0, 1, 1, 0]);
    }
}
