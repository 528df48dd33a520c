//! The sampler's clock, for programs in which nothing else calls the agent: no step, no batch, no collection.
//!
//! The sampler strikes from within an allocation, where nothing may be called. So word is left with the interpreter, whose
//! main thread then calls [`on_strike`] between two instructions, as it calls handlers of signals.
//!
//! No word is left while one is followed: CPython 3.11 begins a function over and over again that is traced while word was
//! left and cannot be followed (Python/ceval.c, `RESUME` under `DO_TRACING`). For what others leave word of, no function of
//! Python's is called any more once a trace is armed.

use std::ffi::{c_int, c_void};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::exclusive::Exclusive;
use crate::handlers::own_failure;
use crate::heap::{loaded, member};
use crate::later::{self, in_main_interpreter, raise_later, raised_in};
use crate::session;
use crate::symbols::find;

type Strike = extern "C" fn();
type SetClock = extern "C" fn(Option<Strike>);

/// Tools of `sys.monitoring` that are not caulk's: debugger, coverage, profiler, optimizer.
const TOOLS: [u8; 4] = [0, 1, 2, 5];

/// What is called.
static CALL: Exclusive<Py<PyAny>> = Exclusive::new();
/// Strikes since word was left that nobody has followed, or [`FOLLOWED`].
static STRIKES: AtomicU32 = AtomicU32::new(0);
/// Word is being followed.
const FOLLOWED: u32 = u32::MAX;
/// Strikes after which word is left again: that of before may have been left with an interpreter that is no more.
const PATIENCE: u32 = 8;

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

/// In the child of a fork: another thread of the parent may have been using it, and what was left there is not for here.
pub(crate) fn after_fork() {
    CALL.release();
    later::after_fork();
    STRIKES.store(0, Ordering::Relaxed);
}

extern "C" fn strike() {
    let next = |strikes: u32| (strikes != FOLLOWED).then(|| strikes % PATIENCE + 1);
    let before = STRIKES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    if before.map_or(true, |strikes| strikes % PATIENCE != 0) {
        return;
    }
    let process = process::id() as usize as *mut c_void;
    // SAFETY: allocates nothing, and the lock that it takes for a moment is held by nobody who allocates.
    let left = unsafe { ffi::Py_AddPendingCall(Some(on_strike), process) };
    if left != 0 {
        // Too many wait already.
        STRIKES.store(0, Ordering::Relaxed);
    }
}

extern "C" fn on_strike(process: *mut c_void) -> c_int {
    // A forked child inherits what its parent was left with.
    if process as usize != process::id() as usize {
        return 0;
    }
    STRIKES.store(FOLLOWED, Ordering::Relaxed);
    let result = in_main_interpreter(|py| call(py).or_else(|error| own_failure(py, error).map(drop)));
    STRIKES.store(0, Ordering::Relaxed);
    raised_in(result)
}

/// A callback of the collector, from which the program sees what it must see: the collector itself would print it and go
/// on, and handlers of signals that came during a collection run where the callback begins.
#[pyclass(frozen, module = "caulk._agent")]
struct Collected {
    call: Py<PyAny>,
}

#[pymethods]
impl Collected {
    #[new]
    fn new(call: Py<PyAny>) -> Self {
        Self { call }
    }

    fn __call__(&self, py: Python<'_>, phase: &str, info: &Bound<'_, PyDict>) {
        if phase == "stop"
            && let Err(error) = self.call.call1(py, (info,))
        {
            raise_later(py, error);
        }
    }
}

fn call(py: Python<'_>) -> PyResult<()> {
    match CALL.with(|call| call.clone_ref(py)) {
        Some(call) if !is_watched(py) => {
            session::look_if_asked(py)?;
            call.call0(py).map(drop)
        }
        _ => Ok(()),
    }
}

/// Would a debugger or profiler of the program's see the call?
fn is_watched(py: Python<'_>) -> bool {
    let Some(sys) = loaded(py, "sys") else { return true };
    let is_some = |value: PyResult<Bound<'_, PyAny>>| value.is_ok_and(|value| !value.is_none());
    let is_set = |name: &str| member(&sys, name).is_some_and(|get| is_some(get.call0()));
    // New in 3.12.
    let monitoring = member(&sys, "monitoring").and_then(|monitoring| member(&monitoring, "get_tool"));
    let is_used = |tool: u8| monitoring.as_ref().is_some_and(|get| is_some(get.call1((tool,))));
    is_set("gettrace") || is_set("getprofile") || TOOLS.into_iter().any(is_used)
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Collected>()?;
    later::register(module)?;
    module.add_function(wrap_pyfunction!(set_clock, module)?)
}
