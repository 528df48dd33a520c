//! Did an error for want of memory end the program? Read where the interpreter keeps the last error that nobody caught.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::heap::{is_a, loaded, member};

/// What torch's allocators say where they get no memory from the system (`c10/core/impl/alloc_cpu.cpp`).
const REFUSED: &str = "can't allocate memory";

/// Is the last error that nobody caught one for want of memory? No code of the program's is called.
pub(crate) fn for_want_of_memory(py: Python<'_>) -> bool {
    let last = loaded(py, "sys").and_then(|sys| member(&sys, "last_value"));
    let Some(error) = last.filter(|error| !error.is_none()) else { return false };
    is_a(&error, py.get_type::<PyMemoryError>().as_any()) || says_so(&error)
}

/// Of an error of torch's, which are exactly `RuntimeError`: its text.
fn says_so(error: &Bound<'_, PyAny>) -> bool {
    let is_plain = error.get_type().is(error.py().get_type::<PyRuntimeError>());
    let arguments = is_plain.then(|| error.getattr("args").ok()?.cast_into::<PyTuple>().ok()).flatten();
    let first = arguments.and_then(|arguments| arguments.get_item(0).ok()?.cast_into::<PyString>().ok());
    first.is_some_and(|text| text.to_string_lossy().contains(REFUSED))
}
