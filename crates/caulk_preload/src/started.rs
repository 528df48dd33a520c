//! When a process started, and whether it has ended. With its number, the start tells a process from every other one, and
//! `exec` leaves it as it is.

use std::sync::atomic::{AtomicU32, Ordering};

use caulk_wire::heap::Owner;
use libc::c_char;

/// Room for `/proc/`, a number, `/stat` and a zero.
const PATH: usize = 32;
/// Bytes of the file that are read: what is looked at is within them.
const READ: usize = 512;
/// Fields, counted from the one behind the program's name (proc(5): `num_threads`, `starttime`).
const THREADS: usize = 17;
const START: usize = 19;

/// What of `stat` is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    pid: u64,
    state: u8,
    threads: u64,
    /// In ticks since boot.
    start: u64,
}

/// In ticks since boot; 0 where that cannot be read.
pub(crate) fn started(pid: u32) -> u64 {
    stat(&path(pid)).map_or(0, |stat| stat.start)
}

/// The calling process as `/proc` has it: its number there, and when it started.
pub(crate) fn own() -> Option<(u32, u64)> {
    let stat = stat(b"/proc/self/stat\0")?;
    Some((u32::try_from(stat.pid).ok()?, stat.start))
}

/// Has this process ended, waited for or not? False where that cannot be told.
pub(crate) fn has_ended(process: Owner) -> bool {
    match stat(&path(process.pid)) {
        Some(stat) => {
            let is_later = process.start != 0 && stat.start as u32 != process.start;
            // One whose main thread alone has ended lives.
            is_later || (matches!(stat.state, b'Z' | b'X' | b'x') && stat.threads <= 1)
        }
        // Other users' processes may be hidden.
        None => is_nobody(process.pid),
    }
}

/// Is there no process of this number?
fn is_nobody(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else { return false };
    // SAFETY: no pointers; nothing is sent.
    let answer = unsafe { libc::syscall(libc::SYS_kill, pid, 0) };
    // SAFETY: this thread's own.
    answer == -1 && unsafe { *libc::__errno_location() } == libc::ESRCH
}

fn stat(path: &[u8]) -> Option<Stat> {
    let mut bytes = [0; READ];
    let length = read(path, &mut bytes)?;
    parse(bytes.get(..length)?)
}

/// Reads the beginning of a file, by a path that ends with zero.
fn read(path: &[u8], bytes: &mut [u8]) -> Option<usize> {
    debug_assert!(path.ends_with(b"\0"));
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: a path that ends with zero.
    let file =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr().cast::<c_char>(), flags) };
    let file = i32::try_from(file).ok().filter(|file| *file >= 0)?;
    // SAFETY: as much room as is said.
    let length = unsafe { libc::syscall(libc::SYS_read, file, bytes.as_mut_ptr(), bytes.len()) };
    // SAFETY: opened above.
    unsafe { libc::syscall(libc::SYS_close, file) };
    usize::try_from(length).ok()
}

fn path(pid: u32) -> [u8; PATH] {
    let (mut path, mut digits, mut left) = ([0; PATH], [0; 10], pid);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    let digits = digits.into_iter().skip_while(|digit| *digit == b'0');
    let text = b"/proc/".iter().copied().chain(digits).chain(*b"/stat");
    for (place, byte) in path.iter_mut().zip(text) {
        *place = byte;
    }
    path
}

/// A program's name may hold anything, in brackets.
fn parse(text: &[u8]) -> Option<Stat> {
    let name = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(name + 2..)?.split(|byte| *byte == b' ');
    Some(Stat {
        pid: number(text.split(|byte| *byte == b' ').next()?)?,
        state: *fields.next()?.first()?,
        threads: number(fields.nth(THREADS - 1)?)?,
        start: number(fields.nth(START - THREADS - 1)?)?,
    })
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit.checked_sub(b'0')?))
    })
}

/// See [`process`].
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The calling process is this one from now on: said when the library is loaded, and in a forked child.
pub(crate) fn remember_process() {
    // SAFETY: no pointers.
    PROCESS.store(unsafe { libc::getpid() }.cast_unsigned(), Ordering::Relaxed);
}

/// This process: in a child of `vfork`, that whose memory it runs in.
pub(crate) fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_started_at_a_time_of_its_own() {
        let own = started(std::process::id());
        let first = started(1);
        assert!(own > 0 && own > first, "{own} and {first}");
        assert_eq!(started(u32::MAX), 0);
        assert_eq!(super::own(), Some((std::process::id(), own)));
    }

    #[test]
    fn a_process_has_ended_when_it_is_gone_not_waited_for_or_another_one() {
        let this = |pid| Owner { pid, start: started(pid) as u32 };
        let own = this(std::process::id());
        assert!(!has_ended(own) && !has_ended(Owner { start: 0, ..own }));
        assert!(has_ended(Owner { start: own.start + 1, ..own }), "the number is another process's by now");
        for nobody in [0, u32::MAX] {
            assert!(!has_ended(Owner { pid: nobody, start: 1 }), "{nobody} is no process");
        }
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("`cat` starts");
        let process = this(child.id());
        assert!(!has_ended(process));
        drop(child.stdin.take());
        while !has_ended(process) {
            std::thread::yield_now();
        }
        child.wait().expect("it has ended");
        assert!(has_ended(process));
    }

    #[test]
    fn names_may_hold_brackets_and_blanks() {
        let text = b"7 (a) 1 (b) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 99 1";
        assert_eq!(parse(text), Some(Stat { pid: 7, state: b'S', threads: 1, start: 4711 }));
        assert_eq!(parse(b"7 (cut"), None);
        assert_eq!(path(4_294_967_295)[..21], *b"/proc/4294967295/stat");
        assert_eq!(path(10)[..14], *b"/proc/10/stat\0");
    }
}
