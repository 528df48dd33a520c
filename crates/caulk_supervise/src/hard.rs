//! A limit around the command that the kernel enforces, for what the guard is too slow for: a leap to many times the
//! budget between two readings ends the command then, and not the machine.
//!
//! There are several means, of which the first that works here is taken: a control group counts all processes together
//! and is the kernel's own affair; systemd makes one where only it may; a limit on the data of each process comes last,
//! but lets the program catch the error.

mod group;
mod scope;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

use caulk_core::Bytes;
use rustix::process::{Resource, getrlimit, setrlimit};

use self::group::{Group, Parent};
use self::scope::Manager;
use crate::Options;

/// By what the kernel keeps a command below a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// A control group of the command's own, version 2 or 1.
    Cgroup,
    /// A scope that systemd makes.
    Systemd,
    /// `RLIMIT_DATA` of each process.
    Data,
}

/// A means, with what is known of it here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Group(Parent),
    Scope(Manager),
    Data,
}

/// A limit, and how it is enforced here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardLimit {
    bytes: u64,
    found: Found,
    /// What was tried before, and why it does not work here.
    refused: Vec<String>,
}

/// Finds out whether a limit of so many bytes can be set by one means, or why not.
type Attempt = fn(&Options, u64) -> Result<Found, String>;

const TRIES: [(Means, Attempt); 4] = [
    (Means::Cgroup, |options, bytes| Parent::version_2(options, bytes).map(Found::Group)),
    (Means::Systemd, |_, bytes| Manager::find(bytes).map(Found::Scope)),
    (Means::Cgroup, |options, bytes| Parent::version_1(options, bytes).map(Found::Group)),
    (Means::Data, |_, _| Ok(Found::Data)),
];

/// None of the means that were asked for works here.
#[derive(Debug, thiserror::Error)]
#[error("no hard limit can be set here: {}", .0.join("; "))]
pub struct NoHardLimit(Vec<String>);

impl HardLimit {
    /// The first means that works here, or the one that is wanted. What is tried is undone.
    ///
    /// # Errors
    /// If the one that is wanted does not work.
    pub fn choose(options: &Options, bytes: u64, wanted: Option<Means>) -> Result<Self, NoHardLimit> {
        let mut refused = Vec::new();
        for (_, attempt) in TRIES.iter().filter(|(means, _)| wanted.is_none_or(|wanted| wanted == *means)) {
            match attempt(options, bytes) {
                Ok(found) => return Ok(Self { bytes, found, refused }),
                Err(reason) => refused.push(reason),
            }
        }
        Err(NoHardLimit(refused))
    }

    /// What holds, then why nothing better does, for people.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let bytes = Bytes(self.bytes);
        let holds = match &self.found {
            Found::Group(parent) => {
                format!("the kernel kills the program beyond {bytes}: a control group of its own in {parent}")
            }
            Found::Scope(_) => format!("the kernel kills the program beyond {bytes}: a scope of systemd"),
            Found::Data => format!(
                "the kernel grants each process {bytes} of data (RLIMIT_DATA): beyond that it gets errors that it can catch"
            ),
        };
        let refused = self.refused.iter().map(|reason| format!("no better hard limit here: {reason}"));
        [holds].into_iter().chain(refused)
    }

    /// Makes what the command is to be put into.
    ///
    /// # Errors
    /// What the system says where it lets nobody make it any more.
    pub(crate) fn prepare(&self) -> io::Result<Prepared> {
        Ok(match &self.found {
            Found::Group(parent) => {
                let group = parent.make(self.bytes)?;
                let entry = Entry { door: Some(group.door()?), data: None };
                Prepared { entry, group: Some(group), manager: None }
            }
            Found::Scope(manager) => {
                Prepared { manager: Some((*manager, self.bytes)), ..Prepared::default() }
            }
            Found::Data => {
                let entry = Entry { door: None, data: Some(self.bytes) };
                Prepared { entry, ..Prepared::default() }
            }
        })
    }
}

/// A limit for one life, gone when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    entry: Entry,
    /// Removed with this.
    #[expect(dead_code, reason = "kept for its end")]
    group: Option<Group>,
    manager: Option<(Manager, u64)>,
}

/// What the forked child does before it becomes the command.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    door: Option<File>,
    data: Option<u64>,
}

impl Prepared {
    /// For the one child that is to be put into it.
    pub(crate) fn entry(&mut self) -> Entry {
        std::mem::take(&mut self.entry)
    }

    /// What starts the command in it.
    pub(crate) fn words(&self, command: &[OsString]) -> Vec<OsString> {
        match self.manager {
            Some((manager, bytes)) => manager.words(bytes, command),
            None => command.to_vec(),
        }
    }
}

impl Entry {
    /// Puts the calling process into the limit; async-signal-safe.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if let Some(mut door) = self.door.as_ref() {
            // "The writing process", for both versions.
            door.write_all(b"0")?;
        }
        if let Some(data) = self.data {
            // The soft limit alone: a program that knows better may raise it again.
            let mut limit = getrlimit(Resource::Data);
            let least = [limit.current, limit.maximum].into_iter().flatten().fold(data, u64::min);
            limit.current = Some(least);
            setrlimit(Resource::Data, limit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;
    use crate::cgroup::tests::Machine;

    /// Why no control group can be made on a machine with these files.
    fn check(table: &str, files: &[(&str, &str)], reasons: [&str; 2]) {
        let machine = Machine::with(table, files);
        let mut options = Options::new(Vec::new());
        (options.proc_root, options.cgroup_root) = (machine.proc(), machine.groups());
        let error = HardLimit::choose(&options, 1 << 30, Some(Means::Cgroup)).unwrap_err();
        for (said, reason) in error.0.iter().zip(reasons) {
            assert!(said.contains(reason), "{said}");
        }
    }

    #[test]
    fn where_no_group_can_be_made_the_reason_is_said() {
        let none = ["no control groups of version 2", "no control groups of version 1"];
        check("", &[], none);
        check("4:memory:/job\n0::/job\n", &[], none);
        let other = [("job/cgroup.procs", ""), ("job/cgroup.controllers", "cpu pids\n")];
        check("0::/job\n", &other, ["limits no memory", none[1]]);
        let plain = [
            ("cgroup.procs", ""),
            ("cgroup.controllers", "cpu memory\n"),
            ("cgroup.subtree_control", "memory\n"),
        ];
        check("0::/elsewhere\n", &plain, ["no control group can be made in", none[1]]);
    }

    #[test]
    fn a_limit_for_each_process_can_be_set_anywhere() {
        let limit = HardLimit::choose(&Options::new(Vec::new()), 1 << 30, Some(Means::Data)).unwrap();
        let command = ["python".into(), "train.py".into()];
        assert_eq!(limit.prepare().unwrap().words(&command), command);
        let lines: Vec<String> = limit.lines().collect();
        assert!(matches!(&lines[..], [line] if line.contains("RLIMIT_DATA")), "{lines:?}");
    }

    #[test]
    fn a_scope_is_made_by_the_manager_of_the_user() {
        let words = |manager: Manager| {
            let words = manager.words(4096, &["python".into(), "-V".into()]);
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        let rest = "--scope --quiet --collect --property=MemoryMax=4096 -- python -V";
        assert_eq!(words(Manager::System), format!("systemd-run {rest}"));
        assert_eq!(words(Manager::User), format!("systemd-run --user {rest}"));
    }
}
