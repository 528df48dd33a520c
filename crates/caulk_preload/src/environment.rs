//! What the environment asks for, read once when the library is loaded: where the memory is, and how often to sample.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use caulk_wire::heap::INTERVAL;

use crate::{python, real};

/// Mean bytes between samples at the beginning.
static BEGINNING: AtomicU64 = AtomicU64::new(INTERVAL);
/// Shortest mean that is taken from the environment.
const SHORTEST: u64 = 1 << 10;

/// Path of the shared memory, kept so that a forked child need not read its environment.
const PATH_BYTES: usize = 64;
static PATH: [AtomicU8; PATH_BYTES] = [const { AtomicU8::new(0) }; PATH_BYTES];

/// Mean bytes between samples to begin with.
pub(crate) fn beginning() -> u64 {
    BEGINNING.load(Ordering::Relaxed)
}

/// Is this process to be sampled: does it run Python, on the allocator that is behind the hooks, with memory to write to?
pub(crate) fn is_meant() -> bool {
    // SAFETY: a name that ends with zero; at this time there is one thread.
    let path = unsafe { libc::getenv(c"CAULK_HEAP".as_ptr()) };
    if path.is_null() || !real::is_glibc() || !python::is_there() || !real::is_first() {
        return false;
    }
    // SAFETY: a string of the environment.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    for (place, byte) in PATH.iter().zip(path) {
        place.store(*byte, Ordering::Relaxed);
    }
    if let Some(wanted) = number(c"CAULK_HEAP_INTERVAL").filter(|wanted| *wanted > 0) {
        BEGINNING.store(wanted.max(SHORTEST), Ordering::Relaxed);
    }
    path.len() < PATH_BYTES
}

/// A number in the environment; `None` where there is none, or something else.
fn number(name: &CStr) -> Option<u64> {
    // SAFETY: a name that ends with zero; at this time there is one thread.
    let text = unsafe { libc::getenv(name.as_ptr()) };
    if text.is_null() {
        return None;
    }
    // SAFETY: a string of the environment.
    let digits = unsafe { CStr::from_ptr(text) }.to_bytes().iter();
    digits.copied().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Path of the shared memory, with a zero behind it.
pub(crate) fn path() -> [u8; PATH_BYTES + 1] {
    let mut path = [0_u8; PATH_BYTES + 1];
    for (byte, place) in path.iter_mut().zip(&PATH) {
        *byte = place.load(Ordering::Relaxed);
    }
    path
}
