//! When a process started: with its number that tells it from every other one, and `exec` leaves it as it is.

use libc::c_char;

/// Room for `/proc/`, a number, `/stat` and a zero.
const PATH: usize = 32;
/// Bytes of the file that are read: the time is within them.
const READ: usize = 512;
/// The time's field, counted from the one behind the program's name (proc(5), `starttime`).
const FIELD: usize = 19;

/// In ticks since boot; 0 where that cannot be read.
pub(crate) fn started(pid: u32) -> u64 {
    let mut bytes = [0; READ];
    let length = read(pid, &mut bytes).unwrap_or(0);
    bytes.get(..length).and_then(parse).unwrap_or(0)
}

fn read(pid: u32, bytes: &mut [u8]) -> Option<usize> {
    let path = path(pid);
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
fn parse(text: &[u8]) -> Option<u64> {
    let name = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = text.get(name + 2..)?.split(|byte| *byte == b' ');
    let digits = fields.nth(FIELD)?.iter();
    digits.copied().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit.checked_sub(b'0')?))
    })
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
    }

    #[test]
    fn names_may_hold_brackets_and_blanks() {
        let text = b"7 (a) 1 (b) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 99 1";
        assert_eq!(parse(text), Some(4711));
        assert_eq!(parse(b"7 (cut"), None);
        assert_eq!(path(4_294_967_295)[..21], *b"/proc/4294967295/stat");
        assert_eq!(path(10)[..14], *b"/proc/10/stat\0");
    }
}
