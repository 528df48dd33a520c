//! A clock for the agent: programs in which no step, no batch and no collection ever calls it allocate all the same.
//!
//! Asked for by a sample, which may come from anywhere, and struck at the thread's next small object, where the
//! interpreter's lock is held for certain. What is called there only leaves word with the interpreter
//! (`Py_AddPendingCall`), which gets round to it between two instructions of its own.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::{mem, ptr};

use crate::local::Local;

/// Called from within an allocation: allocates nothing.
pub(crate) type Strike = extern "C" fn();

/// Nanoseconds between two strikes, at least.
const PERIOD: u64 = 50_000_000;

static STRIKE: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
/// Time before which nothing is struck, in nanoseconds.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Calls this from now on, or nothing any more.
pub(crate) fn set(strike: Option<Strike>) {
    STRIKE.store(strike.map_or(ptr::null_mut(), |strike| strike as *mut ()), Ordering::Relaxed);
}

/// The time, as a sample has read it: the thread's next small object strikes, where it is due.
pub(crate) fn look(own: &mut Local, now: u64) {
    let next = NEXT.load(Ordering::Relaxed);
    if now < next || STRIKE.load(Ordering::Relaxed).is_null() {
        return;
    }
    if NEXT.compare_exchange(next, now + PERIOD, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        own.strikes = 1;
    }
}

/// A small object is about to be made: the interpreter's lock is held.
#[cold]
pub(crate) fn strike(own: &mut Local) {
    own.strikes = 0;
    let strike = STRIKE.load(Ordering::Relaxed);
    if !strike.is_null() {
        // SAFETY: only `set` stores here.
        unsafe { mem::transmute::<*mut (), Strike>(strike)() };
    }
}
