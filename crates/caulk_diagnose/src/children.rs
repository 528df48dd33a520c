//! The processes that a process has started, directly or through others, and when they were alive.

use std::collections::HashSet;

use caulk_core::wire::Message;
use caulk_core::{ProcessRecord, Recording};

use crate::process::Process;
use crate::units::median;

/// Time for which a process lives on unseen: four looks a second.
const BETWEEN_LOOKS_NS: u64 = 300_000_000;

/// Descendants of one process.
pub(crate) struct Children<'a> {
    records: Vec<&'a ProcessRecord>,
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
        Self { workers: workers.count(), records }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many were alive at a time, of the monotonic clock in nanoseconds, as far as looks tell.
    pub(crate) fn alive_at(&self, time_ns: u64) -> usize {
        let alive = |child: &&&ProcessRecord| {
            (child.first_ns..=child.last_ns.saturating_add(BETWEEN_LOOKS_NS)).contains(&time_ns)
        };
        self.records.iter().filter(alive).count()
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
