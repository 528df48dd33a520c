//! Stacks that are lent: threads without Python frames work for a thread that has some.
//!
//! A thread borrows the stack from which it was made. The threads of an autograd engine are made once and work for
//! every backward pass after that: they borrow the stack of the pass that runs, of several that of the last begun. Torch does not
//! tell whose pass its thread works for: where several threads have begun one, it is counted how often that was a guess.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::local::{Local, local};

/// Backward passes that may lend at a time; more do without.
const LENDERS: usize = 16;

/// Of each pass its place in time, in the upper half, and its stack's number plus 1; 0 where there is none.
pub(crate) static LENT: [AtomicU64; LENDERS] = [const { AtomicU64::new(0) }; LENDERS];
/// Threads that were made during a backward pass.
pub(crate) static SERVANTS: AtomicU32 = AtomicU32::new(0);
/// Passes that lend and are not part of another one.
pub(crate) static OUTERMOST: AtomicU32 = AtomicU32::new(0);

/// A thread is being made: 1 where it will serve backward passes.
pub(crate) fn engages() -> u32 {
    // SAFETY: this thread's own.
    let serves = u32::from(unsafe { local().as_ref() }.passes > 0);
    SERVANTS.fetch_add(serves, Ordering::Relaxed);
    serves
}

/// The stack that a thread without one borrows.
pub(crate) fn to(own: &Local) -> Option<u32> {
    let latest = || LENT.iter().map(|place| place.load(Ordering::Relaxed)).max();
    let of_pass = if own.serves > 0 { latest().map_or(0, |entry| entry as u32) } else { 0 };
    if of_pass > 0 { Some(of_pass - 1) } else { own.creator.checked_sub(1) }
}

/// Is the stack that a thread without one borrows one of several that it may work for?
pub(crate) fn is_mixed(own: &Local) -> bool {
    own.serves > 0 && OUTERMOST.load(Ordering::Relaxed) > 1
}

/// In a forked child: the stacks are the parent's, and so are the threads.
pub(crate) fn forget() {
    for place in &LENT {
        place.store(0, Ordering::Relaxed);
    }
    SERVANTS.store(0, Ordering::Relaxed);
    OUTERMOST.store(0, Ordering::Relaxed);
}
