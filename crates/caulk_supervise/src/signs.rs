//! What a process has been seen or heard to be: by its command line, its parent and its agent.

use caulk_core::wire::{Boundary, Hello, Unit};

/// What the command line of a process says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not Python.
    #[default]
    Foreign,
    /// A Python interpreter.
    Python,
    /// One that `multiprocessing` spawned to run a function.
    Spawned,
    /// A server or tracker of `multiprocessing`.
    Helper,
}

impl Kind {
    /// Judges the executable's file name (or the first argument's, where the link cannot be read) and the arguments.
    pub(crate) fn of(executable: &str, arguments: &[String]) -> Self {
        let file = executable.rsplit('/').next().unwrap_or_default();
        if !["python", "pypy"].iter().any(|name| file.starts_with(name)) {
            return Self::Foreign;
        }
        let says = |text: &str| arguments.iter().any(|argument| argument.contains(text));
        if says("multiprocessing.spawn import spawn_main") {
            Self::Spawned
        } else if says("multiprocessing.forkserver import main") || says("multiprocessing.resource_tracker") {
            Self::Helper
        } else {
            Self::Python
        }
    }
}

/// What a process has been seen or heard to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signs {
    pub(crate) kind: Kind,
    /// Runs its parent's command line: forked from it, or about to become something else.
    pub(crate) forked: bool,
    /// Rank in a distributed job, from its agent.
    pub(crate) rank: Option<u32>,
    /// Number as a `DataLoader` worker, from its agent.
    pub(crate) worker: Option<u32>,
    pub(crate) claim: Claim,
}

/// How good a claim a process has to be the main one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    #[default]
    None,
    /// Its agent reports boundaries by time.
    Runs,
    /// It has started ranks by `multiprocessing`.
    Spawns,
    /// Its agent reports steps or epochs.
    Trains,
}

impl Signs {
    /// Has its parent made it to run a function, rather than another program?
    pub(crate) fn is_made_by_parent(self) -> bool {
        self.kind == Kind::Spawned || (self.forked && self.kind != Kind::Foreign)
    }

    /// A rank that the program has started itself, and no launcher.
    pub(crate) fn is_spawned_rank(self) -> bool {
        self.claim == Claim::Trains
            && self.rank.is_some()
            && self.worker.is_none()
            && self.is_made_by_parent()
    }

    pub(crate) fn hear_hello(&mut self, hello: &Hello) {
        self.rank = hello.rank.or(self.rank);
        self.worker = hello.worker.or(self.worker);
    }

    /// A boundary that is another process's says nothing of this one.
    pub(crate) fn hear_boundary(&mut self, boundary: &Boundary) {
        if boundary.of != 0 {
            return;
        }
        let trains = boundary.steps > 0 || boundary.unit != Unit::Seconds;
        self.claim = self.claim.max(if trains { Claim::Trains } else { Claim::Runs });
    }
}
