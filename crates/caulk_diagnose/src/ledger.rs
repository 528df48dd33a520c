//! Where a process's memory on GPUs is: in torch's allocator, or outside it (a context, another library, communication, captured
//! graphs), by what torch and the driver counted at the same boundary.
//!
//! The driver counts a device as a whole. What other processes have of it is taken off where the driver shows which are whose;
//! else a device that others use as well is left out.

use std::collections::BTreeMap;

use caulk_core::wire::GpuLedger as Look;
use caulk_core::{GpuLedger, GpuSample, Recording};

use crate::gpu_parts;
use crate::process::Process;

/// Memory that a context and the libraries of a process take at most, in bytes. Where more is taken outside torch as the training begins,
/// somebody else has it.
const ALONE: u64 = 1536 << 20;

/// One device of a process, with the looks at it in order.
pub(crate) struct OfDevice<'a> {
    /// As torch counts.
    pub(crate) number: u32,
    pub(crate) looks: Vec<&'a Look>,
    /// Bytes outside torch's allocator, by boundary.
    outside: BTreeMap<u32, u64>,
    /// The same once the training had begun; `None` where others use the device, and nobody knows how much.
    context: Option<u64>,
}

/// The devices of a process.
pub(crate) fn of_process<'a>(recording: &Recording, process: &Process<'a>) -> Vec<OfDevice<'a>> {
    let mut devices: BTreeMap<u32, Vec<&'a Look>> = BTreeMap::new();
    for look in &process.ledgers {
        devices.entry(look.device).or_default().push(look);
    }
    devices.into_iter().map(|(number, looks)| OfDevice::new(recording, process, number, looks)).collect()
}

/// Bytes of a process outside torch's allocator over all devices, by boundary: if they are known of every device.
pub(crate) fn outside(devices: &[OfDevice<'_>]) -> BTreeMap<u32, u64> {
    let mut sums: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    for device in devices.iter().filter(|device| device.context.is_some()) {
        for (boundary, bytes) in &device.outside {
            let sum = sums.entry(*boundary).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
    }
    let whole = sums.into_iter().filter(|(_, (known, _))| *known == devices.len());
    whole.map(|(boundary, (_, bytes))| (boundary, bytes)).collect()
}

impl<'a> OfDevice<'a> {
    fn new(recording: &Recording, process: &Process<'a>, number: u32, looks: Vec<&'a Look>) -> Self {
        let pid = process.record.pid;
        let others = looks.first().map_or_else(Vec::new, |look| others(recording, pid, look));
        let mut outside = BTreeMap::new();
        for look in looks.iter().filter(|look| look.total_bytes > 0) {
            let time_ns = process.boundary(look.boundary).map_or(0, |boundary| boundary.time_ns);
            let taken = look.total_bytes.saturating_sub(look.free_bytes);
            let not_its = look.reserved_bytes + nearest(&others, time_ns);
            outside.insert(look.boundary, taken.saturating_sub(not_its));
        }
        // The first look may come before the first kernels are loaded.
        let begun = outside.values().nth(1).or(outside.values().next()).copied();
        let context = begun.filter(|bytes| !others.is_empty() || *bytes <= ALONE);
        Self { number, looks, outside, context }
    }

    /// Its memory at the last boundary; `None` if the driver was never asked.
    pub(crate) fn ledger(&self) -> Option<GpuLedger> {
        let last = self.looks.last()?;
        let outside = *self.outside.values().next_back()?;
        let first = self.outside.values().nth(1).or(self.outside.values().next()).copied()?;
        let context = self.context.map_or(0, |context| context.min(outside));
        let rest = outside.saturating_sub(first);
        let pools = last.pools_bytes.min(last.reserved_bytes);
        let live = last.allocated_bytes.saturating_sub(last.pools_used_bytes);
        let gaps = last.gaps_bytes.saturating_sub(last.pools_gaps_bytes);
        let free = last.reserved_bytes.saturating_sub(pools + live + gaps);
        let used = context + live + free + gaps + pools + rest;
        Some(GpuLedger {
            used,
            context,
            torch_live: live,
            torch_free: free,
            torch_gaps: gaps,
            graph_pools: pools,
            rest,
        })
    }
}

/// What other processes have of a device by the driver, with the time; empty where it does not show which process is whose.
fn others(recording: &Recording, pid: u32, look: &Look) -> Vec<(u64, u64)> {
    let Some(device) = gpu_parts::device_of(recording, look) else { return Vec::new() };
    if !gpu_parts::is_known(recording, pid) {
        return Vec::new();
    }
    let mut own: BTreeMap<u64, u64> = BTreeMap::new();
    let of_device = || recording.gpus.iter().filter(move |sample| sample.device == device);
    for sample in of_device().filter(|sample| sample.pid == Some(pid)) {
        own.insert(sample.time_ns, sample.used_bytes);
    }
    let whole = of_device().filter(|sample| sample.pid.is_none());
    let other = |sample: &GpuSample| {
        Some((sample.time_ns, sample.used_bytes.saturating_sub(*own.get(&sample.time_ns)?)))
    };
    whole.filter_map(other).collect()
}

fn nearest(others: &[(u64, u64)], time_ns: u64) -> u64 {
    let nearest = others.iter().min_by_key(|(time, _)| time.abs_diff(time_ns));
    nearest.map_or(0, |(_, bytes)| *bytes)
}
