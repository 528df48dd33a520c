//! What surrounds the processes: the control group, the machine's memory, the kernel's counts of OOM kills.

use std::collections::VecDeque;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{Limits, ProcessLimits, SystemSample};

use crate::cgroup::Cgroup;
use crate::death::{Evidence, Filled, Kills, Level};
use crate::proc::{Reader, kilobytes, line};
use crate::progress::Room;

/// Levels of the last moments decide what a kill was: those not older than this before the last, in nanoseconds.
const LAST_MOMENTS_NS: u64 = 1_500_000_000;

/// Page cache is looked at where the group is this full: the kernel gives it back before it kills.
const NEARLY_FULL: f64 = 0.9;
/// ... and otherwise so often, in nanoseconds.
const CACHE_NS: u64 = 10_000_000_000;

/// Files here are memory, though no process need have mapped them.
const SHM: &str = "/dev/shm";

/// Looks between two readings of the limits that a process has for itself.
const LOOKS_PER_LIMITS: u32 = 8;

/// Everything around the run.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// The control group that the program is in, with what `/proc/PID/cgroup` says.
    cgroup: Counted,
    table: Vec<u8>,
    /// Those that it was in before.
    left: Vec<Counted>,
    proc_root: Utf8PathBuf,
    cgroup_root: Utf8PathBuf,
    reader: Reader,
    limits: Limits,
    /// The process whose own limits were read last, and in how many looks they are read again.
    limited: Option<(u32, u32)>,
    machine_kills_before: Option<u64>,
    levels: VecDeque<Look>,
    next_cache_ns: u64,
    resident: u64,
}

/// A control group, and how often the kernel had killed in it when the program came into it.
#[derive(Debug)]
struct Counted {
    group: Cgroup,
    kills_before: Option<u64>,
}

impl Counted {
    fn new(group: Cgroup) -> Self {
        let kills_before = group.oom_kills();
        Self { group, kills_before }
    }

    fn kills(&self) -> Option<Kills> {
        let (before, after) = self.kills_before.zip(self.group.oom_kills())?;
        Some(Kills { before, after })
    }
}

/// What one look saw in use, with its limit, in bytes.
#[derive(Debug, Clone, Copy)]
struct Look {
    time_ns: u64,
    cgroup: Option<(u64, u64)>,
    machine: Option<(u64, u64)>,
}

/// Size of a file system, in bytes.
fn size(path: &str) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_blocks * found.f_frsize)
}

/// Bytes taken in a file system.
fn taken(path: &str) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize)
}

impl Surroundings {
    /// What is around the calling process, in which the command begins.
    pub(crate) fn new(proc_root: &Utf8Path, cgroup_root: &Utf8Path, budget: Option<u64>) -> Self {
        let mut reader = Reader::new();
        let memory = reader.open(proc_root.join("meminfo")).unwrap_or_default();
        let physical_bytes = kilobytes(memory, "MemTotal:").unwrap_or(0);
        let machine_kills_before = kills_on(proc_root, &mut reader);
        let table = reader.open("/proc/self/cgroup").unwrap_or_default().to_vec();
        let mut surroundings = Self {
            cgroup: Counted::new(Cgroup::find(proc_root, cgroup_root)),
            table,
            left: Vec::new(),
            proc_root: proc_root.to_owned(),
            cgroup_root: cgroup_root.to_owned(),
            reader,
            limits: Limits {
                physical_bytes,
                budget_bytes: budget,
                shm_bytes: size(SHM),
                ..Limits::default()
            },
            limited: None,
            machine_kills_before,
            levels: VecDeque::new(),
            next_cache_ns: 0,
            resident: 0,
        };
        surroundings.measure();
        surroundings.read_limits_of(std::process::id());
        surroundings
    }

    /// Goes after a process into its control group: what starts the program may put it into one of its own
    /// (`systemd-run`, `cgexec`, a batch system), and reads the limits that it has for itself (`ulimit`). The limits if
    /// they are others now.
    pub(crate) fn follow(&mut self, pid: u32) -> Option<Limits> {
        let before = self.limits;
        let table = self.reader.process(pid, "cgroup").ok().filter(|table| *table != self.table);
        if let Some(table) = table.map(<[u8]>::to_vec) {
            self.enter(table);
        }
        self.read_limits_of(pid);
        (self.limits != before).then_some(self.limits)
    }

    /// Limits that a process has for itself, now and then: it may set others.
    fn read_limits_of(&mut self, pid: u32) {
        let wait = self.limited.filter(|(known, _)| *known == pid).map_or(0, |(_, wait)| wait);
        if wait > 0 {
            self.limited = Some((pid, wait - 1));
            return;
        }
        self.limited = Some((pid, LOOKS_PER_LIMITS));
        // A process that has ended has none to read.
        if let Ok(limits) = self.reader.process(pid, "limits") {
            self.limits.each = ProcessLimits {
                address_space_bytes: line(limits, "Max address space"),
                data_bytes: line(limits, "Max data size"),
                open_files: line(limits, "Max open files"),
            };
        }
    }

    fn enter(&mut self, table: Vec<u8>) {
        let group = Cgroup::of(&String::from_utf8_lossy(&table), &self.cgroup_root);
        self.table = table;
        self.left.push(std::mem::replace(&mut self.cgroup, Counted::new(group)));
        // Levels of another group are not compared with this one's limit.
        self.levels.clear();
        self.next_cache_ns = 0;
        self.measure();
    }

    /// The limit of the present control group, and what others take of it.
    fn measure(&mut self) {
        let physical = self.limits.physical_bytes;
        let group = &self.cgroup.group;
        // A limit beyond the machine's memory does not bind.
        let limit = group.limit().filter(|&limit| physical == 0 || limit <= physical);
        let level = limit.and_then(|_| group.level(&mut self.reader));
        self.limits.cgroup_bytes = limit;
        self.limits.cgroup_start_bytes = level.map(|level| level.saturating_sub(self.resident));
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// One look, with what the processes of the tree have resident.
    pub(crate) fn look(&mut self, now_ns: u64, resident: u64, processes: u32) -> SystemSample {
        self.resident = resident;
        let cgroup_bytes = self.cgroup.group.level(&mut self.reader);
        let available_bytes = self.available();
        let cgroup_cache_bytes = self.page_cache(now_ns, cgroup_bytes);
        let level = self.level(now_ns, cgroup_bytes, cgroup_cache_bytes, available_bytes);
        self.levels.push_back(level);
        while self.levels.front().is_some_and(|look| look.time_ns + LAST_MOMENTS_NS < now_ns) {
            self.levels.pop_front();
        }
        SystemSample {
            time_ns: now_ns,
            cgroup_bytes,
            cgroup_cache_bytes,
            available_bytes,
            tree_rss_bytes: resident,
            processes,
            shm_used_bytes: taken(SHM),
        }
    }

    /// What there is to tell a kill by, now that the command has ended.
    pub(crate) fn evidence(&mut self) -> Evidence {
        let machine = self.machine_kills_before.zip(kills_on(&self.proc_root, &mut self.reader));
        let filled = |of: fn(&Look) -> Option<(u64, u64)>| highest(self.levels.iter().filter_map(of));
        Evidence {
            cgroup: self.kills(),
            machine: machine.map(|(before, after)| Kills { before, after }),
            level: Level { cgroup: filled(|look| look.cgroup), machine: filled(|look| look.machine) },
        }
    }

    /// OOM kills in the control group that the program was in last, unless there were some in one before. A group may be
    /// gone with its last process, and its count with it.
    fn kills(&self) -> Option<Kills> {
        let left = self.left.iter().filter_map(Counted::kills).find(|kills| kills.after > kills.before);
        self.cgroup.kills().filter(|kills| left.is_none() || kills.after > kills.before).or(left)
    }

    /// How much room was left below each limit at the last look.
    pub(crate) fn last_rooms(&self) -> Vec<Room> {
        let room = |(used, limit)| Room { used, limit };
        let last = self.levels.back();
        let system = last.into_iter().flat_map(|look| [look.cgroup, look.machine]).flatten().map(room);
        let budget = self.limits.budget_bytes.map(|limit| Room { used: self.resident, limit });
        system.chain(budget).collect()
    }

    /// How much room is left below each limit.
    pub(crate) fn rooms(&mut self) -> Vec<Room> {
        let cgroup = self.cgroup.group.level(&mut self.reader);
        let cache = self.cgroup.group.cache(&mut self.reader).unwrap_or(0);
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
        let (used, limit) = (self.cgroup.group.level(&mut self.reader)?, self.limits.cgroup_bytes?);
        // Far from the limit the cache does not matter, and it is dear to ask for.
        let cache = if used > limit / 2 { self.cgroup.group.cache(&mut self.reader).unwrap_or(0) } else { 0 };
        Some((used.saturating_sub(cache), limit))
    }

    /// Folder of the control group with a limit.
    pub(crate) fn group(&self) -> Option<&Utf8Path> {
        self.cgroup.group.folder().filter(|_| self.limits.cgroup_bytes.is_some())
    }

    /// Whether the program is still in the control group in which it was started: the supervisor's.
    pub(crate) fn shares_group(&self) -> bool {
        let first = self.left.first().unwrap_or(&self.cgroup);
        first.group.folder() == self.cgroup.group.folder()
    }

    fn available(&mut self) -> u64 {
        let memory = self.reader.open(self.proc_root.join("meminfo")).unwrap_or_default();
        kilobytes(memory, "MemAvailable:").unwrap_or(0)
    }

    /// Page cache in the group, where it is time to look or the group is nearly full.
    fn page_cache(&mut self, now_ns: u64, used: Option<u64>) -> Option<u64> {
        if !is_nearly_full(used?, self.limits.cgroup_bytes?) && now_ns < self.next_cache_ns {
            return None;
        }
        self.next_cache_ns = now_ns + CACHE_NS;
        self.cgroup.group.cache(&mut self.reader)
    }

    fn level(&self, time_ns: u64, cgroup: Option<u64>, cache: Option<u64>, available: u64) -> Look {
        let physical = self.limits.physical_bytes;
        // The levels of the last moments are compared: below that none of them is without its cache.
        let cgroup = cgroup.zip(self.limits.cgroup_bytes).map(|(used, limit)| {
            let cache = cache.filter(|_| is_nearly_full(used, limit)).unwrap_or(0);
            (used.saturating_sub(cache), limit)
        });
        let machine = (physical > 0 && available > 0).then(|| (physical.saturating_sub(available), physical));
        Look { time_ns, cgroup, machine }
    }
}

/// OOM kills that the machine has counted so far.
fn kills_on(proc_root: &Utf8Path, reader: &mut Reader) -> Option<u64> {
    line(reader.open(proc_root.join("vmstat")).unwrap_or_default(), "oom_kill ")
}

fn is_nearly_full(used: u64, limit: u64) -> bool {
    used as f64 >= limit as f64 * NEARLY_FULL
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

    /// A machine of 4 GB with a container of 1 GB, in which two processes were killed before.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.write("proc/self/cgroup", "0::/\n");
            machine.write("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3000000 kB\n");
            machine.write("proc/vmstat", "pgfault 1\noom_kill 7\n");
            machine.group("fs", 1024, 2);
            machine
        }

        fn root(&self) -> &Utf8Path {
            Utf8Path::from_path(self.0.path()).unwrap()
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn group(&self, folder: &str, limit_mb: u64, kills: u64) {
            self.write(&format!("{folder}/memory.max"), &(limit_mb * MB).to_string());
            self.write(&format!("{folder}/memory.events"), &format!("oom 0\noom_kill {kills}\n"));
            self.write(
                &format!("{folder}/memory.stat"),
                &format!("anon 1\ninactive_file {}\nactive_file 0\n", 50 * MB),
            );
            self.write(&format!("{folder}/memory.current"), "0\n");
        }

        fn around(&self) -> Surroundings {
            Surroundings::new(&self.root().join("proc"), &self.root().join("fs"), None)
        }
    }

    /// The levels that were seen, then what the files say after the death.
    fn check(levels_mb: &[u64], after: &[(&str, String)], expected: Kill) {
        let machine = Machine::new();
        let mut around = machine.around();
        for (time, level) in (1..).zip(levels_mb) {
            machine.write("fs/memory.current", &(level * MB).to_string());
            let sample = around.look(time * 250_000_000, 0, 1);
            assert_eq!(sample.cgroup_bytes, Some(level * MB));
            let read = time == 1 || *level as f64 >= 1024.0 * NEARLY_FULL;
            assert_eq!(sample.cgroup_cache_bytes, read.then_some(50 * MB), "the statistics are dear");
        }
        for (path, text) in after {
            machine.write(path, text);
        }
        check_kill(&mut around, expected);
    }

    fn check_kill(around: &mut Surroundings, expected: Kill) {
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

    #[test]
    fn a_program_is_followed_into_a_group_of_its_own() {
        let machine = Machine::new();
        machine.group("fs/job", 200, 5);
        let mut around = machine.around();
        assert_eq!(around.limits().cgroup_bytes, Some(1024 * MB));
        around.look(0, 30 * MB, 1);
        machine.write("fs/job/memory.current", &(40 * MB).to_string());
        around.enter(b"0::/job\n".to_vec());
        let limits = around.limits();
        assert_eq!((limits.cgroup_bytes, limits.cgroup_start_bytes), (Some(200 * MB), Some(10 * MB)));
        check_kill(&mut around, Kill::NotOom);
        machine.write("fs/job/memory.events", "oom_kill 6\n");
        check_kill(&mut around, Kill::Oom);
    }

    #[test]
    fn of_a_group_that_is_gone_the_machine_knows() {
        let machine = Machine::new();
        machine.group("fs/job", 200, 0);
        let mut around = machine.around();
        around.enter(b"0::/job\n".to_vec());
        std::fs::remove_dir_all(machine.root().join("fs/job")).unwrap();
        machine.write("proc/vmstat", "oom_kill 8\n");
        check_kill(&mut around, Kill::Oom);
    }

    #[test]
    fn a_process_in_the_same_group_changes_nothing() {
        assert_eq!(Machine::new().around().follow(std::process::id()), None);
    }
}
