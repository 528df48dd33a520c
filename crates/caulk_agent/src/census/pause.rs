//! The collector is off while addresses are held.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Set while the collector is off on caulk's account: a thread that forks meanwhile takes the state along.
static PAUSED: AtomicBool = AtomicBool::new(false);

/// In a forked child: the collector goes on.
pub(crate) fn resume_collector_after_fork() {
    if PAUSED.swap(false, Ordering::Relaxed) {
        // SAFETY: called from Python, with the GIL held.
        unsafe { pyo3::ffi::PyGC_Enable() };
    }
}

/// Keeps the collector from running while borrowed pointers are held, and puts its state back.
pub(crate) struct CollectorPaused(bool);

impl CollectorPaused {
    pub(crate) fn new(_: Python<'_>) -> Self {
        // SAFETY: the GIL is held; returns the state before.
        let enabled = unsafe { pyo3::ffi::PyGC_Disable() } != 0;
        PAUSED.fetch_or(enabled, Ordering::Relaxed);
        Self(enabled)
    }

    /// Was it on?
    pub(crate) fn was_enabled(&self) -> bool {
        self.0
    }
}

impl Drop for CollectorPaused {
    fn drop(&mut self) {
        if self.0 {
            PAUSED.store(false, Ordering::Relaxed);
            // SAFETY: only made and dropped with the GIL held.
            unsafe { pyo3::ffi::PyGC_Enable() };
        }
    }
}
