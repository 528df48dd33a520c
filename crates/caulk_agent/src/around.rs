//! A hook around a function of a library's, without a frame of its own: what the program raises in there shows the same
//! traceback as without caulk.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// `types.MethodType`.
static METHOD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Calls `begin` before a function and `end` after it.
///
/// `begin(args, kwargs)` gives a ticket, or `None` where the call is of no interest. `end(ticket, args, result, failure)` is
/// called after any other, with the type of what the function has raised, or `None`. An `Exception` out of either goes to
/// `failed(error)`, and to the program only where that says so. Stands for a method as well.
#[pyclass(frozen, dict, module = "caulk._agent")]
struct Around {
    original: Py<PyAny>,
    begin: Py<PyAny>,
    end: Py<PyAny>,
    failed: Py<PyAny>,
}

#[pymethods]
impl Around {
    #[new]
    fn new(original: Py<PyAny>, begin: Py<PyAny>, end: Py<PyAny>, failed: Py<PyAny>) -> Self {
        Self { original, begin, end, failed }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let ticket = self.heard(py, self.begin.call1(py, (args, kwargs)))?;
        let result = interrupted(py, self.original.call(py, args, kwargs));
        if let Some(ticket) = ticket {
            let (value, failure) = match &result {
                Ok(value) => (Some(value), None),
                Err(error) => (None, Some(error.get_type(py))),
            };
            self.heard(py, self.end.call1(py, (ticket, args, value, failure)))?;
        }
        result
    }

    /// As functions do: bound to the object whose attribute it is looked up as.
    fn __get__<'py>(
        slf: Bound<'py, Self>,
        object: Option<Bound<'py, PyAny>>,
        _owner: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(object) = object.filter(|object| !object.is_none()) else { return Ok(slf.into_any()) };
        let method = METHOD.get_or_try_init(slf.py(), || {
            slf.py().import("types")?.getattr("MethodType").map(Bound::unbind)
        })?;
        method.bind(slf.py()).call1((slf, object))
    }
}

/// Lets handlers of signals that came meanwhile run now, as the interpreter does behind a call: what one raises takes the
/// place of the result, and does not come amid the hook's end.
fn interrupted(py: Python<'_>, result: PyResult<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let Err(raised) = py.check_signals() else { return result };
    if let Err(error) = result {
        // As `raise` has it where another exception is handled.
        raised.value(py).setattr("__context__", error.into_value(py))?;
    }
    Err(raised)
}

impl Around {
    /// What a hook gave, if anything. What ends the program (Ctrl-C) may come at any time, also while a hook runs.
    fn heard(&self, py: Python<'_>, answer: PyResult<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        match answer {
            Ok(value) => Ok((!value.is_none(py)).then_some(value)),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let error = error.into_value(py);
                let is_the_programs = self.failed.call1(py, (&error,))?.bind(py).is_truthy()?;
                // As it has its traceback now.
                if is_the_programs {
                    Err(PyErr::from_value(error.into_bound(py).into_any()))
                } else {
                    Ok(None)
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Adds it to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Around>()
}
