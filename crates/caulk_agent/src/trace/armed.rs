//! The one engine that is armed in this process, and the way of events to it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::engine::Engine;
use super::tool::Tool;
use crate::exclusive::Exclusive;
use crate::heap::Address;

/// What is armed.
pub(super) static STATE: Exclusive<State> = Exclusive::holding(State { engine: None, mechanism: None });
/// Nothing is done any more at events: an internal error, or a forked child.
pub(super) static DEAF: AtomicBool = AtomicBool::new(false);

/// What is armed, and the way in which its events come.
pub(super) struct State {
    pub(super) engine: Option<Engine>,
    pub(super) mechanism: Option<Mechanism>,
}

/// How events come.
pub(super) enum Mechanism {
    Monitoring(Tool),
    Tracer,
}

/// The calling thread's identifier, the one that Python knows it by.
pub(super) fn this_thread() -> Address {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as Address }
}

/// Handles an event of the calling thread; called by the interpreter, so nothing may unwind out of it.
pub(super) fn on_event(action: impl FnOnce(Python<'_>, &mut Engine, Address)) {
    if DEAF.load(Ordering::Relaxed) {
        return;
    }
    // The interpreter calls with the GIL held. PyO3 has to know it: it would put off what is dropped here, errors with the
    // objects they are about, until it is called the next time.
    let attached = |py: Python<'_>| {
        STATE.with(|state| {
            if let Some(engine) = state.engine.as_mut().filter(|engine| engine.stopped.is_none()) {
                action(py, engine, this_thread());
            }
        });
        // SAFETY: the GIL is held; nothing that failed above may reach the program.
        unsafe { ffi::PyErr_Clear() };
    };
    let handled = catch_unwind(AssertUnwindSafe(|| Python::try_attach(attached)));
    if handled.is_err() {
        DEAF.store(true, Ordering::Relaxed);
    }
}
