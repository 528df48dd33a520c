//! The process's slot of the shared memory, from its claim at the first sample on.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use caulk_wire::heap::{MAGIC, SLOT_BYTES, header};

use crate::environment::{beginning, is_meant};
use crate::slot::Segment;
use crate::started::remember_process;
use crate::state::{CLAIMING, LAZY, OFF, ON, SLOT, STATE, active};
use crate::{arenas, before, claim, live, maps, python, stacks};

/// See [`watch`].
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nothing is sampled in this process.
    Off,
    /// There may be one in a moment.
    Soon,
}

/// Looks whether this process is to be sampled: it runs Python, on the allocator that is behind the hooks, and there is
/// memory to write to.
pub(crate) fn start() {
    let state = if is_meant() { LAZY } else { OFF };
    remember_process();
    STATE.store(state, Ordering::Release);
}

/// A forked child has no slot yet: what it inherits is its parent's. `idle`: nobody is using that here.
pub(crate) fn start_anew(idle: bool) {
    remember_process();
    WATCHED.store(false, Ordering::Relaxed);
    let inherited = SLOT.swap(ptr::null_mut(), Ordering::Relaxed);
    if let Some(inherited) = NonNull::new(inherited).filter(|_| idle) {
        // SAFETY: as the caller says.
        unsafe { maps::unmap(inherited, SLOT_BYTES) };
    }
    if STATE.load(Ordering::Relaxed) != OFF {
        STATE.store(LAZY, Ordering::Relaxed);
    }
}

/// The slot; claims one for the first who asks.
///
/// # Errors
/// Why there is none.
pub(crate) fn current() -> Result<Segment, Absent> {
    match STATE.load(Ordering::Acquire) {
        ON => active().ok_or(Absent::Off),
        LAZY => {
            let taken = STATE.compare_exchange(LAZY, CLAIMING, Ordering::Acquire, Ordering::Relaxed);
            taken.map_err(|_| Absent::Soon)?;
            let slot = claim::claim().filter(|slot| begin(*slot));
            SLOT.store(slot.map_or(ptr::null_mut(), |slot| slot.0.as_ptr()), Ordering::Release);
            STATE.store(if slot.is_some() { ON } else { OFF }, Ordering::Release);
            if slot.is_some() {
                before::hand_on();
            } else {
                before::give_up();
            }
            slot.ok_or(Absent::Off)
        }
        OFF => Err(Absent::Off),
        _ => Err(Absent::Soon),
    }
}

/// An agent reports of this process from now on: what its slot holds is read, whenever it ends.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
    active().into_iter().for_each(Segment::watched);
}

/// Makes a slot one that can be read; false where there is no memory for what goes with it.
fn begin(slot: Segment) -> bool {
    if !(live::start() && stacks::start(slot)) {
        return false;
    }
    slot.set_interval(beginning());
    slot.read_by(python::minor(), python::refusal());
    slot.tell_arenas(arenas::bytes());
    if before::are_kept() {
        slot.begin_lines();
    }
    if WATCHED.load(Ordering::Relaxed) {
        slot.watched();
    }
    slot.long(header::MAGIC).store(MAGIC, Ordering::Release);
    true
}
