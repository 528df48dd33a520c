//! What a plan has to fit into.

use serde::Serialize;

use crate::{Estimate, Gpu, Video};

/// Share of the host's memory that a plan may take: the system and page cache need some, too.
const HOST_SHARE: f64 = 0.8;
/// Share of a GPU's memory that programs get: drivers, displays and error correction hold the rest.
const GPU_SHARE: f64 = 0.94;

/// A machine, and what of the task lies on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// The GPU; `None` to train on the CPU.
    pub gpu: Option<Card>,
    /// Memory of the host, in bytes.
    pub ram: Option<f64>,
    /// Processors.
    pub processors: Option<u64>,
    /// Data set that the program loads into memory, in bytes.
    pub dataset: f64,
    /// The video that each sample is cut from, where the model does not say it.
    pub video: Option<Video>,
}

/// A GPU to plan for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Card {
    /// Its name, or its size where that is all that is known.
    pub name: String,
    /// Memory, in bytes.
    pub memory: f64,
    /// Does it compute with bfloat16? Not known of one that is known by its size.
    pub bfloat16: Option<bool>,
    /// Compute capability. Not known of one that is known by its size.
    pub capability: Option<(u32, u32)>,
}

impl From<&Gpu> for Card {
    fn from(gpu: &Gpu) -> Self {
        Self {
            name: gpu.name.clone(),
            memory: gpu.memory as f64 * 1024.0 * 1024.0 * 1024.0,
            bfloat16: Some(gpu.has_bfloat16()),
            capability: Some(gpu.capability),
        }
    }
}

impl Machine {
    /// Does this much fit on the GPU, at its highest?
    pub(crate) fn gpu_takes(&self, bytes: Estimate) -> bool {
        self.gpu.as_ref().is_none_or(|gpu| bytes.high <= gpu.memory * GPU_SHARE)
    }

    /// Does this much fit on the host, at its highest?
    pub(crate) fn host_takes(&self, bytes: Estimate) -> bool {
        self.ram.is_none_or(|ram| bytes.high <= ram * HOST_SHARE)
    }

    /// What a plan may take of the GPU's memory, in bytes.
    pub fn gpu_room(&self) -> Option<f64> {
        Some(self.gpu.as_ref()?.memory * GPU_SHARE)
    }

    /// What a plan may take of the host's memory, in bytes.
    pub fn host_room(&self) -> Option<f64> {
        Some(self.ram? * HOST_SHARE)
    }
}
