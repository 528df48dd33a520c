//! Signals to end that arrive between two commands, noted by a caller that has something to put right first.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::signals;

/// The last one; 0 for none.
static NOTED: AtomicI32 = AtomicI32::new(0);

/// Signals by which a person or a system wants the end.
const TO_END: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// From now on such a signal is noted instead of ending the caller; one that is ignored stays so. What [`crate::run`] starts
/// finds the signals as usual.
///
/// # Errors
/// The error of the system.
pub fn note_signals() -> io::Result<()> {
    for signal in TO_END.into_iter().filter(|signal| !signals::is_ignored(*signal)) {
        signals::disposition(signal, Some(note as *const () as libc::sighandler_t))?;
    }
    Ok(())
}

/// The last signal that was noted.
pub fn noted_signal() -> Option<i32> {
    Some(NOTED.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// Async-signal-safe.
extern "C" fn note(signal: libc::c_int) {
    NOTED.store(signal, Ordering::Relaxed);
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn a_signal_is_noted_and_does_not_end_the_caller() {
        note_signals().unwrap();
        assert_eq!(noted_signal(), None);
        kill_process(getpid(), Signal::HUP).unwrap();
        // Another thread of the test may take it.
        while noted_signal().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(noted_signal(), Some(libc::SIGHUP));
    }
}
