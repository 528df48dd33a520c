//! What handlers of signals raise. One may run whenever Python code does, so also amid a hook: its exception is the
//! program's, which waits for it (a time limit by SIGALRM, say), and no failure of the hook's.
//!
//! Told by the frame in which it was raised: a handler is given the frame that it interrupts, which is the one below its
//! own. One that has deleted that argument has to be installed still. One that has rebound it, one without a frame (C,
//! Cython) and an exception that another thread sends (`PyThreadState_SetAsyncExc`) cannot be told from failures.

use pyo3::exceptions::{PyBaseException, PyException};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCode, PyFunction, PyString, PyTuple};

use crate::frames;
use crate::heap::{loaded, member};

/// Numbers of signals on Linux (signal(7)).
const SIGNALS: std::ops::RangeInclusive<u32> = 1..=64;
/// Wrappers around a handler that are looked behind.
const WRAPPERS: usize = 8;
/// Flag of code that takes any number of arguments (`inspect.CO_VARARGS`).
const VARIADIC: usize = 4;

/// An error as the program must see it: what is no `Exception`, such as Ctrl-C, and what a handler has raised.
pub(crate) fn of_the_program(py: Python<'_>, error: PyErr) -> Option<PyErr> {
    // With its traceback, which a version before 3.12 keeps beside it.
    let error = error.into_value(py).into_bound(py);
    let of_handler = raised_by_one(&error);
    let is_the_programs = of_handler || !error.is_instance_of::<PyException>();
    is_the_programs.then(|| PyErr::from_value(error.into_any()))
}

/// Has a handler of a signal raised it? Then its traceback begins there from now on.
fn raised_by_one(error: &Bound<'_, PyBaseException>) -> bool {
    let py = error.py();
    // SAFETY: an exception; a new reference or null.
    let first = unsafe { ffi::PyException_GetTraceback(error.as_ptr()) };
    // SAFETY: as above.
    let mut trace = unsafe { Bound::from_owned_ptr_or_opt(py, first) };
    while let Some(at) = trace {
        if at.getattr("tb_frame").is_ok_and(|frame| is_of_handler(&frame)) {
            // SAFETY: an exception and a traceback, which it takes a reference to.
            unsafe { ffi::PyException_SetTraceback(error.as_ptr(), at.as_ptr()) };
            return true;
        }
        trace = at.getattr("tb_next").ok().filter(|next| !next.is_none());
    }
    false
}

fn is_of_handler(frame: &Bound<'_, PyAny>) -> bool {
    let Some(below) = frame.getattr("f_back").ok().filter(|below| !below.is_none()) else { return false };
    let Ok(code) = frame.getattr("f_code") else { return false };
    let mut dropped = false;
    for name in arguments(&code).unwrap_or_default() {
        match frames::local(frame, &name) {
            Some(value) if value.is(&below) => return true,
            Some(value) => {
                if value.cast_exact::<PyTuple>().is_ok_and(|all| all.iter().any(|item| item.is(&below))) {
                    return true;
                }
            }
            None => dropped = true,
        }
    }
    dropped && is_installed(&code)
}

/// Names of the arguments of a function, but for those by keyword that it does not name.
fn arguments<'py>(code: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let number = |name: &str| -> PyResult<usize> { code.getattr(name)?.extract() };
    let variadic = usize::from(number("co_flags")? & VARIADIC != 0);
    let count = number("co_argcount")? + number("co_kwonlyargcount")? + variadic;
    let names = code.getattr("co_varnames")?.cast_into::<PyTuple>()?;
    Ok(names.iter().take(count).filter_map(|name| name.cast_into().ok()).collect())
}

/// Is the function of this code a handler of any signal?
fn is_installed(code: &Bound<'_, PyAny>) -> bool {
    let Some(get) = loaded(code.py(), "_signal").and_then(|module| member(&module, "getsignal")) else {
        return false;
    };
    SIGNALS
        .into_iter()
        .any(|number| get.call1((number,)).ok().and_then(code_of).is_some_and(|handlers| handlers.is(code)))
}

/// The code that a callable runs in the end.
fn code_of(callable: Bound<'_, PyAny>) -> Option<Bound<'_, PyCode>> {
    let py = callable.py();
    let partial = loaded(py, "functools").and_then(|module| member(&module, "partial"));
    let mut callable = callable;
    for _ in 0..WRAPPERS {
        if callable.is_instance_of::<PyFunction>() {
            return callable.getattr("__code__").ok()?.cast_into().ok();
        }
        let is_method = callable.get_type().name().is_ok_and(|name| name == "method");
        let is_partial = partial.as_ref().is_some_and(|partial| callable.get_type().is(partial));
        callable = match (is_method, is_partial) {
            (true, _) => callable.getattr("__func__").ok()?,
            (_, true) => callable.getattr("func").ok()?,
            _ => callable.get_type().getattr("__call__").ok()?,
        };
    }
    None
}

/// Has a handler of a signal raised it? Then its traceback begins there from now on.
#[pyfunction]
#[pyo3(name = "raised_by_handler")]
fn py_raised_by_handler(error: &Bound<'_, PyBaseException>) -> bool {
    raised_by_one(error)
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(py_raised_by_handler, module)?)
}
