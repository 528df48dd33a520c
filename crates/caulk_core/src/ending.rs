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

/// Why a GPU had no memory for an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GpuShortage {
    /// Enough is reserved and free, but in pieces.
    Fragmentation,
    /// The process is at the limit that it has set for itself (`torch.cuda.set_per_process_memory_fraction`).
    Fraction,
    /// Other processes take what is missing.
    OtherProcesses,
    /// What is missing is taken outside torch's allocator, in this process or in others.
    OutsideTorch,
    /// Torch's allocator has nearly all of the device.
    Device,
}

/// What keeps memory of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuHolder {
    /// As the report names it: a container, or a line.
    pub name: String,
    /// File of its line; empty if no line is known.
    pub file: String,
    /// Its line, from 1; 0 if no line is known.
    pub line: u32,
    /// Bytes on GPUs that it kept at the last census.
    pub bytes: u64,
}

/// An allocation that a GPU had no memory for: the figures of torch's allocator on that device, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuRefused {
    /// Number of the device, as torch counts.
    pub device: u32,
    /// Bytes of the request.
    pub asked_bytes: u64,
    /// Bytes allocated to tensors.
    pub allocated_bytes: u64,
    /// Bytes that the allocator had from the driver.
    pub reserved_bytes: u64,
    /// The largest free block of the allocator; `None` if the blocks were not read.
    pub largest_free_bytes: Option<u64>,
    /// Bytes that the driver had left.
    pub free_bytes: u64,
    /// All bytes of the device; 0 if not known.
    pub total_bytes: u64,
    /// Bytes taken by other processes; `None` if the driver does not show which are this process's.
    pub others_bytes: Option<u64>,
    /// Why there was no memory.
    pub shortage: GpuShortage,
    /// File of the line that asked; empty if not known.
    pub file: String,
    /// The line, from 1; 0 if not known.
    pub line: u32,
    /// What kept memory of GPUs, most bytes first.
    pub holders: Vec<GpuHolder>,
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
    /// The allocation that a GPU had no memory for, if that ended the run and torch gave its figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRefused>,
}
