//! What a process has of GPUs beside torch's allocator: a context, buffers of libraries. Where that grows, torch's own figures are
//! level, and only the driver sees it.

use std::collections::BTreeMap;

use caulk_core::{Recording, Remark};

use crate::ledger;
use crate::process::Process;

/// Looks from which on there is anything to say: their second quarter is compared with the last one.
const FEWEST: usize = 8;
/// Growth that is worth a word, in bytes: libraries load their kernels as these are first used.
const LEAST: u64 = 256 << 20;

/// If it has grown, in a recording without the driver's figures at boundaries: with these it is a series with a verdict.
pub(crate) fn remark(recording: &Recording, process: &Process<'_>) -> Option<Remark> {
    if !ledger::outside(&ledger::of_process(recording, process)).is_empty() {
        return None;
    }
    let rest = looks(recording, process);
    if rest.len() < FEWEST {
        return None;
    }
    let quarter = rest.len() / 4;
    // All of the last ones above all of the early ones: what comes and goes is no growth.
    let early = *rest[quarter..2 * quarter].iter().max()?;
    let late = *rest[rest.len() - quarter..].iter().min()?;
    let pid = process.record.pid;
    (late >= early + LEAST).then_some(Remark::GpuRest { pid, early_bytes: early, late_bytes: late })
}

/// The driver's count of a process on all devices, less what torch had reserved at the boundary before.
fn looks(recording: &Recording, process: &Process<'_>) -> Vec<u64> {
    let mut used: BTreeMap<u64, u64> = BTreeMap::new();
    for sample in recording.gpus.iter().filter(|sample| sample.pid == Some(process.record.pid)) {
        *used.entry(sample.time_ns).or_default() += sample.used_bytes;
    }
    let reserved = |time_ns: u64| {
        let before = process.boundaries.iter().rev().find(|boundary| boundary.time_ns <= time_ns)?;
        Some(before.cuda_reserved_bytes)
    };
    used.into_iter().filter_map(|(time_ns, bytes)| Some(bytes.saturating_sub(reserved(time_ns)?))).collect()
}
