//! Allocations that a GPU had no memory for: why, and what kept the memory.

use std::collections::HashMap;

use caulk_core::wire::{GpuRefusal, Message};
use caulk_core::{Finding, GpuHolder, GpuRefused, GpuShortage, Recording, Remark, Series};

use crate::files::Files;
use crate::gpu_parts;

/// Memory that a context of CUDA and the libraries take of a device at most, in bytes: 0.3 to 0.9 GB, by generation and version.
const CONTEXT: u64 = 1 << 30;
/// Time between a refusal and the error that it becomes, if nobody catches it, in nanoseconds: tracebacks are written and agents take a
/// census.
const UNWINDING_NS: u64 = 60_000_000_000;
/// Holders that are named.
const HOLDERS: usize = 3;

/// The last refusal before an error of this process that nobody caught, at this time.
pub(crate) fn before(recording: &Recording, pid: u32, at_ns: u64) -> Option<&GpuRefusal> {
    let refusals = recording.events.iter().rev().filter(|event| event.pid == pid);
    let mut earlier = refusals.skip_while(|event| event.time_ns > at_ns);
    earlier.find_map(|event| match &event.message {
        Message::GpuRefusal(refusal) if event.time_ns + UNWINDING_NS >= at_ns => Some(refusal),
        _ => None,
    })
}

/// Its figures and its reason.
pub(crate) fn figures(
    files: &Files<'_>,
    recording: &Recording,
    pid: u32,
    refusal: &GpuRefusal,
    findings: &[Finding],
) -> GpuRefused {
    let others_bytes = others(recording, pid, refusal);
    let known = |bytes: u64| (bytes > 0).then_some(bytes);
    GpuRefused {
        device: refusal.device,
        asked_bytes: refusal.asked_bytes,
        allocated_bytes: refusal.allocated_bytes,
        reserved_bytes: refusal.reserved_bytes,
        largest_free_bytes: known(refusal.largest_free_bytes),
        free_bytes: refusal.free_bytes,
        total_bytes: refusal.total_bytes,
        others_bytes,
        shortage: shortage(refusal, others_bytes),
        file: files.display(&refusal.place.file),
        line: refusal.place.line,
        holders: holders(findings),
    }
}

/// Memory of the device that other processes have, by the driver.
fn others(recording: &Recording, pid: u32, refusal: &GpuRefusal) -> Option<u64> {
    let taken = refusal.total_bytes.checked_sub(refusal.free_bytes).filter(|_| refusal.total_bytes > 0)?;
    gpu_parts::own_bytes(recording, pid, refusal.device)
        .map(|own| taken.saturating_sub(own.max(refusal.reserved_bytes)))
}

/// Torch has given back what it could before: what it still has reserved and free lies in pieces.
fn shortage(refusal: &GpuRefusal, others: Option<u64>) -> GpuShortage {
    let GpuRefusal { asked_bytes, reserved_bytes, allowed_bytes, free_bytes, .. } = *refusal;
    let missing = asked_bytes.saturating_sub(free_bytes);
    let outside = refusal.total_bytes.saturating_sub(free_bytes).saturating_sub(reserved_bytes);
    if reserved_bytes.saturating_sub(refusal.allocated_bytes) >= asked_bytes {
        GpuShortage::Fragmentation
    } else if allowed_bytes > 0 && reserved_bytes + asked_bytes > allowed_bytes {
        GpuShortage::Fraction
    } else if others.is_some_and(|others| others >= missing.max(1)) {
        GpuShortage::OtherProcesses
    } else if others.is_none() && outside >= CONTEXT + missing {
        GpuShortage::OutsideTorch
    } else {
        GpuShortage::Device
    }
}

/// The findings that keep memory of GPUs, most bytes first.
fn holders(findings: &[Finding]) -> Vec<GpuHolder> {
    let mut holders: Vec<GpuHolder> = findings.iter().filter_map(holder).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    holders.truncate(HOLDERS);
    holders
}

fn holder(finding: &Finding) -> Option<GpuHolder> {
    let growth = finding.growth.as_ref().filter(|growth| growth.series == Series::CudaAllocated)?;
    let pinned = finding.pinned.as_ref().map_or(0, |pinned| pinned.tensor_bytes + pinned.saved_bytes);
    let per_element = growth.bytes_per_unit / growth.elements_per_unit;
    let counted = if per_element.is_finite() { (per_element * growth.elements as f64) as u64 } else { 0 };
    let site = finding.sites.first();
    let bytes = pinned.max(counted);
    let name = if finding.container.is_empty() { &finding.holder } else { &finding.container };
    (bytes > 0).then(|| GpuHolder {
        name: name.clone(),
        file: site.map_or_else(String::new, |site| site.file.clone()),
        line: site.map_or(0, |site| site.line),
        bytes,
    })
}

/// Refusals after which the programs continued, by process. `ended`: the process that one of them ended.
pub(crate) fn remarks(
    files: &Files<'_>,
    recording: &Recording,
    ended: Option<u32>,
    findings: &[Finding],
) -> Vec<Remark> {
    let mut of_pid: Vec<u32> = Vec::new();
    let mut last: HashMap<u32, Vec<&GpuRefusal>> = HashMap::new();
    for event in &recording.events {
        if let Message::GpuRefusal(refusal) = &event.message {
            if !of_pid.contains(&event.pid) {
                of_pid.push(event.pid);
            }
            last.entry(event.pid).or_default().push(refusal);
        }
    }
    let remark = |pid: u32| {
        let mut refusals = last.remove(&pid)?;
        let all = refusals.last()?.times;
        let is_end = ended == Some(pid);
        if is_end {
            refusals.pop();
        }
        let times = all - u64::from(is_end);
        let last = figures(files, recording, pid, refusals.last()?, findings);
        (times > 0).then_some(Remark::GpuRefused { times, last })
    };
    of_pid.into_iter().filter_map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn check(refusal: &GpuRefusal, others: Option<u64>, expected: GpuShortage) {
        assert_eq!(shortage(refusal, others), expected, "{refusal:?}");
    }

    #[test]
    fn why_there_was_no_memory() {
        let full = GpuRefusal {
            asked_bytes: 100 * MB,
            allocated_bytes: 7_000 * MB,
            reserved_bytes: 7_020 * MB,
            free_bytes: 20 * MB,
            total_bytes: 8_000 * MB,
            ..GpuRefusal::default()
        };
        check(&full, None, GpuShortage::Device);
        check(&full, Some(0), GpuShortage::Device);
        check(&full, Some(900 * MB), GpuShortage::OtherProcesses);
        let few = GpuRefusal { allocated_bytes: 3_000 * MB, reserved_bytes: 3_010 * MB, ..full.clone() };
        check(&few, None, GpuShortage::OutsideTorch);
        check(&few, Some(0), GpuShortage::Device);
        let limited = GpuRefusal { allowed_bytes: 3_050 * MB, free_bytes: 4_500 * MB, ..few };
        check(&limited, Some(0), GpuShortage::Fraction);
        check(&GpuRefusal { reserved_bytes: 3_200 * MB, ..limited }, Some(0), GpuShortage::Fragmentation);
        check(&GpuRefusal { allocated_bytes: 6_900 * MB, ..full }, None, GpuShortage::Fragmentation);
    }
}
