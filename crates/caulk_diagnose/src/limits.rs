//! What memory runs into: the nearest of the limits that were in force.

use caulk_core::{Limit, LimitKind, Recording};

/// The nearest limit, and the bytes that are left below it at the end of the recording.
pub(crate) fn room(recording: &Recording) -> Option<(Limit, f64)> {
    let (limits, last) = (&recording.info.limits, recording.system.last()?);
    let cgroup = limits
        .cgroup_bytes
        .zip(last.cgroup_bytes)
        .map(|(limit, used)| (LimitKind::Cgroup, limit, limit.saturating_sub(used)));
    let budget = limits
        .budget_bytes
        .map(|limit| (LimitKind::Budget, limit, limit.saturating_sub(last.tree_rss_bytes)));
    // Not known where the head of a recording is damaged.
    let physical = Some((LimitKind::Physical, limits.physical_bytes, last.available_bytes));
    let physical = physical.filter(|(_, limit, _)| *limit > 0);
    let nearest = [cgroup, budget, physical].into_iter().flatten().min_by_key(|(_, _, room)| *room)?;
    let (kind, bytes, room) = nearest;
    Some((Limit { kind, bytes }, room as f64))
}
