//! A value that is set once, with the interpreter's lock held, and read by any thread after that.
//!
//! The standard library's would bring its panics along, and with them what only its own C library has: this library is
//! loaded into programs of any.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const TAKEN: u8 = 1;
const SET: u8 = 2;

/// A place for a value.
pub(crate) struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: written by the one thread that took the place, and read by others after it has said so.
unsafe impl<T: Copy + Sync + Send> Sync for Once<T> {}

impl<T: Copy> Once<T> {
    /// An empty one.
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(None) }
    }

    /// The value, once it is set.
    pub(crate) fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: it is set, and never again.
        unsafe { &*self.value.get() }.as_ref()
    }

    /// Sets the value; false where there is one already.
    pub(crate) fn set(&self, value: T) -> bool {
        if self.state.compare_exchange(EMPTY, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        // SAFETY: the place was taken by this thread, and nobody reads before it is set.
        unsafe { *self.value.get() = Some(value) };
        self.state.store(SET, Ordering::Release);
        true
    }
}
