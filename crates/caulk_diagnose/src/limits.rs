//! What memory runs into: the nearest of the limits that were in force.

use caulk_core::{Limit, LimitKind, Recording, Series, SystemSample};

use crate::gpu;

/// A process that ends gives its memory back before it is gone: looks are not older than this before the last one, in
/// nanoseconds.
const ENDING_NS: u64 = 2_000_000_000;

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
    let (limits, last) = (&recording.info.limits, before_the_end(&recording.system)?);
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

/// The fullest of the last looks: a later one may have met processes that were just going.
fn before_the_end(looks: &[SystemSample]) -> Option<&SystemSample> {
    let end_ns = looks.last()?.time_ns;
    let last = looks.iter().rev().take_while(|look| look.time_ns + ENDING_NS >= end_ns);
    last.max_by_key(|look| look.tree_rss_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(second: u64, tree_rss_bytes: u64) -> SystemSample {
        let available_bytes = 1000 - tree_rss_bytes;
        SystemSample {
            time_ns: second * 1_000_000_000,
            tree_rss_bytes,
            available_bytes,
            ..SystemSample::default()
        }
    }

    fn check(looks: Vec<SystemSample>, left: f64) {
        let mut recording = Recording { system: looks, ..Recording::default() };
        recording.info.limits.physical_bytes = 1000;
        let found = room(&recording, Series::Rss).map(|(_, left)| left);
        assert_eq!(found, Some(left));
    }

    #[test]
    fn what_is_left_is_left_before_processes_give_back_theirs() {
        check(vec![look(1, 300), look(10, 600), look(11, 20)], 400.0);
        check(vec![look(1, 600), look(10, 300)], 700.0);
    }
}
