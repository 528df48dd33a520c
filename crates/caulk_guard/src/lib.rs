//! Keeps a training below a memory budget: what to do at which level, and whether to start it again after its end.
//!
//! Readings and answers in, actions out: knows no processes, files, signals or clocks. [`Guard`] watches one life of
//! the command, [`Lives`] decides between two of them, [`Agreement`] finds the step at which all ranks can act.

mod agreement;
mod checkpoint;
mod growth;
mod guard;
mod ladder;
mod lives;
mod resume;

use caulk_core::Bytes;

pub use agreement::{Agreement, Move};
pub use checkpoint::{Checkpoint, choose};
pub use guard::{Action, Answer, Guard, Standing, Wish};
pub use ladder::{Ladder, Rung};
pub use lives::{Decision, End, EndedLife, Lives, is_out_of_memory};
pub use resume::{Resume, ResumeError};

/// What limits the memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardLimit {
    /// `--budget`: the anonymous and shared memory of the process tree.
    Budget,
    /// `--gpu-budget`: what torch has reserved on GPUs.
    Gpu,
    /// The control group's memory limit.
    Cgroup,
    /// The `RLIMIT_DATA` of a process.
    Data,
    /// The `RLIMIT_AS` of a process.
    AddressSpace,
}

impl GuardLimit {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Budget => "the budget",
            Self::Gpu => "the GPU budget",
            Self::Cgroup => "the control group's limit",
            Self::Data => "the process's data limit (RLIMIT_DATA)",
            Self::AddressSpace => "the process's address space limit (RLIMIT_AS)",
        }
    }
}

/// Memory in use against one limit, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What limits it.
    pub limit: GuardLimit,
    /// In use.
    pub used: u64,
    /// The most that may be.
    pub most: u64,
}

impl Room {
    /// `3.2 GB of 4.0 GB, the budget`.
    pub fn text(&self) -> String {
        format!("{} of {}, {}", Bytes(self.used), Bytes(self.most), self.limit.name())
    }

    /// So many times what there may be is in use.
    fn is_beyond(&self, times: f64) -> bool {
        self.used as f64 >= self.most as f64 * times
    }

    /// All of it is in use.
    pub fn is_full(&self) -> bool {
        self.used >= self.most
    }
}
