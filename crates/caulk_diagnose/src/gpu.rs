//! GPUs: what the driver says of devices, and what torch's CUDA allocator suffers from.

use std::collections::BTreeMap;

use caulk_core::wire::{GpuLedger, Message};
use caulk_core::{GpuPart, GpuSample, GpuUse, LimitKind, Recording, Remark, Slowed};

use crate::gpu_parts::{boundaries, device_of, parts};
use crate::ledger;
use crate::process::Process;

/// Memory of each device: those that the run uses, or all if the driver does not show which these are. Devices that the driver
/// does not list come last.
pub(crate) fn devices(recording: &Recording, processes: &[Process<'_>]) -> Vec<GpuUse> {
    let mut devices = of_driver(recording);
    for device in processes.iter().flat_map(|process| ledger::of_process(recording, process)) {
        let Some(own) = device.ledger() else { continue };
        let number = device.looks.first().and_then(|look| device_of(recording, look));
        let same = |gpu: &&mut GpuUse| match number {
            Some(number) => gpu.device == number,
            None => gpu.name.is_empty() && gpu.device == device.number,
        };
        match devices.iter_mut().find(same) {
            Some(gpu) => gpu.ledger = Some(gpu.ledger.map_or(own, |others| others.and(own))),
            None => devices.push(of_torch(&device, own)),
        }
    }
    devices
}

/// A device that the supervisor did not look at.
fn of_torch(device: &ledger::OfDevice<'_>, own: caulk_core::GpuLedger) -> GpuUse {
    let taken = || device.looks.iter().map(|look| look.total_bytes.saturating_sub(look.free_bytes));
    GpuUse {
        device: device.number,
        name: String::new(),
        total_bytes: device.looks.iter().map(|look| look.total_bytes).max().unwrap_or(0),
        peak_bytes: taken().max().unwrap_or(0),
        last_bytes: taken().next_back().unwrap_or(0),
        processes: Vec::new(),
        hottest_celsius: None,
        busy_percent: None,
        slowed: Vec::new(),
        ledger: Some(own),
    }
}

fn of_driver(recording: &Recording) -> Vec<GpuUse> {
    let mut looks: BTreeMap<u32, Vec<&GpuSample>> = BTreeMap::new();
    for sample in recording.gpus.iter().filter(|sample| sample.pid.is_none()) {
        looks.entry(sample.device).or_default().push(sample);
    }
    let parts = parts(recording);
    let uses: Vec<GpuUse> = looks.values().filter_map(|looks| of_device(looks, &parts)).collect();
    let own = |gpu: &GpuUse| !gpu.processes.is_empty();
    let told = uses.iter().any(own);
    uses.into_iter().filter(|gpu| !told || own(gpu)).collect()
}

fn of_device(looks: &[&GpuSample], parts: &[(u32, GpuPart)]) -> Option<GpuUse> {
    let last = looks.last()?;
    let busy: Vec<u32> = looks.iter().filter_map(|look| look.busy_percent).collect();
    let share = |reason: Slowed| {
        let times = looks.iter().filter(|look| look.slowed == Some(reason)).count();
        (reason, (times * 100 / looks.len()) as u32)
    };
    let own = parts.iter().filter(|(device, _)| *device == last.device);
    Some(GpuUse {
        device: last.device,
        name: last.name.clone(),
        total_bytes: last.total_bytes.unwrap_or(0),
        peak_bytes: looks.iter().map(|look| look.used_bytes).max()?,
        last_bytes: last.used_bytes,
        processes: own.map(|(_, part)| part.clone()).collect(),
        hottest_celsius: looks.iter().filter_map(|look| look.celsius).max(),
        busy_percent: (!busy.is_empty()).then(|| busy.iter().sum::<u32>() / busy.len() as u32),
        slowed: Slowed::ALL.map(share).into_iter().filter(|(_, percent)| *percent > 0).collect(),
        ledger: None,
    })
}

/// The limit that is nearest: the device with the least room, or the limit that a process has set for itself. Where it is, and
/// the room below it at the end, in bytes. For `tensors`, free memory of torch's allocator is room.
pub(crate) fn room(recording: &Recording, pid: Option<u32>, tensors: bool) -> Option<(LimitKind, u64, u64)> {
    let own = pid.filter(|_| tensors).and_then(|pid| own_room(recording, pid));
    own.into_iter().chain(device_room(recording, tensors)).min_by_key(|(_, _, room)| *room)
}

/// Room below the share of a device that a process has limited itself to.
fn own_room(recording: &Recording, pid: u32) -> Option<(LimitKind, u64, u64)> {
    let mut last: BTreeMap<u32, &GpuLedger> = BTreeMap::new();
    for event in recording.events.iter().filter(|event| event.pid == pid) {
        if let Message::GpuLedger(look) = &event.message {
            last.insert(look.device, look);
        }
    }
    let limited = last.into_values().filter(|look| look.allowed_bytes > 0);
    let room = |look: &GpuLedger| look.allowed_bytes.saturating_sub(look.allocated_bytes);
    let rooms = limited.map(|look| (LimitKind::CudaFraction, look.allowed_bytes, room(look)));
    rooms.min_by_key(|(_, _, room)| *room)
}

fn device_room(recording: &Recording, tensors: bool) -> Option<(LimitKind, u64, u64)> {
    let devices = devices(recording, &Process::all(recording));
    let left = |gpu: &GpuUse| gpu.total_bytes.saturating_sub(gpu.last_bytes);
    let tightest = devices.iter().filter(|gpu| gpu.total_bytes > 0).min_by_key(|gpu| left(gpu))?;
    // Of what torch has from one device, tensors can still take what is free in it.
    let cached = match devices.as_slice() {
        [only] if tensors => {
            let of_parts = only.processes.iter().map(|part| cached(recording, part.pid)).sum();
            only.ledger.map_or(of_parts, |ledger| ledger.torch_free)
        }
        _ => 0,
    };
    Some((LimitKind::Gpu, tightest.total_bytes, left(tightest) + cached))
}

/// What torch's allocator has in this process without a tensor in it, in bytes.
fn cached(recording: &Recording, pid: u32) -> u64 {
    let last = boundaries(recording, pid).last();
    last.map_or(0, |last| last.cuda_reserved_bytes.saturating_sub(last.cuda_allocated_bytes))
}

/// What there is to remark about the allocator of one process; nothing without a GPU.
pub(crate) fn remark(process: &Process<'_>) -> Option<Remark> {
    let times = process.boundaries.last()?.cuda_retries;
    (times > 0).then_some(Remark::GpuRetries { times })
}
