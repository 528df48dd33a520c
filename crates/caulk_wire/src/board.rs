//! Layout of the shared memory in which training processes say how far they are, for those that work for them: workers
//! of data loaders and pools make no steps of their own.
//!
//! The supervisor makes the memory and frees the entries of processes that have ended. All numbers are in the machine's
//! byte order and aligned to their size.

/// Variable that says where the memory is: a path that opens it.
pub const BOARD_VARIABLE: &str = "CAULK_BOARD";
/// Processes that can be on the board at a time.
pub const ENTRIES: usize = 64;
/// Bytes per entry.
pub const ENTRY_BYTES: usize = 64;
/// Where, behind the entries, the supervisor asks every process for a look at what it holds.
pub const LOOKS: usize = ENTRIES * ENTRY_BYTES;
/// Bytes of the board.
pub const BOARD_BYTES: usize = LOOKS + ENTRY_BYTES;

/// What is asked and answered, as byte offsets from [`LOOKS`].
pub mod looks {
    /// How often a look was asked for, 32 bits.
    pub const ASKED: usize = 0;
    /// How many looks processes have taken since it was asked last, 32 bits.
    pub const TAKEN: usize = 4;
}

/// Fields of an entry, as byte offsets.
pub mod entry {
    /// Process that owns the entry, 32 bits; 0 where it is free.
    pub const PID: usize = 0;
    /// One more than the number of the last epoch at whose boundary it was; 0 before the first.
    pub const EPOCH: usize = 8;
    /// One more than the number of the last step at which a boundary was cut; 0 before the first.
    pub const STEP: usize = 16;
    /// Optimizer steps at the last boundary.
    pub const STEPS: usize = 24;
    /// CPU time that the agents of its workers have spent on their common credit, in nanoseconds.
    pub const SPENT: usize = 32;
    /// The worker that spends the credit, 32 bits; 0 where there is none.
    pub const SPENDER: usize = 40;
    /// 1 where that worker's own memory has risen lately, 32 bits: then it keeps the credit.
    pub const RISES: usize = 44;
    /// CPU time that the agents of its other workers have spent on readings, in nanoseconds.
    pub const READ: usize = 48;
}
