//! The session of this process, and what is done on it: no panic in that reaches Python.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use super::Session;
use crate::exclusive::Exclusive;
use crate::trace;

/// The session of this process.
pub(super) static SESSION: Exclusive<Session> = Exclusive::new();

/// Runs `action` on the session. A panic in it ends the session, not the program: nothing of it reaches Python.
pub(super) fn guarded<R>(action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(|| SESSION.with(action)));
    result.unwrap_or_else(|_| {
        SESSION.clear();
        Python::attach(disarm);
        None
    })
}

/// Takes off whatever is armed.
pub(super) fn disarm(py: Python<'_>) {
    drop(trace::disarm(py));
    drop(trace::disarm_peak(py));
}
