//! Modules that the program has loaded, and names in them.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A module that the program has loaded; never imports.
pub(crate) fn loaded<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    // SAFETY: `PyImport_GetModuleDict` returns a borrowed reference to `sys.modules` or null.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) }?;
    let modules = modules.cast_into::<PyDict>().ok()?;
    modules.get_item(name).ok()?.filter(PyAnyMethods::is_instance_of::<PyModule>)
}

/// Number of modules that the program has loaded.
pub(crate) fn modules(py: Python<'_>) -> usize {
    // SAFETY: as above.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) };
    modules.and_then(|modules| Some(modules.cast::<PyDict>().ok()?.len())).unwrap_or(0)
}

/// A name in a module's namespace; never runs a module's `__getattr__`.
pub(crate) fn member<'py>(module: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    module.cast::<PyModule>().ok()?.dict().get_item(name).ok()?
}
