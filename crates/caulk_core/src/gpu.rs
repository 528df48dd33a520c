//! GPUs as their driver tells of them: looks at devices and at what processes have of them, and what they come to.

use serde::{Deserialize, Serialize};

use crate::ProcessRef;

/// Why a GPU works slower than it could, the gravest reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Slowed {
    /// It is too hot.
    Heat,
    /// The hardware asks for it: heat, or a power supply that cannot keep up.
    Hardware,
    /// It draws as much power as it may. Usual under full load.
    Power,
}

impl Slowed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Heat, Self::Hardware, Self::Power];

    /// Name, as reports and tables write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Heat => "heat",
            Self::Hardware => "hardware",
            Self::Power => "power",
        }
    }

    /// The reason of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// One look at a GPU, or at what a process of the tree has of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuSample {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// Number of the device, as `nvidia-smi` counts.
    pub device: u32,
    /// The process whose part this is; `None` for the whole device.
    pub pid: Option<u32>,
    /// Memory taken, in bytes.
    pub used_bytes: u64,
    /// Of a device: all its memory, in bytes.
    pub total_bytes: Option<u64>,
    /// Of a device: degrees Celsius.
    pub celsius: Option<u32>,
    /// Of a device: percent of the last moment in which something ran on it.
    pub busy_percent: Option<u32>,
    /// Of a device: why it works slower than it could.
    pub slowed: Option<Slowed>,
    /// Of a device: its name, such as `NVIDIA H200`.
    pub name: String,
    /// Of a device: its UUID, as `nvidia-smi` writes it; empty where it has none.
    #[serde(default)]
    pub uuid: String,
}

/// What a process had of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuPart {
    /// Whose.
    pub process: ProcessRef,
    /// Process id.
    pub pid: u32,
    /// The most at once, by the driver's count, in bytes.
    pub peak_bytes: u64,
    /// ... of which torch's allocator had so many at most, over all devices, in bytes; 0 where torch said nothing.
    pub torch_reserved_bytes: u64,
}

/// Where the memory of the run's processes on one device is, at the last boundaries, in bytes:
/// `used = context + torch_live + torch_free + torch_gaps + graph_pools + rest`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuLedger {
    /// All of it, by the driver.
    pub used: u64,
    /// The context of CUDA and what libraries load, as it was when the training had begun. 0 where other processes use the
    /// device and the driver does not show how much.
    pub context: u64,
    /// Tensors, those in pools of graphs left out.
    pub torch_live: u64,
    /// Free in torch's allocator: `torch.cuda.empty_cache()` gives it back.
    pub torch_free: u64,
    /// Free in torch's allocator beside tensors in the same segment, where it cannot be given back.
    pub torch_gaps: u64,
    /// Segments of captured graphs, and of pools of the program's own.
    pub graph_pools: u64,
    /// Everything else: memory that came outside torch's allocator since the training had begun.
    pub rest: u64,
}

/// What a run's looks at one device come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuUse {
    /// Number of the device, as `nvidia-smi` counts.
    pub device: u32,
    /// Its name.
    pub name: String,
    /// All its memory, in bytes.
    pub total_bytes: u64,
    /// The most that was taken at once, by anybody, in bytes.
    pub peak_bytes: u64,
    /// What was taken at the last look, by anybody, in bytes.
    pub last_bytes: u64,
    /// What the run's processes had of it. Empty where the driver knows them by other numbers, as in a container.
    pub processes: Vec<GpuPart>,
    /// The most degrees Celsius.
    pub hottest_celsius: Option<u32>,
    /// Mean of how busy it was, in percent.
    pub busy_percent: Option<u32>,
    /// Reasons for which it worked slower than it could, with the percentage of the looks that found them.
    pub slowed: Vec<(Slowed, u32)>,
    /// Where the memory of the run is; `None` without figures of torch and the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<GpuLedger>,
}

impl GpuLedger {
    /// That of several processes together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            used: self.used + other.used,
            context: self.context + other.context,
            torch_live: self.torch_live + other.torch_live,
            torch_free: self.torch_free + other.torch_free,
            torch_gaps: self.torch_gaps + other.torch_gaps,
            graph_pools: self.graph_pools + other.graph_pools,
            rest: self.rest + other.rest,
        }
    }
}
