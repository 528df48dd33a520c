//! What memory runs into: the nearest of the limits that were in force.

use caulk_core::{Limit, LimitKind, Recording, Sample, Series, SystemSample};

use crate::gpu;

/// A process that ends gives its memory back before it is gone: looks are not older than this before the last one, in
/// nanoseconds.
const ENDING_NS: u64 = 2_000_000_000;

/// Part of a limit within which a process is near it.
const NEAR: f64 = 0.05;

/// A limit, where it is, and what is left below it: in bytes, of open files their number.
type Room = (LimitKind, u64, u64);

/// The part of a reading of a process that counts against a limit: bytes, of open files their number.
type Used = fn(&Sample) -> Option<u64>;

/// The limit that this series of a process runs into first, and what is left below it at the end of the recording; without
/// a process, of the whole tree.
pub(crate) fn room(recording: &Recording, pid: Option<u32>, series: Series) -> Option<(Limit, f64)> {
    let nearest = match series {
        Series::CudaAllocated => gpu::room(recording, pid, true),
        Series::CudaRest => gpu::room(recording, pid, false),
        Series::InUse | Series::Rss | Series::PrivatePages | Series::Pss => {
            let own = pid.into_iter().flat_map(|pid| own(recording, pid));
            own.chain(host(recording)).min_by_key(|(_, _, room)| *room)
        }
        Series::Shm => shm(recording).into_iter().chain(host(recording)).min_by_key(|(_, _, room)| *room),
        Series::Fds => open_files(recording, pid?),
        Series::CudaReserved
        | Series::PinnedPool
        | Series::MappedFiles
        | Series::Threads
        | Series::Children => None,
    };
    nearest.map(|(kind, bytes, room)| (Limit { kind, bytes }, room as f64))
}

/// Whether each process has this limit for itself, and does not share it with others.
pub(crate) const fn of_each_process(kind: LimitKind) -> bool {
    matches!(kind, LimitKind::RlimitAs | LimitKind::RlimitData | LimitKind::Fds)
}

/// The limit at which a process was refused so many bytes at a time, in nanoseconds: the nearest that it has for itself, if
/// it was near it, or near enough to come to it since its last reading.
pub(crate) fn refused(recording: &Recording, pid: u32, asked_bytes: u64, at_ns: u64) -> Option<Limit> {
    let (kind, bytes, room) = own(recording, pid).min_by_key(|(_, _, room)| *room)?;
    let used = match kind {
        LimitKind::RlimitData => data,
        _ => address_space,
    };
    let grown = grown_since(recording, pid, used, at_ns).unwrap_or(0);
    let near = asked_bytes.max((NEAR * bytes as f64) as u64).max(grown);
    (room <= near).then_some(Limit { kind, bytes })
}

/// Bytes that a process takes between its highest reading and that time, as fast as it grew between two of its last
/// readings: over all of them it may have loaded at first, or may have waited for a processor. Resident memory is read from
/// the beginning, what a limit counts only once the limit is known.
fn grown_since(recording: &Recording, pid: u32, used: Used, at_ns: u64) -> Option<u64> {
    let (last_ns, _) = last_looks(recording, pid, used).max_by_key(|(_, used)| *used)?;
    let fastest = fastest(recording, pid, used).max(fastest(recording, pid, resident));
    Some((fastest * at_ns.saturating_sub(last_ns) as f64) as u64)
}

/// Bytes per nanosecond between two of a process's last looks, where most.
fn fastest(recording: &Recording, pid: u32, used: Used) -> f64 {
    let looks: Vec<(u64, u64)> = last_looks(recording, pid, used).collect();
    let rate = |pair: &[(u64, u64)]| match pair {
        [(late_ns, late), (early_ns, early)] if late_ns > early_ns => {
            late.saturating_sub(*early) as f64 / (late_ns - early_ns) as f64
        }
        _ => 0.0,
    };
    looks.windows(2).map(rate).fold(0.0, f64::max)
}

/// The limit at which the kernel killed: the nearest of the host's that is not a budget.
pub(crate) fn killed(recording: &Recording) -> Option<Limit> {
    let nearest = of_kernel(recording)?.into_iter().flatten().min_by_key(|(_, _, room)| *room);
    nearest.map(|(kind, bytes, _)| Limit { kind, bytes })
}

/// The limits that a process has for itself.
fn own(recording: &Recording, pid: u32) -> impl Iterator<Item = Room> {
    let limits = recording.info.limits.each;
    let room = move |kind, limit: Option<u64>, used: Used| {
        let used = last(recording, pid, used)?;
        limit.map(|limit| (kind, limit, limit.saturating_sub(used)))
    };
    let address = room(LimitKind::RlimitAs, limits.address_space_bytes, address_space);
    let data = room(LimitKind::RlimitData, limits.data_bytes, data);
    address.into_iter().chain(data)
}

fn open_files(recording: &Recording, pid: u32) -> Option<Room> {
    let limit = recording.info.limits.each.open_files?;
    let used = last(recording, pid, |look| look.fds.map(u64::from))?;
    Some((LimitKind::Fds, limit, limit.saturating_sub(used)))
}

fn shm(recording: &Recording) -> Option<Room> {
    let limit = recording.info.limits.shm_bytes.filter(|limit| *limit > 0)?;
    let used = recording.system.iter().rev().find_map(|look| look.shm_used_bytes)?;
    Some((LimitKind::Shm, limit, limit.saturating_sub(used)))
}

/// The highest of a process's last looks.
fn last(recording: &Recording, pid: u32, used: Used) -> Option<u64> {
    last_looks(recording, pid, used).map(|(_, used)| used).max()
}

/// A process's last looks, newest first: times, in nanoseconds, and what is used.
fn last_looks(recording: &Recording, pid: u32, used: Used) -> impl Iterator<Item = (u64, u64)> {
    let looks = recording.samples.iter().rev().filter(move |look| look.pid == pid);
    let looks = looks.filter_map(move |look| Some((look.time_ns, used(look)?)));
    let mut end_ns = None;
    looks.take_while(move |(time_ns, _)| *time_ns + ENDING_NS >= *end_ns.get_or_insert(*time_ns))
}

fn address_space(look: &Sample) -> Option<u64> {
    look.address_space_bytes
}

fn resident(look: &Sample) -> Option<u64> {
    (look.rss_bytes > 0).then_some(look.rss_bytes)
}

fn data(look: &Sample) -> Option<u64> {
    look.data_bytes
}

/// The nearest limit of the host's memory, with the limit and what is left below it, in bytes.
fn host(recording: &Recording) -> Option<Room> {
    let (limits, last) = (&recording.info.limits, before_the_end(&recording.system)?);
    let budget = limits
        .budget_bytes
        .map(|limit| (LimitKind::Budget, limit, limit.saturating_sub(last.tree_rss_bytes)));
    of_kernel(recording)?.into_iter().chain([budget]).flatten().min_by_key(|(_, _, room)| *room)
}

/// The limits that the kernel keeps: of the control group and of the machine.
fn of_kernel(recording: &Recording) -> Option<[Option<Room>; 2]> {
    let (limits, last) = (&recording.info.limits, before_the_end(&recording.system)?);
    // What the kernel gives back before it kills takes no room. It is not read at every look.
    let cache = recording.system.iter().rev().find_map(|look| look.cgroup_cache_bytes).unwrap_or(0);
    let cgroup = limits
        .cgroup_bytes
        .zip(last.cgroup_bytes)
        .map(|(limit, used)| (LimitKind::Cgroup, limit, limit.saturating_sub(used.saturating_sub(cache))));
    // Not known where the head of a recording is damaged.
    let physical = Some((LimitKind::Physical, limits.physical_bytes, last.available_bytes));
    let physical = physical.filter(|(_, limit, _)| *limit > 0);
    Some([cgroup, physical])
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
        let found = room(&recording, None, Series::Rss).map(|(_, left)| left);
        assert_eq!(found, Some(left));
    }

    #[test]
    fn a_process_runs_into_limits_of_its_own_first() {
        let sample = |second: u64, address: u64, fds| Sample {
            time_ns: second * 1_000_000_000,
            pid: 7,
            address_space_bytes: Some(address),
            fds,
            ..Sample::default()
        };
        let samples = vec![sample(1, 500, Some(9)), sample(10, 700, Some(12)), sample(11, 20, None)];
        let mut recording = Recording { system: vec![look(1, 300)], samples, ..Recording::default() };
        recording.info.limits.physical_bytes = 1000;
        recording.info.limits.each.address_space_bytes = Some(800);
        recording.info.limits.each.open_files = Some(16);
        let found =
            |pid, series| room(&recording, pid, series).map(|(limit, left)| (limit.kind, limit.bytes, left));
        assert_eq!(found(Some(7), Series::InUse), Some((LimitKind::RlimitAs, 800, 100.0)));
        assert_eq!(found(Some(7), Series::Fds), Some((LimitKind::Fds, 16, 4.0)));
        assert_eq!(found(Some(8), Series::Fds), None);
        assert_eq!(found(None, Series::Rss), Some((LimitKind::Physical, 1000, 700.0)));
    }

    #[test]
    fn a_process_that_grew_fast_was_refused_after_its_last_look() {
        let sample = |tenth: u64, address: u64| Sample {
            time_ns: tenth * 100_000_000,
            pid: 7,
            address_space_bytes: Some(address),
            ..Sample::default()
        };
        let samples = vec![sample(10, 300), sample(15, 500), sample(17, 580)];
        let mut recording = Recording { samples, ..Recording::default() };
        recording.info.limits.each.address_space_bytes = Some(800);
        let kind = |tenth: u64| refused(&recording, 7, 0, tenth * 100_000_000).map(|limit| limit.kind);
        assert_eq!(kind(17), None);
        assert_eq!(kind(20), None);
        assert_eq!(kind(23), Some(LimitKind::RlimitAs));
        // The limit was found at the last look.
        let early = Sample { address_space_bytes: None, rss_bytes: 200, ..sample(15, 0) };
        let late = Sample { rss_bytes: 480, ..sample(17, 580) };
        let found_late = Recording { samples: vec![early, late], ..recording.clone() };
        assert_eq!(
            refused(&found_late, 7, 0, 2_000_000_000).map(|limit| limit.kind),
            Some(LimitKind::RlimitAs)
        );
        // It loaded slowly before it grew.
        let samples = vec![sample(2, 290), sample(15, 300), sample(17, 580)];
        let loading = Recording { samples, ..recording.clone() };
        assert_eq!(refused(&loading, 7, 0, 2_000_000_000).map(|limit| limit.kind), Some(LimitKind::RlimitAs));
    }

    #[test]
    fn what_is_left_is_left_before_processes_give_back_theirs() {
        check(vec![look(1, 300), look(10, 600), look(11, 20)], 400.0);
        check(vec![look(1, 600), look(10, 300)], 700.0);
    }
}
