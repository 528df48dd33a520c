//! What memory runs into: the nearest of the limits that were in force.

use caulk_core::{Limit, LimitKind, Recording, Series};

use crate::gpu;

/// The limit that this series runs into, and the bytes that are left below it at the end of the recording.
pub(crate) fn room(recording: &Recording, series: Series) -> Option<(Limit, f64)> {
    let nearest = match series {
        Series::CudaAllocated => gpu::room(recording),
        _ => host(recording),
    };
    nearest.map(|(kind, bytes, room)| (Limit { kind, bytes }, room as f64))
}

/// The nearest limit of the host's memory, with the limit and what is left below it, in bytes.
fn host(recording: &Recording) -> Option<(LimitKind, u64, u64)> {
    let (limits, last) = (&recording.info.limits, recording.system.last()?);
    // What the kernel gives back before it kills takes no room. It is not read at every look.
    let cache = recording.system.iter().rev().find_map(|look| look.cgroup_cache_bytes).unwrap_or(0);
    let cgroup = limits
        .cgroup_bytes
        .zip(last.cgroup_bytes)
        .map(|(limit, used)| (LimitKind::Cgroup, limit, limit.saturating_sub(used.saturating_sub(cache))));
    let budget = limits
        .budget_bytes
        .map(|limit| (LimitKind::Budget, limit, limit.saturating_sub(last.tree_rss_bytes)));
    // Not known where the head of a recording is damaged.
    let physical = Some((LimitKind::Physical, limits.physical_bytes, last.available_bytes));
    let physical = physical.filter(|(_, limit, _)| *limit > 0);
    [cgroup, budget, physical].into_iter().flatten().min_by_key(|(_, _, room)| *room)
}
