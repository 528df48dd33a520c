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

use pyo3::exceptions::{PyBaseException, PyRecursionError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::exclusive::Exclusive;
use crate::frames;
use crate::handlers::{after, own_failure};
use crate::heap::{loaded, member};
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
    LATER.release();
    LATER.with(Option::take);
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

/// Does this, where word has reached the main interpreter. In another one, which a thread may have entered, whoever asks for
/// the lock of the interpreter that the thread began with (`PyGILState_Ensure`) waits for itself. No Python code runs any
/// more where the interpreter ends.
fn in_main_interpreter(action: impl FnOnce(Python<'_>) -> PyResult<()>) -> PyResult<()> {
    // SAFETY: who is called back holds the lock of the interpreter that is running, by this state of its thread.
    let running = unsafe { ffi::PyThreadState_Get() };
    // SAFETY: reads a variable of the thread's.
    let known = unsafe { ffi::PyGILState_GetThisThreadState() };
    if running == known && is_main_interpreter() {
        Python::try_attach(action).unwrap_or(Ok(()))
    } else {
        Ok(())
    }
}

/// Does the interpreter run that the process began with? What other ones of it run is not looked into: objects of several
/// must not meet.
#[pyfunction]
fn is_main_interpreter() -> bool {
    // SAFETY: the interpreter's lock is held.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// What an interpreter takes from what it has called back: is an error set?
fn raised_in(result: PyResult<()>) -> c_int {
    let Err(error) = result else { return 0 };
    Python::try_attach(|py| error.restore(py)).map_or(0, |()| -1)
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

/// Is it the thread that the process began with, or that forked it? Handlers of signals run there.
fn is_main_thread() -> bool {
    // SAFETY: always succeeds.
    unsafe { libc::gettid() == libc::getpid() }
}

/// What is raised later.
static LATER: Exclusive<Option<PyErr>> = Exclusive::holding(None);

/// Has the thread raise what the program must see, between two instructions of its own; false for all other.
fn raise_later(py: Python<'_>, error: PyErr) -> bool {
    if !is_main_thread() {
        // Another thread has sent it (`PyThreadState_SetAsyncExc`), by its class: once more. A full stack is caulk's own.
        if error.is_instance_of::<PyRecursionError>(py) {
            return false;
        }
        let class = error.get_type(py);
        // SAFETY: the identifier of this thread, and a class of exceptions.
        return unsafe { ffi::PyThreadState_SetAsyncExc(libc::pthread_self() as _, class.as_ptr()) } == 1;
    }
    let Err(error) = own_failure(py, error) else { return false };
    LATER.with(|later| {
        *later = Some(match later.take() {
            Some(earlier) => after(py, error, earlier),
            None => error,
        });
    });
    if !leave_for_later()
        && let Some(error) = LATER.with(Option::take).flatten()
    {
        error.write_unraisable(py, None);
    }
    true
}

/// Puts off what a handler of a signal has raised amid something that runs no other code: on the main thread alone.
pub(crate) fn put_off(py: Python<'_>, error: PyErr) {
    if is_main_thread() {
        raise_later(py, error);
    }
}

fn leave_for_later() -> bool {
    let process = process::id() as usize as *mut c_void;
    // SAFETY: as in `strike`.
    unsafe { ffi::Py_AddPendingCall(Some(on_later), process) == 0 }
}

extern "C" fn on_later(process: *mut c_void) -> c_int {
    if process as usize != process::id() as usize {
        return 0;
    }
    raised_in(in_main_interpreter(|py| {
        // Not before caulk's own code has ended, and an import with it: of one that fails no module is left.
        if is_on_the_way(py) && leave_for_later() {
            return Ok(());
        }
        LATER.with(Option::take).flatten().map_or(Ok(()), Err)
    }))
}

/// Does code of caulk's run, or of the import of a module?
fn is_on_the_way(py: Python<'_>) -> bool {
    // SAFETY: a borrowed reference or null.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    frame.is_some_and(|frame| {
        let file = frames::file_of(&frames::code_of(&frame));
        frames::is_caulk_file(&file) || file.starts_with("<frozen importlib")
    })
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

/// Has the thread raise what the program must see once it is back in the program's code; false for all other.
#[pyfunction]
#[pyo3(name = "raise_later")]
fn py_raise_later(error: &Bound<'_, PyBaseException>) -> bool {
    raise_later(error.py(), PyErr::from_value(error.clone().into_any()))
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Collected>()?;
    module.add_function(wrap_pyfunction!(is_main_interpreter, module)?)?;
    module.add_function(wrap_pyfunction!(py_raise_later, module)?)?;
    module.add_function(wrap_pyfunction!(set_clock, module)?)
}
