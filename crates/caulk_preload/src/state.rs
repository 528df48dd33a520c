//! Whether this process has a slot, and which.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::slot::Segment;

/// Other libraries' constructors may run before ours.
const LOADING: u8 = 0;
/// Nothing is sampled here.
pub(crate) const OFF: u8 = 1;
/// A slot is claimed at the first sample.
pub(crate) const LAZY: u8 = 2;
/// One thread is claiming a slot.
pub(crate) const CLAIMING: u8 = 3;
/// There is a slot.
pub(crate) const ON: u8 = 4;

pub(crate) static STATE: AtomicU8 = AtomicU8::new(LOADING);
pub(crate) static SLOT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Is this process to be sampled, once it allocates?
pub(crate) fn is_meant_to_be() -> bool {
    STATE.load(Ordering::Relaxed) == LAZY
}

/// The slot, where there is one.
pub(crate) fn active() -> Option<Segment> {
    NonNull::new(SLOT.load(Ordering::Acquire)).map(Segment)
}
