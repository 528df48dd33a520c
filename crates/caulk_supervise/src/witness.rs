//! Tells a signal sent to the supervisor alone from one sent to its whole process group (`kill %1`, `timeout`,
//! schedulers): the second the command has already.
//!
//! The kernel does not say to whom a signal went. So a process of the supervisor's own, without memory or
//! descriptors to speak of, sleeps in the group with every signal blocked: what waits for it went to the group.

use std::io;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::proc::Reader;
use crate::signals;

/// The sleeping process.
#[derive(Debug)]
pub(crate) struct Witness {
    pid: Pid,
    /// Signals that waited for its predecessors and were not asked about yet.
    carried: u64,
}

impl Witness {
    /// Starts it. It ends with the supervisor, however that ends.
    ///
    /// # Errors
    /// What the system says where it makes no process.
    pub(crate) fn start() -> io::Result<Self> {
        let parent = std::process::id();
        let before = signals::change_mask(libc::SIG_SETMASK, &signals::all())?;
        // SAFETY: the child calls only async-signal-safe functions, and never returns.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            sleep_until_killed(parent, &[]);
        }
        let error = io::Error::last_os_error();
        signals::change_mask(libc::SIG_SETMASK, &before)?;
        let pid = Pid::from_raw(forked).filter(|_| forked > 0).ok_or(error)?;
        Ok(Self { pid, carried: 0 })
    }

    /// True where the signal has gone to the group since the last question about it.
    pub(crate) fn saw(&mut self, reader: &mut Reader, signal: i32) -> bool {
        let bit = 1 << (signal - 1);
        let waiting = pending(reader.process(self.pid(), "status").unwrap_or_default()).unwrap_or(0);
        let all = self.carried | waiting;
        self.carried = all & !bit;
        // What waits, waits once: the next one to the group would not be noticed. Another process takes over.
        if waiting & bit != 0
            && let Ok(next) = Self::start()
        {
            *self = Self { pid: next.pid, carried: self.carried };
            std::mem::forget(next);
        }
        all & bit != 0
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// `ShdPnd` of `/proc/PID/status`.
fn pending(status: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Above all descriptors that the supervisor can have before it starts anything.
const HIGHEST_DESCRIPTOR: i32 = 1024;

/// The life of a forked process that does nothing more but keep these descriptors open; async-signal-safe.
pub(crate) fn sleep_until_killed(parent: u32, kept: &[i32]) -> ! {
    // Pipes end when their last writer closes them: this process must not be one.
    for descriptor in (0..HIGHEST_DESCRIPTOR).filter(|descriptor| !kept.contains(descriptor)) {
        // SAFETY: takes a number; nothing in this process uses the descriptor.
        unsafe { libc::close(descriptor) };
    }
    // SAFETY: takes numbers alone.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: reads one number of the process.
    if unsafe { libc::getppid() } as u32 != parent {
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    loop {
        // SAFETY: every signal is blocked, so this returns for none.
        unsafe { libc::pause() };
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_it_is_told_each_time() {
        let mut witness = Witness::start().unwrap();
        let mut reader = Reader::new();
        assert!(!witness.saw(&mut reader, libc::SIGTERM));
        for _ in 0..3 {
            kill_process(witness.pid, Signal::TERM).unwrap();
            assert!(!witness.saw(&mut reader, libc::SIGINT));
            assert!(witness.saw(&mut reader, libc::SIGTERM));
            assert!(!witness.saw(&mut reader, libc::SIGTERM));
        }
    }
}
