//! A limit around the command that the kernel enforces, for what the guard is too slow for: a leap to many times the
//! budget between two readings ends the command then, and not the machine.
//!
//! There are several means, of which the first that works here is taken: a control group counts all processes together
//! and is the kernel's own affair; systemd makes one where only it may; a limit on the data of each process comes last,
//! but lets the program catch the error.

mod choose;
mod group;
mod scope;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

use caulk_core::Bytes;
use rustix::process::{Resource, getrlimit, setrlimit};

use self::group::{Group, Parent};
use self::scope::Manager;

pub use self::choose::NoHardLimit;

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

impl HardLimit {
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
