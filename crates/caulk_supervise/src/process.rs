//! A living process of the run: what is known of it, and what is remembered of the looks at it.

use std::fs::File;

use caulk_core::{ProcessRecord, Role};

use crate::signs::Signs;

/// A living process of the run.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) record: ProcessRecord,
    pub(crate) signs: Signs,
    /// Role and index have been judged.
    pub(crate) settled: bool,
    /// The record goes to the sink; false for those that are only counted.
    pub(crate) recorded: bool,
    pub(crate) looks: Looks,
    /// When it was found to have ended; what it has said before may still arrive.
    pub(crate) ended_ns: Option<u64>,
    /// Start after boot, in ticks.
    pub(crate) start_ticks: u64,
    /// Of the command line.
    pub(crate) hash: u64,
    pub(crate) told: bool,
}

impl Process {
    pub(crate) fn new(pid: u32, parent: u32) -> Self {
        let record = ProcessRecord { pid, parent, role: Role::Other, ..ProcessRecord::default() };
        Self {
            record,
            signs: Signs::default(),
            settled: false,
            recorded: true,
            looks: Looks::default(),
            ended_ns: None,
            start_ticks: 0,
            hash: 0,
            told: false,
        }
    }
}

/// What is remembered of the looks at one process.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    pub(crate) statm: Option<File>,
    pub(crate) asked_for_file: bool,
    pub(crate) resident: u64,
    pub(crate) next_slow_ns: u64,
    pub(crate) last_rollup_ns: u64,
    pub(crate) next_swap_ns: u64,
    /// Cost of the last `smaps_rollup` per resident byte, in nanoseconds.
    pub(crate) rollup_rate: Option<f64>,
    pub(crate) private: Option<Private>,
}

/// What a process had to itself when its `smaps_rollup` was read, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Private {
    /// Pages that it alone has and has written to.
    pub(crate) dirty: u64,
    /// Its anonymous pages at that moment.
    pub(crate) anonymous: u64,
}

impl Looks {
    /// Resident bytes when last seen.
    pub(crate) fn resident(&self) -> u64 {
        self.resident
    }

    /// What it has to itself, where that was read.
    pub(crate) fn private(&self) -> Option<Private> {
        self.private
    }

    pub(crate) fn has_file(&self) -> bool {
        self.statm.is_some()
    }
}
