//! The two clocks of the supervisor, in nanoseconds.

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`: the time of everything that is recorded.
pub(crate) fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// CPU time of the calling thread: what looking costs, however busy the machine is.
pub(crate) fn cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

/// A time after boot in clock ticks, as `/proc/PID/stat` tells when a process started, by the monotonic clock.
///
/// The kernel counts it on the clock that runs while the machine sleeps (`proc_pid_stat(5)`, field 22).
pub(crate) fn of_start(ticks: u64) -> u64 {
    let after_boot = ticks.saturating_mul(1_000_000_000 / clock_ticks_per_second().max(1));
    let slept = read(ClockId::Boottime).saturating_sub(now_ns());
    after_boot.saturating_sub(slept)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
