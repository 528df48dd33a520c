//! Why there are no Python stacks.

use std::sync::atomic::{AtomicU32, Ordering};

use caulk_wire::heap::Refusal;

pub(crate) static REFUSAL: AtomicU32 = AtomicU32::new(Refusal::NoPython as u32);

/// Why there are no Python stacks.
pub(crate) fn refusal() -> Refusal {
    Refusal::of(REFUSAL.load(Ordering::Relaxed)).unwrap_or(Refusal::NoPython)
}

/// Says that there are, or why there are none.
pub(crate) fn set_refusal(refusal: Refusal) {
    REFUSAL.store(refusal as u32, Ordering::Relaxed);
}
