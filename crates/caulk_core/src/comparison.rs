//! What has changed in a process from one moment of a run to another.

use serde::{Deserialize, Serialize};

use crate::{ProcessRef, Sampled, VerdictUnit};

/// A moment at which a process was looked at from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// What `number` counts.
    pub unit: VerdictUnit,
    /// Epochs, steps or seconds that were over, as `--progress` counts them.
    pub number: u64,
}

/// The difference between two moments of one process, or of two workers, one of which followed the other: their containers are
/// known again by their names. Pairs are earlier and later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Which process.
    pub process: ProcessRef,
    /// The moments.
    pub moments: [Moment; 2],
    /// Bytes in use on the heap and in shared memory; `None` where malloc was not asked.
    pub in_use: [Option<u64>; 2],
    /// Resident bytes.
    pub resident: [u64; 2],
    /// Of these, bytes that a worker shares with no other process; `None` where that was not looked at.
    pub private: [Option<u64>; 2],
    /// Bytes of tensors on GPUs.
    pub cuda_allocated: [u64; 2],
    /// The moments at which objects were counted by type: the last ones by then.
    pub counted_at: Option<[Moment; 2]>,
    /// Types of objects, the largest change in bytes first.
    pub types: Vec<TypeChange>,
    /// Containers that were followed since they grow, the largest change first.
    pub containers: Vec<ContainerChange>,
    /// Lines by what they have allocated and not given back, the largest growth first.
    pub lines: Vec<LineChange>,
}

/// Live objects of a type. A type is counted where it is one of the largest or fastest growing: `None` where not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TypeChange {
    /// Qualified name, with module.
    pub name: String,
    /// Objects.
    pub objects: [Option<u64>; 2],
    /// Shallow bytes of them.
    pub bytes: [Option<u64>; 2],
}

/// A container, graph or buffer that was followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContainerChange {
    /// The path to it as a person would type it; empty where none was found.
    pub holder: String,
    /// `list`, `dict`, ...
    pub kind: String,
    /// Elements, nodes of a graph, or bytes of a buffer; `None` where it was not followed.
    pub length: [Option<u64>; 2],
    /// Estimate of what the change keeps alive, in bytes; `None` where its contents were not looked at.
    pub bytes: Option<f64>,
}

/// What was allocated at a line and not given back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineChange {
    /// File, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Qualified name of the function; before Python 3.11 its name.
    pub function: String,
    /// Place by change, from 1. Lines that sampling cannot tell apart share one.
    pub rank: u32,
    /// Live bytes.
    pub live: [Sampled; 2],
    /// Later less earlier.
    pub change: Sampled,
}

impl LineChange {
    /// Is there a change at all, beyond what sampling alone would show?
    pub fn is_certain(&self) -> bool {
        self.change.bytes.abs() > self.change.margin()
    }
}
