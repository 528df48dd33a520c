//! The two clocks of the supervisor, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`: the time of everything that is recorded.
pub(crate) fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// CPU time of the calling thread: what looking costs, however busy the machine is.
pub(crate) fn cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
