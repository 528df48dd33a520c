//! Peak host memory of the process tree that a budget has to hold.

use std::collections::BTreeMap;

use caulk_core::wire::Message;
use caulk_core::{Bytes, Recording, Sample};

use crate::{Checked, Criterion, Observed};

/// The part of a process that was seen.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Resident pages of files that the kernel can drop.
    file_bytes: u64,
    /// What its share of shared pages adds to its own pages, or takes from them.
    shared_part: i64,
    needs: u64,
}

/// Highest sum over the processes that lived at one time: PSS without pages of files, which the kernel drops when memory is
/// short. `None` if nothing was sampled.
pub fn host_peak(recording: &Recording) -> Option<u64> {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for process in &recording.processes {
        let end = ends.entry(process.pid).or_default();
        *end = process.last_ns.max(*end);
    }
    let mut files: Vec<(u64, u32, u64)> = Vec::new();
    for event in &recording.events {
        if let Message::Boundary(boundary) = &event.message {
            files.push((event.time_ns, event.pid, boundary.file_bytes));
        }
    }
    let mut files = files.into_iter().peekable();
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    let mut peak = None;
    for sample in &recording.samples {
        while let Some((_, pid, bytes)) = files.next_if(|(time_ns, ..)| *time_ns <= sample.time_ns) {
            seen.entry(pid).or_default().file_bytes = bytes;
        }
        seen.retain(|pid, _| ends.get(pid).is_none_or(|end| *end >= sample.time_ns));
        seen.entry(sample.pid).or_default().take(sample);
        let sum: u64 = seen.values().map(|process| process.needs).sum();
        peak = peak.max(Some(sum));
    }
    peak
}

impl Seen {
    fn take(&mut self, sample: &Sample) {
        let own = sample.rss_bytes.saturating_sub(sample.shared_bytes);
        if let Some(pss) = sample.pss_bytes {
            let dirty = sample.private_dirty_bytes.unwrap_or(0);
            let files = self.file_bytes.min(sample.shared_bytes);
            let needs = pss.saturating_sub(files).max(dirty);
            self.shared_part = needs as i64 - own as i64;
        }
        self.needs = own.saturating_add_signed(self.shared_part);
    }
}

/// The peak against a budget, or without one against the limits of the run.
pub(crate) fn below(observed: &Observed<'_>, limit: Option<u64>) -> Checked {
    let name = Criterion::HostBelowBudget;
    let limits = &observed.recording.info.limits;
    let budget = limit.or(limits.budget_bytes);
    let room = limits.cgroup_bytes.map_or(limits.physical_bytes, |cgroup| cgroup.min(limits.physical_bytes));
    let (most, text) = match budget {
        Some(budget) => (budget, format!("{}", Bytes(budget))),
        None if room > 0 => (room, format!("{} (no budget: all that this run can have)", Bytes(room))),
        None => return Checked::not_applicable(name, "no budget and no limit is known"),
    };
    match host_peak(observed.recording) {
        None => Checked::undecided(name, "no process was sampled", "a run longer than a second"),
        Some(peak) if peak > most => Checked::fail(name, format!("peak {}", Bytes(peak))),
        Some(peak) => Checked::pass(name, format!("peak {}", Bytes(peak))),
    }
    .within(text)
}

#[cfg(test)]
mod tests {
    use caulk_core::ProcessRecord;

    use super::*;

    fn sample(time_ns: u64, pid: u32, rss: u64, shared: u64, pss: Option<u64>) -> Sample {
        Sample { time_ns, pid, rss_bytes: rss, shared_bytes: shared, pss_bytes: pss, ..Sample::default() }
    }

    fn check(samples: &[Sample], expected: Option<u64>) {
        let process = |pid, last_ns| ProcessRecord { pid, last_ns, ..ProcessRecord::default() };
        let recording = Recording {
            samples: samples.to_vec(),
            processes: vec![process(1, 90), process(2, 20)],
            ..Recording::default()
        };
        assert_eq!(host_peak(&recording), expected);
    }

    #[test]
    fn processes_count_while_they_live() {
        check(&[], None);
        check(&[sample(10, 1, 50, 0, None), sample(10, 2, 30, 0, None)], Some(80));
        check(&[sample(10, 2, 30, 0, None), sample(30, 1, 50, 0, None)], Some(50));
    }

    #[test]
    fn shared_pages_count_by_their_part() {
        check(&[sample(10, 1, 50, 20, Some(35)), sample(20, 1, 60, 20, None)], Some(45));
    }
}
