//! What surrounds the processes: the control group, the machine's memory, the kernel's counts of OOM kills.

use std::collections::VecDeque;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{Limits, SystemSample};

use crate::cgroup::Cgroup;
use crate::death::{Evidence, Filled, Kills, Level};
use crate::proc::{Reader, kilobytes, line};
use crate::progress::Room;

/// Levels of the last moments decide what a kill was: those not older than this before the last, in nanoseconds.
const LAST_MOMENTS_NS: u64 = 1_500_000_000;

/// Page cache is looked at where the group is this full: the kernel gives it back before it kills.
const NEARLY_FULL: f64 = 0.9;

/// Everything around the run.
#[derive(Debug)]
pub(crate) struct Surroundings {
    cgroup: Cgroup,
    proc_root: Utf8PathBuf,
    reader: Reader,
    limits: Limits,
    kills_before: (Option<u64>, Option<u64>),
    levels: VecDeque<Look>,
    resident: u64,
}

/// What one look saw in use, with its limit, in bytes.
#[derive(Debug, Clone, Copy)]
struct Look {
    time_ns: u64,
    cgroup: Option<(u64, u64)>,
    machine: Option<(u64, u64)>,
}

impl Surroundings {
    pub(crate) fn new(proc_root: &Utf8Path, cgroup_root: &Utf8Path, budget: Option<u64>) -> Self {
        let cgroup = Cgroup::find(proc_root, cgroup_root);
        let mut reader = Reader::new();
        let memory = reader.open(proc_root.join("meminfo")).unwrap_or_default();
        let physical_bytes = kilobytes(memory, "MemTotal:").unwrap_or(0);
        // A limit beyond the machine's memory does not bind.
        let cgroup_bytes = cgroup.limit().filter(|&limit| physical_bytes == 0 || limit <= physical_bytes);
        let cgroup_start_bytes = cgroup_bytes.and_then(|_| cgroup.level(&mut reader));
        let limits = Limits { cgroup_bytes, cgroup_start_bytes, physical_bytes, budget_bytes: budget };
        let mut surroundings = Self {
            cgroup,
            proc_root: proc_root.to_owned(),
            reader,
            limits,
            kills_before: (None, None),
            levels: VecDeque::new(),
            resident: 0,
        };
        surroundings.kills_before = surroundings.kills();
        surroundings
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// One look, with what the processes of the tree have resident.
    pub(crate) fn look(&mut self, now_ns: u64, resident: u64, processes: u32) -> SystemSample {
        self.resident = resident;
        let cgroup_bytes = self.cgroup.level(&mut self.reader);
        let available_bytes = self.available();
        let level = self.level(now_ns, cgroup_bytes, available_bytes);
        self.levels.push_back(level);
        while self.levels.front().is_some_and(|look| look.time_ns + LAST_MOMENTS_NS < now_ns) {
            self.levels.pop_front();
        }
        SystemSample { time_ns: now_ns, cgroup_bytes, available_bytes, tree_rss_bytes: resident, processes }
    }

    /// What there is to tell a kill by, now that the command has ended.
    pub(crate) fn evidence(&mut self) -> Evidence {
        let (cgroup, machine) = self.kills();
        let counted = |before: Option<u64>, after: Option<u64>| {
            before.zip(after).map(|(before, after)| Kills { before, after })
        };
        let filled = |of: fn(&Look) -> Option<(u64, u64)>| highest(self.levels.iter().filter_map(of));
        Evidence {
            cgroup: counted(self.kills_before.0, cgroup),
            machine: counted(self.kills_before.1, machine),
            level: Level { cgroup: filled(|look| look.cgroup), machine: filled(|look| look.machine) },
        }
    }

    /// How much room is left below each limit.
    pub(crate) fn rooms(&mut self) -> Vec<Room> {
        let cgroup = self.cgroup.level(&mut self.reader);
        let cache = self.cgroup.cache(&mut self.reader).unwrap_or(0);
        let cgroup = cgroup.zip(self.limits.cgroup_bytes);
        let cgroup = cgroup.map(|(used, limit)| Room { used: used.saturating_sub(cache), limit });
        let physical = self.limits.physical_bytes;
        let machine = Room { used: physical.saturating_sub(self.available()), limit: physical };
        let budget = self.limits.budget_bytes.map(|limit| Room { used: self.resident, limit });
        let machine = Some(machine).filter(|_| physical > 0);
        cgroup.into_iter().chain(machine).chain(budget).collect()
    }

    /// What is in use in the control group with a limit, page cache left out, and the limit, in bytes.
    pub(crate) fn room_in_group(&mut self) -> Option<(u64, u64)> {
        let (used, limit) = (self.cgroup.level(&mut self.reader)?, self.limits.cgroup_bytes?);
        // Far from the limit the cache does not matter, and it is dear to ask for.
        let cache = if used > limit / 2 { self.cgroup.cache(&mut self.reader).unwrap_or(0) } else { 0 };
        Some((used.saturating_sub(cache), limit))
    }

    /// Folder of the control group with a limit.
    pub(crate) fn group(&self) -> Option<&Utf8Path> {
        self.cgroup.folder().filter(|_| self.limits.cgroup_bytes.is_some())
    }

    fn available(&mut self) -> u64 {
        let memory = self.reader.open(self.proc_root.join("meminfo")).unwrap_or_default();
        kilobytes(memory, "MemAvailable:").unwrap_or(0)
    }

    fn level(&mut self, time_ns: u64, cgroup: Option<u64>, available: u64) -> Look {
        let physical = self.limits.physical_bytes;
        let cgroup = cgroup.zip(self.limits.cgroup_bytes).map(|(used, limit)| {
            let full = used as f64 >= limit as f64 * NEARLY_FULL;
            let cache = if full { self.cgroup.cache(&mut self.reader).unwrap_or(0) } else { 0 };
            (used.saturating_sub(cache), limit)
        });
        let machine = (physical > 0 && available > 0).then(|| (physical.saturating_sub(available), physical));
        Look { time_ns, cgroup, machine }
    }

    /// OOM kills counted so far, by the control group and by the machine.
    fn kills(&mut self) -> (Option<u64>, Option<u64>) {
        let machine = self.reader.open(self.proc_root.join("vmstat")).unwrap_or_default();
        (self.cgroup.oom_kills(), line(machine, "oom_kill "))
    }
}

/// The highest of the levels, and what one more look would have seen had it risen on as between the last two.
fn highest(levels: impl Iterator<Item = (u64, u64)>) -> Option<Filled> {
    let levels: Vec<(u64, u64)> = levels.collect();
    let &(seen, limit) = levels.iter().max_by_key(|(used, _)| *used)?;
    let next = match levels[..] {
        [.., (before, _), (last, _)] => last + last.saturating_sub(before),
        _ => seen,
    };
    Some(Filled { seen, expected: seen.max(next), limit })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;
    use crate::death::{Ending, classify};
    use caulk_core::{Bytes, Kill};

    const MB: u64 = Bytes::MB;

    /// A machine of 4 GB with a container of 1 GB; the levels that were seen, then what the files say after the death.
    fn check(levels_mb: &[u64], after: &[(&str, String)], expected: Kill) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", "0::/\n");
        write("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3000000 kB\n");
        write("proc/vmstat", "pgfault 1\noom_kill 7\n");
        write("fs/memory.max", &(1024 * MB).to_string());
        write("fs/memory.events", "oom 0\noom_kill 2\n");
        write("fs/memory.stat", &format!("anon 1\ninactive_file {}\nactive_file 0\n", 50 * MB));
        write("fs/memory.current", "0\n");
        let mut around = Surroundings::new(&root.join("proc"), &root.join("fs"), None);
        for (time, level) in (1..).zip(levels_mb) {
            write("fs/memory.current", &(level * MB).to_string());
            let sample = around.look(time * 250_000_000, 0, 1);
            assert_eq!(sample.cgroup_bytes, Some(level * MB));
        }
        for (path, text) in after {
            write(path, text);
        }
        let death = classify(Ending::Signal(libc::SIGKILL), &around.evidence());
        assert_eq!(death.kill, Some(expected), "{}", death.text);
    }

    fn events(kills: u32) -> (&'static str, String) {
        ("fs/memory.events", format!("oom {kills}\noom_kill {kills}\n"))
    }

    #[test]
    fn a_counted_kill_is_told_from_others() {
        check(&[500, 600], &[events(3)], Kill::Oom);
        check(&[500, 600], &[events(2)], Kill::NotOom);
    }

    #[test]
    fn the_level_decides_where_nothing_was_counted() {
        check(&[1010, 1024], &[events(2)], Kill::ProbablyOom);
        // Fast growth: 500 MB in a quarter of a second would have reached the limit before the next look.
        check(&[100, 600], &[events(2)], Kill::ProbablyOom);
        // After a kill the level has dropped already.
        check(&[900, 1024, 100], &[events(2)], Kill::ProbablyOom);
    }

    #[test]
    fn page_cache_does_not_count_as_full() {
        check(&[1000, 1000], &[events(2)], Kill::NotOom);
    }

    #[test]
    fn a_kill_elsewhere_on_the_machine_is_not_ours() {
        check(&[100, 100], &[("proc/vmstat", "oom_kill 9\n".into())], Kill::NotOom);
    }
}
