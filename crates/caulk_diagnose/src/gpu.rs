//! What torch's CUDA allocator suffers from: fragmentation, and attempts on a device that is full.

use caulk_core::Bytes;
use caulk_core::wire::Boundary;

use crate::process::Process;

/// Bytes in gaps, and their part of what is reserved, from which on they are worth a word.
const GAPS: u64 = 256 << 20;
const PART: f64 = 0.25;

/// Lines for people; none without a GPU.
pub(crate) fn notes(process: &Process<'_>) -> Vec<String> {
    let Some(last) = process.boundaries.last() else { return Vec::new() };
    gaps(last).into_iter().chain(retries(last)).collect()
}

fn gaps(last: &Boundary) -> Option<String> {
    let (gaps, reserved) = (last.cuda_inactive_bytes, last.cuda_reserved_bytes);
    (gaps >= GAPS && gaps as f64 >= PART * reserved as f64).then(|| {
        format!(
            "{} of {} that torch has reserved on the GPU lie in gaps between blocks in use: no leak, but no room for large \
             tensors either. `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` avoids most gaps",
            Bytes(gaps),
            Bytes(reserved)
        )
    })
}

fn retries(last: &Boundary) -> Option<String> {
    let times = match last.cuda_retries {
        0 => return None,
        1 => "once".to_owned(),
        number => format!("{number} times"),
    };
    Some(format!(
        "the GPU's memory was full {times}: torch emptied its caches and tried again, which costs time, and fails once \
         nothing is left in them"
    ))
}
