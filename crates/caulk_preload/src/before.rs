//! What was counted before the process had its slot, and whether anything is counted at all.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::line::Line;
use crate::state::active;

/// Is anything counted in this process?
pub(crate) static KEPT: AtomicBool = AtomicBool::new(false);
/// What was counted before the process had its slot.
pub(crate) static BEFORE: Line = Line::new();

/// Is anything counted in this process?
pub(crate) fn are_kept() -> bool {
    KEPT.load(Ordering::Relaxed)
}

/// The process has its slot: what was counted before goes there. Whoever counts at this time does this as well.
pub(crate) fn hand_on() {
    if let Some(segment) = active() {
        segment.common_line().add(BEFORE.take());
    }
}

/// The process has found no slot: nobody would see its sums.
pub(crate) fn give_up() {
    KEPT.store(false, Ordering::Relaxed);
}
