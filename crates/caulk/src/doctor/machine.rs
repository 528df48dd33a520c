//! Reads the machine.

use std::collections::BTreeMap;
use std::fs;
use std::thread::available_parallelism;

use caulk_doctor::{HostFacts, Space, variables};
use caulk_supervise::Options;
use rustix::process::{Resource, getrlimit};

/// Everything but the interpreter.
pub(crate) fn machine() -> HostFacts {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let space = |total: &str, free: &str| {
        Some(Space { total: kilobytes(&memory, total)?, free: kilobytes(&memory, free)? })
    };
    let limit = caulk_supervise::cgroup_room(&Options::new(Vec::new()));
    HostFacts {
        memory: space("MemTotal:", "MemAvailable:"),
        swap: space("SwapTotal:", "SwapFree:"),
        cgroup: limit.map(|(total, free)| Space { total, free }),
        shared_memory: room("/dev/shm"),
        disks: disks(),
        overcommit: fs::read_to_string("/proc/sys/vm/overcommit_memory")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        huge_pages: huge_pages(),
        limits: limits(),
        processors: available_parallelism().map_or(1, usize::from),
        quota: quota(),
        variables: variables()
            .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
            .collect(),
        python: None,
    }
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Space of the file system at a path.
fn room(path: &str) -> Option<Space> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(Space { total: found.f_blocks * found.f_frsize, free: found.f_bavail * found.f_frsize })
}

fn disks() -> BTreeMap<String, Space> {
    let temporary = std::env::temp_dir().to_string_lossy().into_owned();
    let here =
        std::env::current_dir().map_or_else(|_| ".".into(), |path| path.to_string_lossy().into_owned());
    let mut disks = BTreeMap::new();
    for path in [here, temporary] {
        // Both on one disk are told once.
        if let Some(space) = room(&path).filter(|space| !disks.values().any(|other| other == space)) {
            disks.insert(path, space);
        }
    }
    disks
}

/// The choice in `always [madvise] never`.
fn huge_pages() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn limits() -> BTreeMap<String, u64> {
    let known = [
        ("nofile", Resource::Nofile),
        ("nproc", Resource::Nproc),
        ("as", Resource::As),
        ("data", Resource::Data),
        ("memlock", Resource::Memlock),
    ];
    known.into_iter().filter_map(|(name, which)| Some((name.to_owned(), getrlimit(which).current?))).collect()
}

/// Processors that the control group's quota amounts to (`cpu.max`; `cpu.cfs_quota_us` of version 1).
fn quota() -> Option<f64> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<f64>().ok();
    if let Ok(text) = fs::read_to_string("/sys/fs/cgroup/cpu.max") {
        let (quota, period) = text.trim().split_once(' ')?;
        return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
    }
    let quota = number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")?;
    (quota > 0.0).then(|| Some(quota / number("/sys/fs/cgroup/cpu/cpu.cfs_period_us")?))?
}
