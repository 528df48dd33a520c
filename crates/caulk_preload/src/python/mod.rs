//! The interpreter's own data, read as it lies in memory: no lock, no call but for the address of the thread's state.
//!
//! A thread's frames change only by what the thread itself does, and it is in here meanwhile, or waits. Nothing is read before the
//! agent has seen that a known call comes back as it was made.

mod code;
mod frames;
mod layout;
mod memory;
mod refusal;
mod symbol;

use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use code::{copy_code, qualified_name, signature};
pub(crate) use frames::{Raw, thread_state, walk, walk_other, walk_unchecked};
pub(crate) use memory::{Memory, Others, Own};
pub(crate) use refusal::{refusal, set_refusal};
pub(crate) use symbol::symbol;

use caulk_wire::heap::Refusal;

/// Minor version of Python 3.
static MINOR: AtomicU32 = AtomicU32::new(0);

/// Does this process run Python?
pub(crate) fn is_there() -> bool {
    symbol(c"PyGILState_GetThisThreadState").is_some()
}

/// The minor version of Python 3; 0 where there is none, or as long as nobody has asked.
pub(crate) fn minor() -> u32 {
    MINOR.load(Ordering::Relaxed)
}

/// Finds out how this version lays its data out. With the interpreter's lock held, outside of all hooks: it may wait for
/// the loader.
pub(crate) fn prepare() -> Result<(), Refusal> {
    MINOR.store(layout::version().map_or(0, |(_, minor)| minor), Ordering::Relaxed);
    frames::resolve();
    layout::choose()
}
