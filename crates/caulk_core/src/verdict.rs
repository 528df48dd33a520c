//! What a series of one process does: the answer to "does it grow?".

use serde::{Deserialize, Serialize};

/// A process as reports name it: its role, which of them, and how many shared that role.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRef {
    /// `main`, `worker`, `rank`, `other`, or `tree` for the sum.
    pub role: String,
    /// Which one of that role, from 0.
    pub index: u32,
    /// How many processes the statement is about.
    pub count: u32,
}

impl ProcessRef {
    /// The process that the command became.
    pub fn main() -> Self {
        Self { role: "main".into(), index: 0, count: 1 }
    }
}

/// What was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Series {
    /// Bytes in use, as the process's allocators count them.
    #[default]
    InUse,
    /// Resident set size.
    Rss,
    /// Proportional set size, over the tree.
    Pss,
    /// CUDA memory allocated to tensors.
    CudaAllocated,
    /// CUDA memory that torch's allocator has from the driver, used and free.
    CudaReserved,
    /// CUDA memory of the process outside torch's allocator.
    CudaRest,
    /// Pinned host memory that torch's caching allocator has for transfers, used and free.
    PinnedPool,
    /// Shared memory.
    Shm,
    /// Resident pages of mapped files: the kernel takes them back when memory is short.
    MappedFiles,
    /// Private pages that no allocator counts, beside mapped files: copies of pages that were written to. They do not come back.
    PrivatePages,
    /// Open file descriptors.
    Fds,
    /// Threads.
    Threads,
    /// Child processes that are alive, and theirs.
    Children,
}

/// What a series does over its boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Rises with every boundary and shows no sign of stopping.
    Grows,
    /// Rises inside an epoch and is back at its boundary.
    GrowsWithinEpoch,
    /// Rose (warm-up, a cache filling) and stopped.
    Plateaus,
    /// Moves, and returns to its baseline.
    Sawtooth,
    /// Does not move.
    Flat,
    /// Too few boundaries to say.
    Undecided,
}

impl State {
    /// Its name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grows => "grows",
            Self::GrowsWithinEpoch => "grows-within-epoch",
            Self::Plateaus => "plateaus",
            Self::Sawtooth => "sawtooth",
            Self::Flat => "flat",
            Self::Undecided => "undecided",
        }
    }
}

/// What `bytes_per_unit` is per.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictUnit {
    /// An epoch, or another loop around the steps.
    Epoch,
    /// An optimizer step.
    Steps,
    /// A second of wall-clock time.
    Seconds,
}

/// What memory runs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `memory.max` of the nearest cgroup that has one.
    Cgroup,
    /// Physical memory of the machine.
    Physical,
    /// `--budget`.
    Budget,
    /// Memory of the GPU.
    Gpu,
    /// The share of a GPU's memory that the program has set for itself (`torch.cuda.set_per_process_memory_fraction`).
    CudaFraction,
    /// `RLIMIT_AS`: the address space of each process.
    RlimitAs,
    /// `RLIMIT_DATA`: the private writable memory of each process.
    RlimitData,
    /// Size of `/dev/shm`.
    Shm,
    /// `RLIMIT_NOFILE`: the open file descriptors of each process. [`Limit::bytes`] is their number.
    Fds,
}

/// The limit that is nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// What sets it.
    pub kind: LimitKind,
    /// Where it is, in bytes; of open files their number.
    pub bytes: u64,
}

/// The judgement on one series of one process (or of the tree).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Whose memory.
    pub process: ProcessRef,
    /// What was measured.
    pub series: Series,
    /// What it does.
    pub state: State,
    /// What a boundary is.
    pub unit: VerdictUnit,
    /// Growth per unit, in the series' own unit (bytes, or a count for `fds` and `threads`).
    pub bytes_per_unit: f64,
    /// Growth per epoch; `None` for other units.
    pub bytes_per_epoch: Option<f64>,
    /// Interval of `bytes_per_unit` at [`Self::level`].
    pub interval: Option<[f64; 2]>,
    /// Confidence level of the interval, and of the test for a trend.
    pub level: f64,
    /// Boundaries that were judged, after warm-up.
    pub boundaries: u32,
    /// Boundaries left out as warm-up.
    pub warmup: u32,
    /// For [`State::Undecided`]: how many more boundaries are needed.
    #[serde(default)]
    pub more_needed: Option<u32>,
    /// Units that one boundary stands for: a reading by steps or seconds is the baseline of a whole stretch of them.
    pub boundary_units: f64,
    /// Level of the last boundary.
    pub last: f64,
    /// One unit's length in optimizer steps, where that is known.
    #[serde(default)]
    pub unit_steps: Option<f64>,
    /// One unit's length in seconds, where that is known.
    #[serde(default)]
    pub unit_seconds: Option<f64>,
    /// Nearest limit.
    pub limit: Option<Limit>,
    /// Seconds from the end of the recording until the limit is reached, as a range.
    pub oom_in_s: Option<[f64; 2]>,
    /// For people: what the judgement rests on, or why it is open.
    #[serde(default)]
    pub text: String,
}
