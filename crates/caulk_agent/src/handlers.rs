//! What handlers of signals raise. One may run whenever Python code does, so also amid a hook: its exception is the
//! program's, which waits for it (a time limit by SIGALRM, say), and no failure of the hook's.
//!
//! Told by the frame in which it was raised: a handler is given the frame that it interrupts, which is the one below its
//! own. One that has that argument no more, since it has walked up the stack with it say, has to be installed still. One
//! that has dropped it and is installed no more, one without a frame (C, Cython) and an exception that another thread sends
//! (`PyThreadState_SetAsyncExc`) cannot be told from failures.

use pyo3::exceptions::{PyBaseException, PyException};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCode, PyFunction, PyInt, PyString, PyTuple};

use crate::frames;
use crate::heap::{loaded, member, namespace_of, type_name};

/// Numbers of signals on Linux (signal(7)).
const SIGNALS: std::ops::RangeInclusive<u32> = 1..=64;
/// Wrappers around a handler that are looked behind.
const WRAPPERS: usize = 8;
/// Flag of code that takes any number of arguments (`inspect.CO_VARARGS`).
const VARIADIC: usize = 4;
/// Contexts of an exception that are gone through.
const MOST_CONTEXTS: usize = 64;

/// An error that came amid work of caulk's, where that has failed.
///
/// # Errors
/// What the program must see, as it must see it: what is no `Exception`, such as Ctrl-C, and what a handler has raised.
pub(crate) fn own_failure(py: Python<'_>, error: PyErr) -> PyResult<PyErr> {
    // With its traceback, which a version before 3.12 keeps beside it.
    let error = error.into_value(py).into_bound(py);
    let own = !raised_by_one(&error, Calls::OwnCode) && error.is_instance_of::<PyException>();
    if !own {
        // Nothing of caulk's is above what it has called.
        let first = traceback(&error).find(|at| !is_caulks(&frame_of(at)));
        set_traceback(&error, first.as_ref());
    }
    let error = PyErr::from_value(error.into_any());
    if own { Ok(error) } else { Err(error) }
}

/// `raised` while `earlier` was on its way: that and all before it come before what was raised, as where `raise` is used in
/// an `except` clause, and none comes twice (CPython, `_PyErr_SetObject`).
pub(crate) fn after(py: Python<'_>, raised: PyErr, earlier: PyErr) -> PyErr {
    let raised = raised.into_value(py).into_bound(py).into_any();
    let earlier = earlier.into_value(py).into_bound(py).into_any();
    let mut before: Vec<_> = contexts(&earlier).collect();
    if let Some(at) = before.iter().position(|error| error.is(&raised)) {
        if at > 0 {
            set_context(&before[at - 1], None);
        }
        before.truncate(at);
    }
    if !before.is_empty() {
        let own = contexts(&raised).take_while(|error| !before.iter().any(|known| known.is(error)));
        if let Some(last) = own.last() {
            set_context(&last, Some(earlier));
        }
    }
    PyErr::from_value(raised)
}

/// An exception and those that were being handled when it was raised, one after the other.
fn contexts<'py>(error: &Bound<'py, PyAny>) -> impl Iterator<Item = Bound<'py, PyAny>> + use<'py> {
    let next = |error: &Bound<'py, PyAny>| {
        // SAFETY: an exception; a new reference or null.
        unsafe { Bound::from_owned_ptr_or_opt(error.py(), ffi::PyException_GetContext(error.as_ptr())) }
    };
    std::iter::successors(Some(error.clone()), next).take(MOST_CONTEXTS)
}

fn set_context(error: &Bound<'_, PyAny>, context: Option<Bound<'_, PyAny>>) {
    let context = context.map_or(std::ptr::null_mut(), Bound::into_ptr);
    // SAFETY: an exception and another one or null, a reference to which it takes over.
    unsafe { ffi::PyException_SetContext(error.as_ptr(), context) };
}

/// What runs where an error comes from.
#[derive(Clone, Copy)]
enum Calls {
    /// Caulk's code, and libraries' that it calls.
    OwnCode,
    /// The program's as well.
    Programs,
}

/// Has a handler of a signal raised it? Then its traceback begins there from now on.
fn raised_by_one(error: &Bound<'_, PyBaseException>, calls: Calls) -> bool {
    let found = traceback(error).find(|at| is_of_handler(&frame_of(at), calls).unwrap_or(false));
    if found.is_some() {
        set_traceback(error, found.as_ref());
    }
    found.is_some()
}

/// The entries of its traceback, the outermost one first.
fn traceback<'py>(error: &Bound<'py, PyBaseException>) -> impl Iterator<Item = Bound<'py, PyAny>> {
    // SAFETY: an exception; a new reference or null.
    let first =
        unsafe { Bound::from_owned_ptr_or_opt(error.py(), ffi::PyException_GetTraceback(error.as_ptr())) };
    std::iter::successors(first, |at| at.getattr("tb_next").ok().filter(|next| !next.is_none()))
}

fn set_traceback(error: &Bound<'_, PyBaseException>, first: Option<&Bound<'_, PyAny>>) {
    let first = first.map_or(error.py().None().into_bound(error.py()), Clone::clone);
    // SAFETY: an exception, and a traceback or `None`, which it takes a reference to.
    unsafe { ffi::PyException_SetTraceback(error.as_ptr(), first.as_ptr()) };
}

/// The frame of an entry of a traceback; `None` where it has none.
fn frame_of<'py>(at: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    at.getattr("tb_frame").unwrap_or_else(|_| at.py().None().into_bound(at.py()))
}

fn is_caulks(frame: &Bound<'_, PyAny>) -> bool {
    frame.getattr("f_code").is_ok_and(|code| frames::is_caulk_file(&frames::file_of(&code)))
}

fn is_of_handler(frame: &Bound<'_, PyAny>, calls: Calls) -> PyResult<bool> {
    let (below, code) = (frame.getattr("f_back")?, frame.getattr("f_code")?);
    if below.is_none() {
        return Ok(false);
    }
    let mut given = Vec::new();
    for value in arguments(&code)?.iter().filter_map(|name| frames::local(frame, name)) {
        // Those of any number of them, too.
        match value.cast_exact::<PyTuple>() {
            Ok(all) => given.extend(all),
            Err(_) => given.push(value),
        }
    }
    let has_frame = given.iter().any(|value| value.is(&below));
    let number = |value: &Bound<'_, PyAny>| value.cast::<PyInt>().ok()?.extract().ok();
    Ok(match calls {
        Calls::OwnCode => has_frame || SIGNALS.into_iter().any(|signal| is_installed(&code, signal)),
        // What the program gives its own frames to may fail, and may be a handler as well: of the signal it is called with.
        Calls::Programs => given.iter().filter_map(number).any(|signal| is_installed(&code, signal)),
    })
}

/// Names of the arguments of a function, but for those by keyword that it does not name.
fn arguments<'py>(code: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let number = |name: &str| -> PyResult<usize> { code.getattr(name)?.extract() };
    let variadic = usize::from(number("co_flags")? & VARIADIC != 0);
    let count = number("co_argcount")? + number("co_kwonlyargcount")? + variadic;
    let names = code.getattr("co_varnames")?.cast_into::<PyTuple>()?;
    Ok(names.iter().take(count).filter_map(|name| name.cast_into().ok()).collect())
}

/// Is the function of this code the handler of this signal?
fn is_installed(code: &Bound<'_, PyAny>, signal: u32) -> bool {
    let get = loaded(code.py(), "_signal").and_then(|module| member(&module, "getsignal"));
    let handler = get.filter(|_| SIGNALS.contains(&signal)).and_then(|get| get.call1((signal,)).ok());
    handler.and_then(code_of).is_some_and(|handlers| handlers.is(code))
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
        let is_partial = partial.as_ref().is_some_and(|partial| callable.get_type().is(partial));
        callable = match type_name(&callable.get_type()).as_str() {
            "method" => callable.getattr("__func__").ok()?,
            "_lru_cache_wrapper" => namespace_of(&callable)?.get_item("__wrapped__").ok()??,
            _ if is_partial => callable.getattr("func").ok()?,
            _ => callable.get_type().getattr("__call__").ok()?,
        };
    }
    None
}

/// Has a handler of a signal raised it? Then its traceback begins there from now on. `programs`: was code of the program's
/// called?
#[pyfunction]
#[pyo3(name = "raised_by_handler", signature = (error, programs=false))]
fn py_raised_by_handler(error: &Bound<'_, PyBaseException>, programs: bool) -> bool {
    raised_by_one(error, if programs { Calls::Programs } else { Calls::OwnCode })
}

/// Adds what Python calls.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(py_raised_by_handler, module)?)
}
