//! torch's caching allocator on a GPU: a model of it, and snapshots of its memory.
//!
//! Values in, values out: knows no files and no devices. [`Snapshot::read`] takes what `torch.cuda.memory._dump_snapshot`
//! wrote, from any reader, and runs nothing of it; [`Usage`] shows the lines and pools that hold memory; [`advise`] replays the recorded
//! history through the [`Allocator`] under other settings.

mod allocator;
mod builder;
mod compare;
mod parts;
mod pickle;
mod replay;
mod snapshot;
mod usage;

pub use allocator::{Allocator, AllocatorOptions, Handle, OutOfMemory};
pub use compare::{SnapshotDifference, SnapshotRow};
pub use parts::{Event, HeldBlock, HeldState, Segment, SnapshotFrame, SnapshotSettings, TraceAction};
pub use pickle::{PickleError, PickleProblem};
pub use replay::{HelpfulSetting, ReplayAdvice, advise};
pub use snapshot::{Snapshot, SnapshotError};
pub use usage::{LineBytes, PoolUse, SizedBlock, Usage};
