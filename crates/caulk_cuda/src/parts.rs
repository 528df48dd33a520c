//! Parts of a snapshot, as torch records them. All sizes are bytes.

use serde::Serialize;

/// A frame of a stack: Python's, or C++ with a file such as `??`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SnapshotFrame<'a> {
    /// Source file.
    pub file: &'a str,
    /// Line in it, from 1; 0 if it is not known.
    pub line: u32,
    /// Function.
    pub function: &'a str,
}

/// What a block of a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldState {
    /// A tensor or a workspace uses it.
    Live,
    /// Freed, but work of another stream may still use it.
    Pending,
    /// Reserved and in no use.
    Free,
}

/// A block of a segment.
#[derive(Debug, Clone, Copy)]
pub struct HeldBlock {
    /// First address.
    pub address: u64,
    /// Bytes, after rounding.
    pub size: u64,
    /// What it is.
    pub state: HeldState,
    /// Number of the stack that allocated it, for `Snapshot::frames`.
    pub stack: u32,
}

/// Memory that the allocator took from the driver at once.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Number of the device.
    pub device: u32,
    /// Bytes.
    pub size: u64,
    /// The stream that uses it.
    pub stream: u64,
    /// Is it of the pool of large blocks?
    pub large: bool,
    /// Is it of a private pool, as those of CUDA graphs?
    pub private: bool,
    /// Its blocks in order of addresses.
    pub blocks: Vec<HeldBlock>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceAction {
    /// A block was allocated.
    Allocate,
    /// A block was freed by the program.
    Free,
    /// An allocation failed; the address is what the device had free.
    OutOfMemory,
    /// Anything else: segments, completed frees, snapshots.
    Other,
}

/// An event of the recorded history.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// First address of the block, or bytes that the device had free.
    pub address: u64,
    /// Bytes asked for.
    pub size: u64,
    /// The stream.
    pub stream: u64,
    /// What happened.
    pub action: TraceAction,
}

/// Settings of the allocator when the snapshot was taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SnapshotSettings {
    /// `PYTORCH_CUDA_ALLOC_CONF` as it was set; empty if it was not.
    pub configuration: String,
    /// `expandable_segments`.
    pub expandable_segments: bool,
    /// `max_split_size_mb`, in bytes.
    pub max_split_size: Option<u64>,
    /// `garbage_collection_threshold`.
    pub garbage_collection_threshold: Option<f64>,
    /// `roundup_power2_divisions`, if it is the same for all sizes.
    pub roundup_power2_divisions: u64,
}
