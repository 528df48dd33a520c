//! Signals that end or stop a program, held back until it has put right what it changed: the terminal's settings.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Signal, getpid, kill_process};

use crate::signals;

/// They wait in threads that are started while this lives, too.
#[derive(Debug)]
pub struct HeldSignals {
    file: File,
}

impl HeldSignals {
    /// Holds back those that would end or stop the caller. One that is ignored stays so.
    ///
    /// # Errors
    /// What the system says where it gives no descriptor.
    pub fn back() -> io::Result<Self> {
        let wanted = signals::PASSED_ON.into_iter().chain([libc::SIGTSTP]);
        let mask = signals::set_of(wanted.filter(|signal| !signals::is_ignored(*signal)));
        let file = signals::descriptor(&mask)?;
        signals::change_mask(libc::SIG_BLOCK, &mask)?;
        Ok(Self { file })
    }

    /// The next one that waits.
    pub fn arrived(&mut self) -> Option<Signal> {
        let info = signals::next_of(&mut self.file)?;
        Signal::from_named_raw(info.ssi_signo as i32)
    }

    /// Has a signal do what it would have done: it ends the caller, or stops it until somebody has it go on.
    ///
    /// # Errors
    /// What the system says.
    pub fn let_through(&self, signal: Signal) -> io::Result<()> {
        let mask = signals::set_of([signal.as_raw()]);
        kill_process(getpid(), signal)?;
        // It waits for this thread, which is the only one to take it.
        let before = signals::change_mask(libc::SIG_UNBLOCK, &mask)?;
        signals::change_mask(libc::SIG_SETMASK, &before)?;
        Ok(())
    }
}

impl AsFd for HeldSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
