//! The control group around the run: its memory limit, its level, and how often the kernel killed in it.
//!
//! Version 2 and version 1, in a container (where the path in `/proc/self/cgroup` may not exist below the mount) or
//! not. The limit is that of the nearest ancestor which has one; kills are counted in the nearest which counts them.

use std::fs::File;
use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};

use crate::proc::{Reader, line, number};

/// Names of the files in one version.
#[derive(Debug)]
struct Files {
    limit: &'static str,
    level: &'static str,
    events: &'static str,
    /// Page cache in `memory.stat`, which the kernel gives back before it kills.
    cache: [&'static str; 2],
}

const VERSION_2: Files = Files {
    limit: "memory.max",
    level: "memory.current",
    events: "memory.events",
    cache: ["inactive_file ", "active_file "],
};

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    level: "memory.usage_in_bytes",
    events: "memory.oom_control",
    cache: ["total_inactive_file ", "total_active_file "],
};

/// What version 1 says for "no limit" lies just below this, depending on the page size.
const NO_LIMIT: u64 = 1 << 62;

/// The control group, found once; empty where there is none to be seen.
#[derive(Debug, Default)]
pub(crate) struct Cgroup {
    limited: Option<Limited>,
    /// File with the line `oom_kill N`.
    events: Option<Utf8PathBuf>,
}

/// The nearest one with a limit.
#[derive(Debug)]
struct Limited {
    folder: Utf8PathBuf,
    files: &'static Files,
    limit: u64,
    /// Kept open: it is read with every look.
    level: Option<File>,
}

impl Cgroup {
    /// The control group of the calling process, with `/proc` at `proc_root` and the mounts at `cgroup_root`.
    pub(crate) fn find(proc_root: &Utf8Path, cgroup_root: &Utf8Path) -> Self {
        let table = std::fs::read_to_string(proc_root.join("self/cgroup")).unwrap_or_default();
        Self::of(&table, cgroup_root)
    }

    /// The control group of a process whose `/proc/PID/cgroup` says this.
    pub(crate) fn of(table: &str, cgroup_root: &Utf8Path) -> Self {
        let mut found = Self::default();
        for row in table.lines() {
            let mut fields = row.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            if controllers.is_empty() {
                found.look(cgroup_root, path, &VERSION_2);
                found.look(&cgroup_root.join("unified"), path, &VERSION_2);
            } else if controllers.split(',').any(|name| name == "memory") {
                found.look(&cgroup_root.join("memory"), path, &VERSION_1);
            }
        }
        found
    }

    /// Looks from the path up to the mount.
    fn look(&mut self, mount: &Utf8Path, path: &str, files: &'static Files) {
        let leaf = mount.join(path.trim_start_matches('/'));
        for folder in leaf.ancestors().take_while(|folder| folder.starts_with(mount)) {
            if self.events.is_none() && oom_kills(&folder.join(files.events)).is_some() {
                self.events = Some(folder.join(files.events));
            }
            if self.limited.is_some() {
                continue;
            }
            let limit = std::fs::read(folder.join(files.limit)).ok().and_then(|text| number(&text));
            if let Some(limit) = limit.filter(|&limit| limit < NO_LIMIT) {
                let level = File::open(folder.join(files.level)).ok();
                self.limited = Some(Limited { folder: folder.into(), files, limit, level });
            }
        }
    }

    /// Limit that is nearest, in bytes.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.limited.as_ref().map(|limited| limited.limit)
    }

    /// Folder of the group with the limit.
    pub(crate) fn folder(&self) -> Option<&Utf8Path> {
        self.limited.as_ref().map(|limited| limited.folder.as_path())
    }

    /// Bytes charged to the group with the limit, page cache included.
    pub(crate) fn level(&self, reader: &mut Reader) -> Option<u64> {
        number(reader.read(self.limited.as_ref()?.level.as_ref()?).ok()?)
    }

    /// Page cache in that group, in bytes. Dearer than [`Self::level`]: the kernel gathers it from all processors.
    pub(crate) fn cache(&self, reader: &mut Reader) -> Option<u64> {
        let limited = self.limited.as_ref()?;
        let statistics = reader.open(limited.folder.join("memory.stat")).ok()?;
        limited.files.cache.iter().map(|name| line(statistics, name)).sum()
    }

    /// Processes of the group that the kernel has killed for want of memory, since the group was made.
    pub(crate) fn oom_kills(&self) -> Option<u64> {
        oom_kills(self.events.as_deref()?)
    }
}

/// The nearest limit of a control group around the calling process and what is left below it, page cache counted as
/// free, in bytes; `None` where nothing limits it.
pub fn room(options: &crate::Options) -> Option<(u64, u64)> {
    let cgroup = Cgroup::find(&options.proc_root, &options.cgroup_root);
    let mut reader = Reader::new();
    let (limit, level) = (cgroup.limit()?, cgroup.level(&mut reader)?);
    let cache = cgroup.cache(&mut reader).unwrap_or(0);
    Some((limit, limit.saturating_sub(level.saturating_sub(cache))))
}

fn oom_kills(events: &Utf8Path) -> Option<u64> {
    let mut text = Vec::new();
    File::open(events).ok()?.read_to_end(&mut text).ok()?;
    line(&text, "oom_kill ")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
pub(crate) mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    /// The files of a machine that are looked at, in a folder of their own.
    pub(crate) struct Machine(tempfile::TempDir);

    impl Machine {
        /// With this `/proc/self/cgroup`, and these files of control groups.
        pub(crate) fn with(table: &str, files: &[(&str, &str)]) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            let all = files.iter().map(|&(path, text)| (machine.groups().join(path), text));
            for (path, text) in all.chain([(machine.proc().join("self/cgroup"), table)]) {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            machine
        }

        pub(crate) fn proc(&self) -> Utf8PathBuf {
            self.root().join("proc")
        }

        pub(crate) fn groups(&self) -> Utf8PathBuf {
            self.root().join("fs")
        }

        fn root(&self) -> &Utf8Path {
            Utf8Path::from_path(self.0.path()).unwrap()
        }
    }

    /// Compares limit, level and kills on a machine with these files.
    fn check(table: &str, files: &[(&str, &str)], expected: (Option<u64>, Option<u64>, Option<u64>)) {
        let machine = Machine::with(table, files);
        let found = Cgroup::find(&machine.proc(), &machine.groups());
        assert_eq!((found.limit(), found.level(&mut Reader::new()), found.oom_kills()), expected);
    }

    #[test]
    fn the_nearest_limit_above_counts() {
        let files = [
            ("a/memory.max", "5000\n"),
            ("a/memory.current", "400\n"),
            ("a/memory.events", "low 0\noom 3\noom_kill 3\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "300\n"),
            ("a/b/memory.events", "low 0\noom 2\noom_kill 2\noom_group_kill 0\n"),
        ];
        check("0::/a/b\n", &files, (Some(5000), Some(400), Some(2)));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_mount() {
        let files = [("memory.max", "7000\n"), ("memory.current", "70\n"), ("memory.events", "oom_kill 0\n")];
        check("0::/docker/0123/not/below/the/mount\n", &files, (Some(7000), Some(70), Some(0)));
    }

    #[test]
    fn version_1_is_understood() {
        let files = [
            ("memory/job/memory.limit_in_bytes", "8000\n"),
            ("memory/job/memory.usage_in_bytes", "80\n"),
            ("memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("unified/job/cgroup.procs", ""),
        ];
        check("9:cpu,cpuacct:/x\n4:memory:/job\n0::/job\n", &files, (Some(8000), Some(80), Some(4)));
    }

    #[test]
    fn no_limit_is_none() {
        let files = [("memory/memory.limit_in_bytes", "9223372036854771712\n")];
        check("4:memory:/\n0::/\n", &files, (None, None, None));
        check("", &[], (None, None, None));
    }
}
