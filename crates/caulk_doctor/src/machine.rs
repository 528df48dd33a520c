//! What was read of a machine. `None`: it could not be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A machine, as the process sees it that a training would be started from. Sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostFacts {
    /// Physical memory, and how much of it can be had without swapping.
    pub memory: Option<Space>,
    /// Swap, and how much of it is free.
    pub swap: Option<Space>,
    /// The nearest limit of a control group, and what is left below it.
    pub cgroup: Option<Space>,
    /// `/dev/shm`.
    pub shared_memory: Option<Space>,
    /// Disks: the working directory's and the temporary folder's, by path.
    pub disks: BTreeMap<String, Space>,
    /// `vm.overcommit_memory`: 0 by heuristic, 1 always, 2 never.
    pub overcommit: Option<u32>,
    /// `transparent_hugepage/enabled`: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
    /// Soft limits by their names in `ulimit -a`'s manual: `nofile`, `nproc`, `as`, `data`, `memlock`; unlimited ones left out.
    pub limits: BTreeMap<String, u64>,
    /// Processors that the process may use, and those that its control group's quota amounts to.
    pub processors: usize,
    /// See `processors`.
    pub quota: Option<f64>,
    /// Variables that matter to memory or speed, where they are set.
    pub variables: BTreeMap<String, String>,
    /// The interpreter that was asked; `Err` with its answer where it could not be.
    pub python: Option<Result<Python, String>>,
}

/// Something of which a part is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Space {
    /// All of it.
    pub total: u64,
    /// Free.
    pub free: u64,
}

/// What an interpreter says of itself and of torch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Python {
    /// `3.11.7`.
    pub version: String,
    /// Path of the interpreter.
    pub executable: String,
    /// Version of torch, where it is installed.
    pub torch: Option<String>,
    /// Why torch could not be imported although it is installed.
    pub torch_error: Option<String>,
    /// CUDA that torch was built for; `None` for a CPU build.
    pub cuda: Option<String>,
    /// Can torch use a GPU here?
    pub cuda_available: bool,
    /// Threads that torch would use for one operation.
    pub threads: Option<usize>,
    /// The GPUs that torch sees.
    pub gpus: Vec<GpuFacts>,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// `NVIDIA GeForce GTX 1650`.
    pub name: String,
    /// Memory, in bytes.
    pub total: u64,
    /// Of it free, in bytes.
    pub free: u64,
    /// Compute capability.
    pub capability: (u32, u32),
}
