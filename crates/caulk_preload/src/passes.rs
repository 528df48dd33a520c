//! Backward passes of the calling thread: each lends its stack to threads that have none, from its beginning to its end.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::lent::{LENT, OUTERMOST, SERVANTS};
use crate::local::{Inside, local};
use crate::{process, stacks};

static BEGUN: AtomicU32 = AtomicU32::new(0);

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
    let stack = stacks::current(process::current().ok()?, inside.local())?;
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
