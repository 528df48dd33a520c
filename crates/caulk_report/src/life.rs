//! One life of a command that was started again.

use serde::Serialize;

/// One life of a command that was started again.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Life {
    /// What was started.
    pub command: Vec<String>,
    /// How it ended, for people.
    pub ended: String,
    /// Epochs of the training process.
    pub epochs: Option<u64>,
    /// Its optimizer steps.
    pub steps: Option<u64>,
    /// From its start to its end, in seconds.
    pub duration_s: f64,
    /// Highest resident memory of its tree, in bytes.
    pub peak_bytes: Option<u64>,
}
