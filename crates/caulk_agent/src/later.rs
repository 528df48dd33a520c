//! What the program must see, raised between two instructions of its own: handlers of signals may run amid caulk's code.

use std::ffi::{c_int, c_void};
use std::process;

use pyo3::exceptions::{PyBaseException, PyRecursionError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::exclusive::Exclusive;
use crate::frames;
use crate::handlers::{after, own_failure};

/// Does this, where word has reached the main interpreter. In another one, which a thread may have entered, whoever asks for
/// the lock of the interpreter that the thread began with (`PyGILState_Ensure`) waits for itself. No Python code runs any
/// more where the interpreter ends.
pub(crate) fn in_main_interpreter(action: impl FnOnce(Python<'_>) -> PyResult<()>) -> PyResult<()> {
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
pub(crate) fn raised_in(result: PyResult<()>) -> c_int {
    let Err(error) = result else { return 0 };
    Python::try_attach(|py| error.restore(py)).map_or(0, |()| -1)
}

/// Is it the thread that the process began with, or that forked it? Handlers of signals run there.
fn is_main_thread() -> bool {
    // glibc has a function for it since 2.30, and the wheel is for 2.28 and later.
    // SAFETY: always succeeds.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: always succeeds.
    let process = unsafe { libc::getpid() };
    thread == libc::c_long::from(process)
}

/// What is raised later.
static LATER: Exclusive<Option<PyErr>> = Exclusive::holding(None);

/// Has the thread raise what the program must see, between two instructions of its own; false for all other.
pub(crate) fn raise_later(py: Python<'_>, error: PyErr) -> bool {
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
fn put_off(py: Python<'_>, error: PyErr) {
    if is_main_thread() {
        raise_later(py, error);
    }
}

fn leave_for_later() -> bool {
    let process = process::id() as usize as *mut c_void;
    // SAFETY: as in `clock::strike`.
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

/// Has the thread raise what the program must see once it is back in the program's code; false for all other.
#[pyfunction]
#[pyo3(name = "raise_later")]
fn py_raise_later(error: &Bound<'_, PyBaseException>) -> bool {
    raise_later(error.py(), PyErr::from_value(error.clone().into_any()))
}

/// In the child of a fork: what was left there is not for here.
pub(crate) fn after_fork() {
    LATER.release();
    LATER.with(Option::take);
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    frames::set_error_action(put_off);
    module.add_function(wrap_pyfunction!(is_main_interpreter, module)?)?;
    module.add_function(wrap_pyfunction!(py_raise_later, module)?)
}
