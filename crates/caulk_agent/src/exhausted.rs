//! Did an error for want of memory end the program? Read where the interpreter keeps the last error that nobody caught.

use caulk_wire::Uncaught;
use pyo3::exceptions::{PyBaseException, PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::heap::{is_a, loaded, member, type_name};

/// What torch's allocators say where they get no memory from the system (`c10/core/impl/alloc_cpu.cpp`).
const REFUSED: &str = "can't allocate memory";

/// What torch calls the error where a GPU has no more memory.
const ON_GPU: &str = "OutOfMemoryError";

/// The last error that nobody caught: the names of its types, and its text if memory ran out.
pub(crate) fn uncaught(py: Python<'_>) -> Option<Uncaught> {
    let error = last(py)?;
    let types: Vec<String> = error
        .get_type()
        .mro()
        .iter()
        .filter_map(|kind| Some(type_name(&kind.cast_into::<PyType>().ok()?)))
        .collect();
    let wants_memory = for_want_of_memory(py) || types.iter().any(|name| name == ON_GPU);
    let text = text(&error).filter(|_| wants_memory).unwrap_or_default();
    Some(Uncaught { types, text })
}

/// Is the last error that nobody caught one for want of memory? No code of the program's is called.
pub(crate) fn for_want_of_memory(py: Python<'_>) -> bool {
    let Some(error) = last(py) else { return false };
    is_a(&error, py.get_type::<PyMemoryError>().as_any()) || says_so(&error)
}

fn last(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    let last = loaded(py, "sys").and_then(|sys| member(&sys, "last_value"));
    last.filter(|error| !error.is_none())
}

/// Of an error of torch's, which are exactly `RuntimeError`: its text.
fn says_so(error: &Bound<'_, PyAny>) -> bool {
    let is_plain = error.get_type().is(error.py().get_type::<PyRuntimeError>());
    is_plain && text(error).is_some_and(|text| text.contains(REFUSED))
}

/// The first of its arguments, if that is a text.
fn text(error: &Bound<'_, PyAny>) -> Option<String> {
    // The descriptor of `BaseException` itself: a class of the program's may have its own `args`.
    let arguments = error.py().get_type::<PyBaseException>().getattr("args").ok()?;
    let arguments = arguments.call_method1("__get__", (error,)).ok()?.cast_into::<PyTuple>().ok()?;
    let first = arguments.get_item(0).ok()?.cast_into::<PyString>().ok()?;
    Some(first.to_string_lossy().into_owned())
}
