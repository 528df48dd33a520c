//! Clocks: CPU time of a thread and the work that it is good for, CPU time of the process, time on the wall.
//!
//! What the agent may cost is set as the time that an ordinary machine needs. One that is slow or crowded trains as slowly
//! as it searches, and its programs are to be told the same: there every limit is as much longer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Work below which a census tells nothing: the heap of a small program lies in the caches.
const ENOUGH: Duration = Duration::from_millis(8);
/// How much longer the limits may get.
const SLOWEST: f64 = 3.0;
/// How many times longer than an ordinary machine this one takes, as the bits of an `f64`; 0 for not known.
static PACE: AtomicU64 = AtomicU64::new(0);

/// Started once, read often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(thread_time())
    }

    /// CPU time of the thread since.
    pub(crate) fn elapsed(self) -> Duration {
        thread_time().saturating_sub(self.0)
    }

    /// What an ordinary machine would have taken.
    pub(crate) fn work(self) -> Duration {
        ordinary(self.elapsed())
    }
}

/// What an ordinary machine needs for what takes this one so long.
pub(crate) fn ordinary(time: Duration) -> Duration {
    time.div_f64(pace())
}

fn pace() -> f64 {
    let known = f64::from_bits(PACE.load(Ordering::Relaxed));
    if known > 0.0 { known } else { 1.0 }
}

/// Takes in how long a census took that takes an ordinary machine so long.
pub(crate) fn learn(typical: Duration, took: Duration) {
    if typical < ENOUGH {
        return;
    }
    let now = took.div_duration_f64(typical).clamp(1.0, SLOWEST);
    let known = f64::from_bits(PACE.load(Ordering::Relaxed));
    let next = if known > 0.0 { f64::midpoint(known, now) } else { now };
    PACE.store(next.to_bits(), Ordering::Relaxed);
}

/// CPU time of the calling thread.
fn thread_time() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time since the machine started, the clock that both sides share.
pub(crate) fn monotonic() -> Duration {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of the process.
pub(crate) fn process_time() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid clock and a valid place for its answer.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_machine_is_given_as_much_longer_within_bounds() {
        let second = Duration::from_secs(1);
        assert_eq!(ordinary(second), second, "not known yet");
        learn(ENOUGH / 2, second * 3600);
        assert_eq!(ordinary(second), second, "a small heap");
        learn(second, second / 8);
        assert_eq!(ordinary(second), second, "a fast machine");
        for _ in 0..40 {
            learn(second, second * 2);
        }
        assert!(ordinary(second).abs_diff(second / 2) < Duration::from_millis(1));
        for _ in 0..40 {
            learn(second, second * 3600);
        }
        assert!(ordinary(second).abs_diff(second / 3) < Duration::from_millis(1));
    }
}
