//! What lines and stacks of a program hold of the heap.

use serde::{Deserialize, Serialize};

use crate::{ProcessRef, Sampled, VerdictUnit};

/// Memory that was allocated at a line and not given back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineUse {
    /// Whose memory.
    pub process: ProcessRef,
    /// File, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Qualified name of the function; before Python 3.11 its name.
    pub function: String,
    /// Place by live bytes, or by the peak where the process has ended, from 1. Lines that sampling cannot tell apart share
    /// one.
    pub rank: u32,
    /// At the last boundary; nothing where the process has ended.
    pub live: Sampled,
    /// Every process of this role and number had ended before the run did.
    #[serde(default)]
    pub ended: bool,
    /// At the boundary at which it was most, over all processes of this role and number, which followed one another.
    pub peak: Sampled,
    /// Growth per unit, where the line was seen to grow.
    pub growth: Option<Sampled>,
    /// What the growth is per.
    pub unit: VerdictUnit,
}

/// What a process has allocated and not given back, over all lines and stacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapTotal {
    /// Whose memory.
    pub process: ProcessRef,
    /// Mean bytes between samples, at the end.
    pub interval: u64,
    /// At the last boundary.
    pub live: Sampled,
    /// Resident memory then, in bytes; `None` where it is not known.
    #[serde(default)]
    pub resident_bytes: Option<u64>,
    /// Part of it that is pages of mapped files: programs, libraries, data.
    #[serde(default)]
    pub file_bytes: u64,
}

/// One line of a stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackFrame {
    /// File, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Qualified name of the function; before Python 3.11 its name.
    pub function: String,
    /// The program's own, no library's.
    pub own: bool,
}

/// Memory that one stack has allocated and not given back.
#[derive(Debug, Clone, PartialEq)]
pub struct StackUse {
    /// Whose memory.
    pub process: ProcessRef,
    /// Outermost frame first; empty where no Python was on the stack.
    pub frames: Vec<StackFrame>,
    /// No one stack, but all that were not told one by one.
    pub rest: bool,
    /// Frames further out were left out.
    pub truncated: bool,
    /// A thread without Python code has allocated, for the one whose stack it is.
    pub borrowed: bool,
    /// At the last boundary; nothing where the process has ended.
    pub live: Sampled,
    /// Growth in bytes per unit, where it is beyond doubt; else 0.
    pub growth: f64,
    /// Bytes allocated over the whole run, given back or not, by all processes of this role and number; at least those that
    /// live.
    pub allocated: f64,
    /// What the growth is per.
    pub unit: VerdictUnit,
}
