//! A boundary to be cut, and why.

use caulk_wire::{Phase, Unit};

/// A boundary to be cut.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub(super) unit: Unit,
    pub(super) index: u64,
    pub(super) steps: u64,
    pub(super) phase: Phase,
    /// Process whose boundary this is, where it is taken over; 0 for the process's own.
    pub(super) of: u32,
    pub(super) with_census: bool,
    /// Is the census to be taken whatever it costs?
    pub(super) last: Option<Last>,
}

/// Why this boundary may be the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The program may be ended at any moment.
    Near,
    /// It ends in an orderly way, and has let go of much: its memory is that of no step.
    AtExit,
}
