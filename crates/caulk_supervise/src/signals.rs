//! The supervisor's signals: blocked, read from a descriptor, and put back as they were, here and in the command.
//!
//! What the terminal sends reaches every process of the group, the command among them. What is sent to the
//! supervisor alone is passed on. Stopping (Ctrl-Z) stays as the system does it.

use std::fs::File;
use std::io::{self, Read};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// Signals that a person or a program sends to a job.
pub(crate) const PASSED_ON: [i32; 6] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// A signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// A child has changed its state.
    Child,
    /// The terminal, or the kernel for it, has sent this to the group.
    Terminal(i32),
    /// A process has sent this.
    Sent(i32),
}

/// Signals wait to be read while this lives.
#[derive(Debug)]
pub(crate) struct Signals {
    file: File,
    before: Before,
}

/// What a process started by a shell in the supervisor's place would have found.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    mask: libc::sigset_t,
    child: libc::sighandler_t,
    start: AtStart,
}

/// What signals did when the process was started: Rust's runtime ignores SIGPIPE before `main`, and [`outlive_file_limit`]
/// SIGXFSZ.
#[derive(Debug, Clone, Copy)]
struct AtStart {
    pipe: libc::sighandler_t,
    file_size: libc::sighandler_t,
}

impl std::fmt::Debug for Before {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Before")
            .field("child", &self.child)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

impl Signals {
    /// Blocks the signals in the calling thread.
    ///
    /// # Errors
    /// What the system says where it gives no descriptor.
    pub(crate) fn block() -> io::Result<Self> {
        let mask = set_of(PASSED_ON.into_iter().chain([libc::SIGCHLD]));
        // An inherited "ignore" would let the kernel wait for the command itself: its exit code would be lost.
        let child = disposition(libc::SIGCHLD, Some(libc::SIG_DFL))?;
        let before = Before { mask: change_mask(libc::SIG_BLOCK, &mask)?, child, start: AtStart::get() };
        match descriptor(&mask) {
            Ok(file) => Ok(Self { file, before }),
            Err(error) => {
                let _ = before.restore();
                Err(error)
            }
        }
    }

    /// The next signal that waits.
    pub(crate) fn next(&mut self) -> Option<Arrived> {
        loop {
            let info = next_of(&mut self.file)?;
            let signal = info.ssi_signo as i32;
            if signal == libc::SIGCHLD {
                return Some(Arrived::Child);
            }
            if PASSED_ON.contains(&signal) {
                let sent = info.ssi_code <= 0;
                return Some(if sent { Arrived::Sent(signal) } else { Arrived::Terminal(signal) });
            }
        }
    }

    /// What the command is to find.
    pub(crate) fn before(&self) -> Before {
        self.before
    }
}

/// Waits for so long; false if a signal has arrived meanwhile.
///
/// # Errors
/// As [`Signals::block`].
pub(crate) fn pause(length: Duration) -> io::Result<bool> {
    let mut signals = Signals::block()?;
    let until = Instant::now() + length;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        // Interrupted or refused is as good as too early: the time decides.
        let _ = poll(&mut [PollFd::new(&signals, PollFlags::IN)], Some(&timeout));
        while let Some(arrived) = signals.next() {
            if arrived != Arrived::Child {
                return Ok(false);
            }
        }
        if left.is_zero() {
            return Ok(true);
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What still waits was for the run, which is over: it must not end the caller.
        while self.next().is_some() {}
        let _ = self.before.restore();
    }
}

impl Before {
    /// Puts mask and dispositions back in the calling thread; async-signal-safe.
    pub(crate) fn restore(&self) -> io::Result<()> {
        disposition(libc::SIGCHLD, Some(self.child))?;
        change_mask(libc::SIG_SETMASK, &self.mask)?;
        Ok(())
    }

    /// Makes a forked child find what the supervisor found; async-signal-safe.
    pub(crate) fn restore_in_child(&self) -> io::Result<()> {
        self.start.restore()?;
        self.restore()
    }
}

impl AtStart {
    fn get() -> Self {
        *AT_START.get().unwrap_or(&Self { pipe: libc::SIG_DFL, file_size: libc::SIG_DFL })
    }

    /// Async-signal-safe.
    fn restore(self) -> io::Result<()> {
        disposition(libc::SIGPIPE, Some(self.pipe))?;
        disposition(libc::SIGXFSZ, Some(self.file_size)).map(drop)
    }
}

/// See [`crate::outlive_file_limit`].
pub(crate) fn outlive_file_limit() {
    // Where this is refused all is as it was.
    let _ = disposition(libc::SIGXFSZ, Some(libc::SIG_IGN));
}

/// See [`crate::as_found`].
pub(crate) fn as_found(command: &mut Command) {
    let start = AtStart::get();
    // SAFETY: the closure runs after fork and calls async-signal-safe functions alone.
    unsafe { command.pre_exec(move || start.restore()) };
}

/// A descriptor from which signals of a set are read, without waiting.
///
/// # Errors
/// What the system says where it gives none.
pub(crate) fn descriptor(set: &libc::sigset_t) -> io::Result<File> {
    // SAFETY: `set` is an initialised set; -1 asks for a new descriptor.
    let descriptor = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by nothing else.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// The next signal that waits at a [`descriptor`].
pub(crate) fn next_of(file: &mut File) -> Option<libc::signalfd_siginfo> {
    let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
    let count = file.read(&mut bytes).ok()?;
    // SAFETY: the kernel has filled the buffer with one of these, which is plain old data.
    (count == bytes.len()).then(|| unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// Does nothing happen when this signal comes?
pub(crate) fn is_ignored(signal: i32) -> bool {
    disposition(signal, None).is_ok_and(|handler| handler == libc::SIG_IGN)
}

/// A set of signals.
pub(crate) fn set_of(signals: impl IntoIterator<Item = i32>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is to a set that this call initialises.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the call above, which cannot fail for a valid pointer.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: `set` is initialised.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Every signal.
pub(crate) fn all() -> libc::sigset_t {
    let mut set = set_of([]);
    // SAFETY: the pointer is to an initialised set.
    unsafe { libc::sigfillset(&raw mut set) };
    set
}

/// Changes the mask of the calling thread and returns the one before; async-signal-safe.
pub(crate) fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set_of([]);
    // SAFETY: both pointers are to initialised sets.
    match unsafe { libc::pthread_sigmask(how, set, &raw mut before) } {
        0 => Ok(before),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Sets what a signal does, if asked to, and returns what it did before; async-signal-safe.
pub(crate) fn disposition(signal: i32, new: Option<libc::sighandler_t>) -> io::Result<libc::sighandler_t> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros is a valid action: the default, no flags, an empty mask.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = new.unwrap_or(libc::SIG_DFL);
    action.sa_flags = libc::SA_RESTART;
    let action = if new.is_some() { &raw const action } else { ptr::null() };
    // SAFETY: `action` is null or an initialised action, with a handler that is async-signal-safe if it has one; `before` has
    // room for one.
    if unsafe { libc::sigaction(signal, action, before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed above and filled by the call.
    Ok(unsafe { before.assume_init() }.sa_sigaction)
}

static AT_START: OnceLock<AtStart> = OnceLock::new();

/// Runs before `main`: services of systemd are started with SIGPIPE ignored, others are not, and the command is to
/// find what it would have found.
extern "C" fn look_at_start() {
    let found = |signal| disposition(signal, None).unwrap_or(libc::SIG_DFL);
    let _ = AT_START.set(AtStart { pipe: found(libc::SIGPIPE), file_size: found(libc::SIGXFSZ) });
}

#[used]
// SAFETY: the section holds pointers to functions without arguments that the loader calls before `main`; this one
// calls only `sigaction` and touches nothing that Rust's runtime sets up.
#[unsafe(link_section = ".init_array")]
static LOOK_AT_START: extern "C" fn() = look_at_start;
