//! A device at one moment, and who can be asked for it.

use std::collections::HashSet;

use caulk_core::{GpuSample, Slowed};

/// One device at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Gpu {
    pub(super) device: u32,
    pub(super) name: String,
    pub(super) uuid: String,
    pub(super) used_bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) celsius: Option<u32>,
    pub(super) busy_percent: Option<u32>,
    pub(super) slowed: Option<Slowed>,
    /// Processes that compute on it by the driver's numbers, which in a container may be others than here, with the bytes
    /// that each has of it.
    pub(super) processes: Vec<(u32, u64)>,
}

/// Somebody who can be asked.
pub(super) trait Driver {
    /// Every device. `None` where there is nothing to be had, now or later.
    fn look(&mut self) -> Option<Vec<Gpu>>;
}

impl Gpu {
    pub(super) fn whole(&self, time_ns: u64) -> GpuSample {
        GpuSample {
            time_ns,
            device: self.device,
            pid: None,
            used_bytes: self.used_bytes,
            total_bytes: Some(self.total_bytes),
            celsius: self.celsius,
            busy_percent: self.busy_percent,
            slowed: self.slowed,
            name: self.name.clone(),
            uuid: self.uuid.clone(),
        }
    }

    pub(super) fn parts(&self, time_ns: u64, own: &HashSet<u32>) -> Vec<GpuSample> {
        let own = self.processes.iter().filter(|(pid, _)| own.contains(pid));
        own.map(|&(pid, used_bytes)| GpuSample {
            time_ns,
            device: self.device,
            pid: Some(pid),
            used_bytes,
            ..GpuSample::default()
        })
        .collect()
    }
}
