//! Looks at the processes: what is cheap every time, the rest on a small share of a core.
//!
//! `statm` costs some 15 us. `smaps_rollup` costs some 19 ms for a torch process, and the process waits while its
//! map of memory is read: it gets a fixed duty, and none at all where it is expected to take long.

use std::fs;

use caulk_core::{ProcessLimits, Sample};

use crate::clock;
use crate::proc::{Rollup, Statm, kilobytes};
use crate::process::{Looks, Private};
use crate::tree::Tree;

/// Between two looks at threads, descriptors and CPU time of one process, in nanoseconds.
const SLOW_NS: u64 = 2_000_000_000;

/// Share of a core for `smaps_rollup`: one part in so many.
const ROLLUP_DUTY: u64 = 800;

/// Longest read of `smaps_rollup` that is begun, in nanoseconds.
const LONGEST_ROLLUP_NS: f64 = 50_000_000.0;

/// Cost of it where none is known, in nanoseconds per resident byte: 19 ms for 742 MB.
const ROLLUP_NS_PER_BYTE: f64 = 19e6 / 742e6;

/// Between two looks at the swap of a process whose `smaps_rollup` is not read, in nanoseconds.
const SWAP_NS: u64 = 10_000_000_000;

/// Takes the samples.
#[derive(Debug)]
pub(crate) struct Sampler {
    page: u64,
    tick_ns: u64,
    next_rollup_ns: u64,
    /// The last known cost of `smaps_rollup`, over all processes.
    rollup_rate: f64,
    rollup_cost_ns: u64,
    limits: ProcessLimits,
    samples: Vec<Sample>,
}

impl Sampler {
    pub(crate) fn new() -> Self {
        Self {
            page: rustix::param::page_size() as u64,
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            next_rollup_ns: 0,
            rollup_rate: ROLLUP_NS_PER_BYTE,
            rollup_cost_ns: 0,
            limits: ProcessLimits::default(),
            samples: Vec::new(),
        }
    }

    /// One look at every process, the new ones included. The known ones come first: a number that one of them had
    /// is free for a new one when it has ended.
    ///
    /// `limits`: those of each process; what they limit is recorded.
    pub(crate) fn look(&mut self, tree: &mut Tree, limits: ProcessLimits, now_ns: u64) -> &[Sample] {
        self.samples.clear();
        self.rollup_cost_ns = 0;
        self.limits = limits;
        for pid in tree.living().collect::<Vec<_>>() {
            self.take_or_end(tree, pid, now_ns);
        }
        for pid in tree.scan(now_ns) {
            if self.samples.iter().all(|sample| sample.pid != pid) {
                self.take_or_end(tree, pid, now_ns);
            }
        }
        self.look_deeper(tree, now_ns);
        self.samples.retain(|sample| tree.processes.get(&sample.pid).is_some_and(|process| process.recorded));
        &self.samples
    }

    fn take_or_end(&mut self, tree: &mut Tree, pid: u32, now_ns: u64) {
        match self.look_at(tree, pid, now_ns) {
            Some(sample) => self.samples.push(sample),
            None => tree.end(pid, now_ns),
        }
    }

    /// What `smaps_rollup` cost in the last look, in nanoseconds.
    pub(crate) fn rollup_cost_ns(&self) -> u64 {
        self.rollup_cost_ns
    }

    /// Sum of the resident bytes of all, the unrecorded ones included.
    pub(crate) fn resident(tree: &Tree) -> u64 {
        tree.processes.values().map(|process| process.looks.resident).sum()
    }

    fn look_at(&self, tree: &mut Tree, pid: u32, now_ns: u64) -> Option<Sample> {
        if !tree.processes.get(&pid)?.looks.asked_for_file {
            let file = tree.open_statm(pid);
            let looks = &mut tree.processes.get_mut(&pid)?.looks;
            (looks.statm, looks.asked_for_file) = (file, true);
        }
        let process = tree.processes.get_mut(&pid)?;
        let bytes = match &process.looks.statm {
            Some(file) => tree.reader.read(file),
            None => tree.reader.process(pid, "statm"),
        };
        let statm = Statm::parse(bytes.ok()?, self.page)?;
        process.looks.resident = statm.resident;
        process.record.last_ns = now_ns;
        let mut sample = Sample {
            time_ns: now_ns,
            pid,
            rss_bytes: statm.resident,
            shared_bytes: statm.shared,
            address_space_bytes: self.limits.address_space_bytes.map(|_| statm.size),
            data_bytes: self.limits.data_bytes.map(|_| statm.data),
            ..Sample::default()
        };
        if process.looks.next_slow_ns <= now_ns {
            process.looks.next_slow_ns = now_ns + SLOW_NS;
            self.look_slowly(tree, &mut sample)?;
        }
        Some(sample)
    }

    /// Threads, CPU time and descriptors; `None` if the number belongs to another process by now.
    fn look_slowly(&self, tree: &mut Tree, sample: &mut Sample) -> Option<()> {
        let stat = tree.reader.stat(sample.pid)?;
        if !tree.is_same(sample.pid, &stat) {
            return None;
        }
        if tree.processes.get(&sample.pid)?.record.name != stat.name {
            tree.renamed(sample.pid);
        }
        sample.threads = Some(stat.threads);
        sample.cpu_ns = Some(stat.cpu_ticks * self.tick_ns);
        sample.fds = descriptors(sample.pid);
        Some(())
    }

    /// `smaps_rollup` of the process that has waited longest for it, if one is due.
    fn look_deeper(&mut self, tree: &mut Tree, now_ns: u64) {
        if now_ns < self.next_rollup_ns {
            return;
        }
        let main = tree.main();
        // The main process comes first where none was read; a process in its first second may be about to exec.
        let waiting = |pid: u32, looks: &Looks| (looks.last_rollup_ns, pid != main);
        let next = tree
            .processes
            .values()
            .filter(|process| process.recorded && process.ended_ns.is_none())
            .filter(|process| process.record.first_ns + 500_000_000 <= now_ns)
            .filter(|process| self.predict(&process.looks) <= LONGEST_ROLLUP_NS)
            .min_by_key(|process| waiting(process.record.pid, &process.looks))
            .map(|process| process.record.pid);
        if let Some(pid) = next {
            self.read_rollup(tree, pid, now_ns);
        }
        self.read_swap(tree, now_ns);
    }

    /// Expected cost of `smaps_rollup`, in nanoseconds.
    fn predict(&self, looks: &Looks) -> f64 {
        looks.resident as f64 * looks.rollup_rate.unwrap_or(self.rollup_rate)
    }

    fn read_rollup(&mut self, tree: &mut Tree, pid: u32, now_ns: u64) {
        let before = clock::cpu_ns();
        let rollup = tree.reader.process(pid, "smaps_rollup").ok().and_then(Rollup::parse);
        let cost = clock::cpu_ns().saturating_sub(before);
        self.rollup_cost_ns = cost;
        self.next_rollup_ns = now_ns + (cost * ROLLUP_DUTY).max(1_000_000_000);
        let Some(process) = tree.processes.get_mut(&pid) else {
            return;
        };
        process.looks.last_rollup_ns = now_ns;
        let Some(rollup) = rollup else {
            return;
        };
        // Small processes tell nothing about the cost of large ones.
        if process.looks.resident > 64 << 20 {
            let rate = cost as f64 / process.looks.resident as f64;
            process.looks.rollup_rate = Some(rate);
            self.rollup_rate = rate;
        }
        if let Some(sample) = self.samples.iter_mut().find(|sample| sample.pid == pid) {
            let anonymous = sample.rss_bytes.saturating_sub(sample.shared_bytes);
            process.looks.private = Some(Private { dirty: rollup.private_dirty, anonymous });
            sample.pss_bytes = Some(rollup.pss);
            sample.private_dirty_bytes = Some(rollup.private_dirty);
            sample.swap_bytes = Some(rollup.swap);
        }
    }

    /// For processes too large for `smaps_rollup`: `status` knows what is swapped out. (Their anonymous pages are in
    /// every sample: resident less shared.)
    fn read_swap(&mut self, tree: &mut Tree, now_ns: u64) {
        for sample in &mut self.samples {
            let Some(process) = tree.processes.get_mut(&sample.pid) else {
                continue;
            };
            let looks = &mut process.looks;
            let rate = looks.rollup_rate.unwrap_or(self.rollup_rate);
            if looks.resident as f64 * rate <= LONGEST_ROLLUP_NS || now_ns < looks.next_swap_ns {
                continue;
            }
            looks.next_swap_ns = now_ns + SWAP_NS;
            let status = tree.reader.process(sample.pid, "status").unwrap_or_default();
            sample.swap_bytes = kilobytes(status, "VmSwap:");
        }
    }
}

/// Open descriptors: from Linux 6.2 on the size of the folder, before that its entries.
fn descriptors(pid: u32) -> Option<u32> {
    let folder = format!("/proc/{pid}/fd");
    match fs::metadata(&folder).ok()?.len() {
        0 => Some(fs::read_dir(&folder).ok()?.count() as u32),
        size => Some(size as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_whole() {
        let pid = std::process::id();
        let mut tree = Tree::new("mark");
        tree.plant(pid, 1);
        let mut sampler = Sampler::new();
        let samples = sampler.look(&mut tree, ProcessLimits::default(), 2_000_000_000).to_vec();
        let sample = samples.iter().find(|sample| sample.pid == pid).expect("it is alive");
        assert!(sample.rss_bytes > sample.shared_bytes && sample.pss_bytes.is_some());
        assert!(sample.threads >= Some(1) && sample.fds >= Some(3) && sample.cpu_ns.is_some());
        assert!(
            sampler
                .look(&mut tree, ProcessLimits::default(), 2_250_000_000)
                .iter()
                .all(|sample| sample.threads.is_none())
        );
    }

    #[test]
    fn no_look_is_begun_that_would_take_long() {
        let sampler = Sampler::new();
        let looks = |resident, rollup_rate| Looks { resident, rollup_rate, ..Looks::default() };
        assert!(sampler.predict(&looks(742_000_000, None)) <= LONGEST_ROLLUP_NS);
        assert!(sampler.predict(&looks(4_000_000_000, None)) > LONGEST_ROLLUP_NS);
        assert!(sampler.predict(&looks(4_000_000_000, Some(0.001))) <= LONGEST_ROLLUP_NS);
    }

    #[test]
    fn an_ended_process_is_buried_with_its_record() {
        let mut tree = Tree::new("mark");
        tree.plant(u32::MAX, 7);
        tree.changes.clear();
        assert!(Sampler::new().look(&mut tree, ProcessLimits::default(), 8).is_empty());
        assert_eq!((tree.living().count(), tree.processes.len()), (0, 1));
        Sampler::new().look(&mut tree, ProcessLimits::default(), 9_000_000_000);
        assert!(tree.processes.is_empty());
        assert_eq!(tree.changes.len(), 1);
    }
}
