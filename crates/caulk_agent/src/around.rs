//! Hooks without a frame of their own: what the program raises around one shows the same traceback as without caulk.

use pyo3::exceptions::PyStopIteration;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::handlers::{after, own_failure};
use crate::passes::Pass;

/// `types.MethodType`.
static METHOD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A hook around a function of a library's: calls `begin` before it and `end` after it.
///
/// `begin(args, kwargs)` gives a ticket, or `None` where the call is of no interest. `end(ticket, args, result, failure)` is
/// called after any other, with the type of what the function has raised, or `None`. What either raises goes to
/// `failed(error)`, but for what the program must see. Stands for a method as well. With `is_pass` the function is a
/// backward pass.
#[pyclass(frozen, dict, module = "caulk._agent")]
struct Around {
    original: Py<PyAny>,
    begin: Py<PyAny>,
    end: Py<PyAny>,
    failed: Py<PyAny>,
    is_pass: bool,
}

#[pymethods]
impl Around {
    #[new]
    fn new(original: Py<PyAny>, begin: Py<PyAny>, end: Py<PyAny>, failed: Py<PyAny>, is_pass: bool) -> Self {
        Self { original, begin, end, failed, is_pass }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let pass = self.is_pass.then(Pass::begin);
        let ticket = heard(py, &self.failed, self.begin.call1(py, (args, kwargs)))?;
        let result = self.original.call(py, args, kwargs);
        drop(pass);
        let Some(ticket) = ticket else { return result };
        // Handlers of signals that came meanwhile run now, as they do behind a call, and not amid the hook's end.
        let result = result.and_then(|value| py.check_signals().map(|()| value));
        let (value, failure) = match &result {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error.get_type(py))),
        };
        match (heard(py, &self.failed, self.end.call1(py, (ticket, args, value, failure))), result) {
            (Ok(_), result) => result,
            // The end of an iterator is nobody's failure.
            (Err(raised), Err(error)) if !error.is_instance_of::<PyStopIteration>(py) => {
                Err(after(py, raised, error))
            }
            (Err(raised), _) => Err(raised),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.original, &self.begin, &self.end, &self.failed]
            .into_iter()
            .try_for_each(|part| visit.call(part))
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

/// A function that a library is to call: what it raises goes to `failed(error)`, but for what the program must see.
#[pyclass(frozen, module = "caulk._agent")]
struct Hook {
    call: Py<PyAny>,
    failed: Py<PyAny>,
}

#[pymethods]
impl Hook {
    #[new]
    fn new(call: Py<PyAny>, failed: Py<PyAny>) -> Self {
        Self { call, failed }
    }

    #[pyo3(signature = (*args))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        heard(py, &self.failed, self.call.call1(py, args)).map(drop)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.call)?;
        visit.call(&self.failed)
    }
}

/// What a hook gave, if anything. What the program must see may come at any time, also while `failed` is at work.
fn heard(py: Python<'_>, failed: &Py<PyAny>, answer: PyResult<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    match answer {
        Ok(value) => Ok((!value.is_none(py)).then_some(value)),
        Err(error) => {
            if let Err(error) = failed.call1(py, (own_failure(py, error)?.into_value(py),)) {
                own_failure(py, error)?;
            }
            Ok(None)
        }
    }
}

/// Adds them to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Around>()?;
    module.add_class::<Hook>()
}
