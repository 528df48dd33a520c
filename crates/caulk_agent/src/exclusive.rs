//! One value for the whole process, used by one caller at a time; a second one goes away instead of waiting.
//!
//! Waiting would deadlock: the holder may need the GIL that the waiter holds.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Exclusive<T> {
    busy: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is only reached by whoever turned `busy` from false to true.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) const fn new() -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(None) }
    }

    /// With a value from the beginning: then [`Self::with`] answers `None` only where somebody is using it.
    pub(crate) const fn holding(value: T) -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(Some(value)) }
    }

    /// Sets the value, unless somebody is using the one before.
    pub(crate) fn put(&self, value: T) {
        self.enter(|slot| *slot = Some(value));
    }

    /// Runs `action` on the value; does nothing where there is none or somebody is using it.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.enter(|slot| slot.as_mut().map(action)).flatten()
    }

    /// Drops the value, unless somebody is using it.
    pub(crate) fn clear(&self) {
        self.enter(|slot| *slot = None);
    }

    /// After a fork: whoever used the value does not exist in this process.
    pub(crate) fn release(&self) {
        self.busy.store(false, Ordering::Release);
    }

    fn enter<R>(&self, action: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let release = Release(&self.busy);
        // SAFETY: `busy` was false and is true now: nobody else is in here.
        let result = action(unsafe { &mut *self.value.get() });
        drop(release);
        Some(result)
    }
}

/// Frees the value again, also where `action` panics.
struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_caller_goes_away() {
        static VALUE: Exclusive<u32> = Exclusive::new();
        assert_eq!(VALUE.with(|value| *value), None);
        VALUE.put(1);
        assert_eq!(VALUE.with(|outer| VALUE.with(|inner| *inner).is_none() && *outer == 1), Some(true));
        assert_eq!(VALUE.with(|value| *value), Some(1));
    }
}
