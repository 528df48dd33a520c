//! The processes that a process has started, directly or through others, and when they were alive.

use std::collections::HashSet;

use caulk_core::wire::Message;
use caulk_core::{ProcessRecord, Recording};

use crate::process::Process;

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

    /// Private dirty bytes of one of those that were alive at a time: their mean, each at the last look before it that
    /// read them. `None` where none did.
    pub(crate) fn own_bytes_at(&self, time_ns: u64, recording: &Recording) -> Option<f64> {
        let alive = self.records.iter().filter(|child| child.first_ns <= time_ns && time_ns <= child.last_ns);
        let own = |child: &&ProcessRecord| {
            let looks = recording.samples.iter().rev();
            let mut looks = looks.filter(|look| look.time_ns <= time_ns && look.pid == child.pid);
            looks.find_map(|look| look.private_dirty_bytes).map(|bytes| bytes as f64)
        };
        let each: Vec<f64> = alive.filter_map(own).collect();
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    }

    /// Are most of them workers of a `DataLoader`?
    pub(crate) fn are_workers(&self) -> bool {
        2 * self.workers > self.records.len()
    }
}
