//! GPUs: what the driver says of devices, and what torch's CUDA allocator suffers from.

use std::collections::BTreeMap;

use caulk_core::wire::Boundary;
use caulk_core::{GpuPart, GpuSample, GpuUse, LimitKind, ProcessRef, Recording, Remark, Slowed};

use crate::process::Process;

/// Bytes in gaps, and their part of what is reserved, from which on they are worth a word.
const GAPS: u64 = 256 << 20;
const PART: f64 = 0.25;
/// The driver counts all of a process. Where it counts less than this part of what torch alone has, it speaks of another
/// process, which has the same number outside the container.
const BELIEVED: f64 = 0.5;

/// What the looks at each device come to: those that the run uses, or all where the driver does not say which these are.
pub(crate) fn devices(recording: &Recording) -> Vec<GpuUse> {
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
    })
}

/// What each process had of each device.
fn parts(recording: &Recording) -> Vec<(u32, GpuPart)> {
    let mut peaks: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for sample in &recording.gpus {
        if let Some(pid) = sample.pid {
            let peak = peaks.entry((sample.device, pid)).or_default();
            *peak = sample.used_bytes.max(*peak);
        }
    }
    let over_devices = |of: u32| peaks.iter().filter(|((_, pid), _)| *pid == of).map(|(_, peak)| peak).sum();
    let believed = |pid: u32, torch: u64| {
        let all: u64 = over_devices(pid);
        all as f64 >= BELIEVED * torch as f64
    };
    // Where a process that has memory there is not known by its number, neither are those that torch says nothing of.
    let foreign =
        recording.processes.iter().any(|known| !believed(known.pid, reserved(recording, known.pid)));
    let part = |(&(device, pid), &peak_bytes): (&(u32, u32), &u64)| {
        let torch_reserved_bytes = reserved(recording, pid);
        let told = torch_reserved_bytes > 0 || !foreign;
        (told && believed(pid, torch_reserved_bytes)).then(|| {
            (device, GpuPart { process: reference(recording, pid), pid, peak_bytes, torch_reserved_bytes })
        })
    };
    peaks.iter().filter_map(part).collect()
}

fn reference(recording: &Recording, pid: u32) -> ProcessRef {
    let known = recording.processes.iter().find(|record| record.pid == pid).cloned().unwrap_or_default();
    ProcessRef { role: known.role.as_str().into(), index: known.index, count: 1 }
}

/// The most that torch's allocator had in this process at a boundary, in bytes.
fn reserved(recording: &Recording, pid: u32) -> u64 {
    boundaries(recording, pid).map(|boundary| boundary.cuda_reserved_bytes).max().unwrap_or(0)
}

fn boundaries(recording: &Recording, pid: u32) -> impl Iterator<Item = &Boundary> {
    let of_pid = recording.events.iter().filter(move |event| event.pid == pid);
    of_pid.filter_map(|event| match &event.message {
        caulk_core::wire::Message::Boundary(boundary) => Some(boundary),
        _ => None,
    })
}

/// The device with the least room: all its memory and what is left of it at the end, in bytes.
pub(crate) fn room(recording: &Recording) -> Option<(LimitKind, u64, u64)> {
    let devices = devices(recording);
    let left = |gpu: &GpuUse| gpu.total_bytes.saturating_sub(gpu.last_bytes);
    let tightest = devices.iter().filter(|gpu| gpu.total_bytes > 0).min_by_key(|gpu| left(gpu))?;
    // Of what torch has from one device, tensors can still take what is free in it.
    let cached = match devices.as_slice() {
        [only] => only.processes.iter().map(|part| cached(recording, part.pid)).sum(),
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
pub(crate) fn remarks(process: &Process<'_>) -> Vec<Remark> {
    let Some(last) = process.boundaries.last() else { return Vec::new() };
    let (gaps_bytes, reserved_bytes) = (last.cuda_inactive_bytes, last.cuda_reserved_bytes);
    let has_gaps = gaps_bytes >= GAPS && gaps_bytes as f64 >= PART * reserved_bytes as f64;
    let gaps = has_gaps.then_some(Remark::GpuGaps { gaps_bytes, reserved_bytes });
    let retries = (last.cuda_retries > 0).then_some(Remark::GpuRetries { times: last.cuda_retries });
    gaps.into_iter().chain(retries).collect()
}
