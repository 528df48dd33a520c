//! What one line of a program holds of the heap.

use serde::{Deserialize, Serialize};

use crate::{ProcessRef, VerdictUnit};

/// Memory that was allocated at a line and not given back, estimated from samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineUse {
    /// Whose memory.
    pub process: ProcessRef,
    /// File, as in [`crate::Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Qualified name of the function; before Python 3.11 its name.
    pub function: String,
    /// Bytes at the last boundary.
    pub bytes: f64,
    /// Standard deviation of them.
    pub deviation: f64,
    /// Bytes at the boundary at which they were most.
    pub peak: f64,
    /// Growth in bytes per unit, where the line was seen to grow.
    pub growth: Option<f64>,
    /// What the growth is per.
    pub unit: VerdictUnit,
}
