//! What a command and everything below it used, as the kernel counts it.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{io, mem};

use anyhow::Context;

use crate::bench::tree;
use crate::console;
use crate::process::Cmd;

/// Wall time is known to a part of itself, and to this at worst.
const POLL: Duration = Duration::from_millis(5);
const PART: u32 = 100;
/// Between two looks at the memory of the whole tree, which cost the same whatever runs.
const LOOK: Duration = Duration::from_millis(50);

/// CPU time, wall time and memory of a whole process tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    /// User and system time of the command and all that it waited for.
    pub(crate) cpu: Duration,
    /// From start to end.
    pub(crate) wall: Duration,
    /// High-water mark of the largest process, in bytes.
    pub(crate) peak_rss_bytes: u64,
    /// The most that all processes together had at one of the looks, in bytes; shared pages count once for each.
    pub(crate) tree_rss_bytes: u64,
    /// Page faults of the command and all that it waited for, those without I/O included.
    pub(crate) faults: u64,
}

/// Runs a command to its end; `None` if it took longer than `limit` and was killed.
pub(crate) fn measure(command: &Cmd, log: &Path, limit: Duration) -> anyhow::Result<Option<Usage>> {
    console::echo(command);
    let Some((status, usage)) = watch(command, log, log, limit)? else { return Ok(None) };
    anyhow::ensure!(status.success(), "`{command}` failed ({status}); see `{}`", log.display());
    Ok(Some(usage))
}

/// As [`measure`], prints nothing and leaves the meaning of a status to the caller.
pub(crate) fn watch(
    command: &Cmd,
    stdout: &Path,
    stderr: &Path,
    limit: Duration,
) -> anyhow::Result<Option<(ExitStatus, Usage)>> {
    let create =
        |path: &Path| File::create(path).with_context(|| format!("failed to make `{}`", path.display()));
    let out = create(stdout)?;
    let err = if stdout == stderr { out.try_clone()? } else { create(stderr)? };
    let mut program = command.command();
    // A group of its own: what hangs is killed with everything that it started.
    program.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    let started = Instant::now();
    let child = program.spawn().with_context(|| format!("failed to start `{command}`"))?;
    let pid = child.id().cast_signed();
    let (mut tree_rss_bytes, mut looked) = (0, Duration::ZERO);
    loop {
        if let Some((status, usage)) = reap(pid, libc::WNOHANG)? {
            let usage = Usage { wall: started.elapsed(), tree_rss_bytes, ..usage };
            return Ok(Some((ExitStatus::from_raw(status), usage)));
        }
        let elapsed = started.elapsed();
        if elapsed >= looked + LOOK {
            looked = elapsed;
            tree_rss_bytes = tree_rss_bytes.max(tree::resident(child.id()));
        }
        if elapsed > limit {
            kill_group(pid);
            reap(pid, 0)?;
            return Ok(None);
        }
        thread::sleep(POLL.min(elapsed / PART));
    }
}

/// Collects a child that has ended, with what it and its own children used.
fn reap(pid: i32, flags: i32) -> anyhow::Result<Option<(i32, Usage)>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers; all zeroes is a value of it.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: both pointers are to live values of the types that `wait4` fills.
    match unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) } {
        -1 => Err(io::Error::last_os_error()).context("failed to wait for the program"),
        0 => Ok(None),
        _ => Ok(Some((status, from_kernel(&usage)))),
    }
}

fn from_kernel(usage: &libc::rusage) -> Usage {
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    let peak_rss_bytes = usage.ru_maxrss.unsigned_abs() * 1024;
    let faults = usage.ru_minflt.unsigned_abs() + usage.ru_majflt.unsigned_abs();
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Usage { cpu, wall: Duration::ZERO, peak_rss_bytes, tree_rss_bytes: 0, faults }
}

fn kill_group(leader: i32) {
    // SAFETY: `kill` has no memory preconditions; the group is the one that `process_group(0)` made.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

/// Bytes of a file, or of all files below a folder; 0 where there is nothing.
pub(crate) fn size_on_disk(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return path.metadata().map_or(0, |metadata| metadata.len());
    };
    entries.filter_map(Result::ok).map(|entry| size_on_disk(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn shell(script: &str, limit: Duration) -> anyhow::Result<Option<Usage>> {
        let folder = tempfile::tempdir().unwrap();
        measure(&Cmd::new("sh").args(["-c", script]), &folder.path().join("log"), limit)
    }

    #[test]
    fn time_of_grandchildren_counts() {
        let spin = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'; true";
        let usage = shell(spin, Duration::from_mins(1)).unwrap().unwrap();
        assert!(usage.cpu > Duration::from_millis(50), "{usage:?}");
        assert!(usage.wall >= usage.cpu / 2 && usage.peak_rss_bytes > 100_000, "{usage:?}");
        assert!(usage.faults > 0 && usage.tree_rss_bytes > 100_000, "{usage:?}");
    }

    #[test]
    fn what_hangs_is_killed_with_its_children() {
        let started = Instant::now();
        assert_eq!(shell("sleep 60; true", Duration::from_millis(100)).unwrap(), None);
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_failing_program_is_an_error() {
        assert!(shell("exit 3", Duration::from_mins(1)).is_err());
    }
}
