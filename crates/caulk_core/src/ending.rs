//! How a run ended, for programs.

use serde::Serialize;

use crate::Limit;

/// The kinds of ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EndingKind {
    /// With exit code 0.
    Ok,
    /// With another exit code; why is not known.
    Exit,
    /// By a signal that is no matter of memory.
    Signal,
    /// By an exception that nobody caught.
    Exception,
    /// By a `MemoryError`, or the message of torch if the system gives it no memory.
    MemoryError,
    /// Because a GPU had no more memory.
    CudaOutOfMemory,
    /// The kernel killed it because memory ran out: the likeliest reason of such a SIGKILL.
    OomKill,
    /// caulk ended it: the guard, or after as many epochs as were asked for.
    StoppedByCaulk,
    /// How is not known.
    Unknown,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ending {
    /// In which way.
    pub kind: EndingKind,
    /// Type of the exception that nobody caught.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// Number of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Bytes that were asked for and not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_bytes: Option<u64>,
    /// The limit that memory ran into, if it ran out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}
