//! Which process has how much of which device, by the driver: its numbers of devices and processes need not be those of the program.

use std::collections::BTreeMap;

use caulk_core::wire::{Boundary, GpuLedger, Message};
use caulk_core::{GpuPart, GpuSample, ProcessRef, Recording};

/// The driver counts all of a process. Where it counts less than this part of what torch alone has, it speaks of another
/// process, which has the same number outside the container.
const BELIEVED: f64 = 0.5;

/// What each process had of each device.
pub(crate) fn parts(recording: &Recording) -> Vec<(u32, GpuPart)> {
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
    // Where a process that has memory there is not known by its number, neither are those that torch reports nothing about.
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

/// The boundaries of a process.
pub(crate) fn boundaries(recording: &Recording, pid: u32) -> impl Iterator<Item = &Boundary> {
    let of_pid = recording.events.iter().filter(move |event| event.pid == pid);
    of_pid.filter_map(|event| match &event.message {
        Message::Boundary(boundary) => Some(boundary),
        _ => None,
    })
}

/// The driver's number of a device of torch's; `None` if the driver was not asked, or for a part of a split device.
pub(crate) fn device_of(recording: &Recording, look: &GpuLedger) -> Option<u32> {
    let mut devices = recording.gpus.iter().filter(|sample| sample.pid.is_none());
    let named = |sample: &&GpuSample| !sample.uuid.is_empty();
    if look.uuid.is_empty() || !recording.gpus.iter().any(|sample| named(&sample)) {
        return devices.find(|sample| sample.device == look.device).map(|sample| sample.device);
    }
    devices.filter(named).find(|sample| sample.uuid.ends_with(&look.uuid)).map(|sample| sample.device)
}

/// Does the driver know this process by its number?
pub(crate) fn is_known(recording: &Recording, pid: u32) -> bool {
    parts(recording).iter().any(|(_, part)| part.pid == pid)
}

/// Bytes of a process on a device, by torch's number, at the driver's last look; `None` if the driver does not know the process.
pub(crate) fn own_bytes(recording: &Recording, pid: u32, device: u32) -> Option<u64> {
    let of_pid = recording.events.iter().rev().filter(|event| event.pid == pid);
    let look = of_pid.clone().find_map(|event| match &event.message {
        Message::GpuLedger(look) if look.device == device => Some(look),
        _ => None,
    })?;
    let device = device_of(recording, look).filter(|_| is_known(recording, pid))?;
    let own = |sample: &&GpuSample| sample.pid == Some(pid) && sample.device == device;
    recording.gpus.iter().rev().find(own).map(|sample| sample.used_bytes)
}
