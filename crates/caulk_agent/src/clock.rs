//! The sampler's clock, for programs in which nothing else calls the agent: no step, no batch, no collection.
//!
//! The sampler strikes from within an allocation, where nothing may be called. So word is left with the interpreter, whose
//! main thread then calls [`on_strike`] between two instructions, as it calls handlers of signals.
//!
//! Never while that runs: CPython 3.11 begins a function over and over again that is traced while word was left and cannot
//! be followed (Python/ceval.c, `RESUME` under `DO_TRACING`). For what others leave word of, no function of Python's is
//! called any more once a trace is armed.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::exclusive::Exclusive;
use crate::heap::{loaded, member};
use crate::symbols::find;

type Strike = extern "C" fn();
type SetClock = extern "C" fn(Option<Strike>);

/// What is called.
static CALL: Exclusive<Py<PyAny>> = Exclusive::new();
/// Word was left, and what came of it is not over.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Has the sampler's clock call this, some times a second as long as the program allocates; `None` stops it. Without a
/// sampler there is no clock.
#[pyfunction]
#[pyo3(name = "clock")]
fn set_clock(call: Option<Py<PyAny>>) {
    let Some(found) = find(c"caulk_heap_clock") else { return };
    // SAFETY: the type of the sampler's function.
    let set = unsafe { std::mem::transmute::<*mut c_void, SetClock>(found) };
    if let Some(call) = call {
        CALL.put(call);
        set(Some(strike));
    } else {
        set(None);
        CALL.clear();
    }
}

/// In the child of a fork: another thread of the parent may have been using it.
pub(crate) fn after_fork() {
    CALL.release();
    LEFT.store(false, Ordering::Relaxed);
}

extern "C" fn strike() {
    if LEFT.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: allocates nothing, and the lock that it takes for a moment is never held while anything is allocated.
    let left = unsafe { ffi::Py_AddPendingCall(Some(on_strike), ptr::null_mut()) };
    if left != 0 {
        // Too many wait already.
        LEFT.store(false, Ordering::Relaxed);
    }
}

extern "C" fn on_strike(_: *mut c_void) -> c_int {
    // SAFETY: the interpreter's lock is held. Word left in a subinterpreter is its own affair, and none of the agent's.
    let is_main = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } == 0;
    let result = if is_main { Python::attach(call) } else { Ok(()) };
    LEFT.store(false, Ordering::Relaxed);
    match result {
        Ok(()) => 0,
        Err(error) => {
            Python::attach(|py| error.restore(py));
            -1
        }
    }
}

/// What the program itself must see comes back, such as Ctrl-C: everything else was caught.
fn call(py: Python<'_>) -> PyResult<()> {
    match CALL.with(|call| call.clone_ref(py)) {
        Some(call) if !is_watched(py) => call.call0(py).map(drop),
        _ => Ok(()),
    }
}

/// Would a debugger or profiler of the program's see the call?
fn is_watched(py: Python<'_>) -> bool {
    let Some(sys) = loaded(py, "sys") else { return true };
    let is_set = |name: &str| {
        member(&sys, name).and_then(|get| get.call0().ok()).is_some_and(|function| !function.is_none())
    };
    is_set("gettrace") || is_set("getprofile")
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_clock, module)?)
}
