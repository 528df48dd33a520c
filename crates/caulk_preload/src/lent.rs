//! Stacks that are lent: threads without Python frames work for a thread that has some.
//!
//! A thread borrows the stack from which it was made. The threads of an autograd engine are made once and work for
//! every backward pass after that: they borrow the stack of the pass that runs, of several that of the last begun. Torch does not
//! tell whose pass its thread works for: where several threads have begun one, it is counted how often that was a guess.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::local::{Inside, Local, local};
use crate::{segment, stacks};

/// Backward passes that may lend at a time; more do without.
const LENDERS: usize = 16;

/// Of each pass its place in time, in the upper half, and its stack's number plus 1; 0 where there is none.
static LENT: [AtomicU64; LENDERS] = [const { AtomicU64::new(0) }; LENDERS];
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Threads that were made during a backward pass.
static SERVANTS: AtomicU32 = AtomicU32::new(0);
/// Passes that lend and are not part of another one.
static OUTERMOST: AtomicU32 = AtomicU32::new(0);

/// The calling thread begins a backward pass. A ticket for its end; 0 where nobody is there to borrow.
pub(crate) fn begin() -> u32 {
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.passes += 1;
    let is_outermost = own.passes == 1 && own.serves == 0;
    let ticket = if SERVANTS.load(Ordering::Relaxed) == 0 { 0 } else { lend().unwrap_or(0) };
    OUTERMOST.fetch_add(u32::from(is_outermost && ticket > 0), Ordering::Relaxed);
    ticket
}

fn lend() -> Option<u32> {
    let mut inside = Inside::enter()?;
    let stack = stacks::current(segment::current().ok()?, inside.local())?;
    let time = u64::from(BEGUN.fetch_add(1, Ordering::Relaxed));
    let entry = time << 32 | u64::from(stack + 1);
    let free =
        |place: &AtomicU64| place.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    LENT.iter().position(free).map(|place| place as u32 + 1)
}

/// The pass with this ticket has ended.
pub(crate) fn end(ticket: u32) {
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.passes = own.passes.saturating_sub(1);
    if let Some(place) = (ticket as usize).checked_sub(1).and_then(|place| LENT.get(place)) {
        place.store(0, Ordering::Relaxed);
        if own.passes == 0 && own.serves == 0 {
            // A forked child ends passes that it has forgotten.
            let fewer = |passes: u32| passes.checked_sub(1);
            let _ = OUTERMOST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        }
    }
}

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
