//! The program's Python stack: where a thread is, which of its frames are the user's, what their locals are.
//!
//! Frames are read as they run. `frame.f_locals` of a function is never touched: up to 3.12 it caches a dict that keeps
//! the values alive, tensors included.

use std::collections::HashMap;

use pyo3::exceptions::PyLookupError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

mod locals;
mod stack;
mod user_files;

pub(crate) use locals::{for_each_local, local, set_error_action, usable};
pub(crate) use stack::{
    Place, caller_of, code_of, constants, current, file_of, function_of, line_of, place, stack_of,
};
pub(crate) use user_files::{is_caulk_file, is_installed_file, is_user_file};

use crate::heap::{loaded, member};

/// Does the frame run code that a person wrote for this program? Methods that `dataclass` and `namedtuple` generate have
/// the file name `<string>` and no source.
pub(crate) fn is_user_place(place: &Place) -> bool {
    let generated = place.file == "<string>"
        && place.function.rsplit('.').next().is_some_and(|name| name.starts_with("__"));
    !generated && place.line > 0 && is_user_file(&place.file)
}

/// Innermost frame of the user's code on the calling thread's stack.
pub(crate) fn user_frame(py: Python<'_>) -> Option<Place> {
    user_places(current(py)).next()
}

/// The user's frames on the calling thread's stack, innermost first.
pub(crate) fn user_stack(py: Python<'_>, longest: usize) -> Vec<Place> {
    user_places(current(py)).take(longest).collect()
}

/// The user's frames from `frame` outwards.
pub(crate) fn user_places(frame: Option<Bound<'_, PyAny>>) -> impl Iterator<Item = Place> {
    stack_of(frame).map(|frame| place(&frame)).filter(is_user_place)
}

/// Every thread's identifier and frames, innermost first.
pub(crate) fn all_frames(py: Python<'_>) -> Vec<(u64, Vec<Bound<'_, PyAny>>)> {
    // SAFETY: returns a borrowed reference or null.
    let list =
        unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(c"_current_frames".as_ptr())) };
    let Some(innermost) = list.and_then(|list| list.call0().ok()?.cast_into::<PyDict>().ok()) else {
        return Vec::new();
    };
    let threads = innermost.iter().filter_map(|(thread, frame)| Some((thread.extract().ok()?, frame)));
    threads.map(|(thread, frame)| (thread, stack_of(Some(frame)).collect())).collect()
}

/// What the locals of the user's functions refer to, in all threads.
pub(crate) fn user_locals(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
    let mut locals = Vec::new();
    for frame in all_frames(py).iter().flat_map(|(_, stack)| stack) {
        if is_user_file(&file_of(&code_of(frame))) {
            for_each_local(frame, &mut |_, value| locals.push(value.clone()));
        }
    }
    locals
}

/// Name of a thread, as `threading` has it; empty where it has none.
pub(crate) fn thread_name(py: Python<'_>, thread: u64) -> String {
    let find = || -> Option<String> {
        let active = member(&loaded(py, "threading")?, "_active")?.cast_into::<PyDict>().ok()?;
        let thread = active.get_item(thread).ok()??;
        // SAFETY: both are live objects; reads the instance's attribute without calling a subclass's `__getattr__`.
        let name = unsafe { ffi::PyObject_GenericGetAttr(thread.as_ptr(), intern!(py, "_name").as_ptr()) };
        // SAFETY: a new reference, or null with an exception, which the conversion takes.
        unsafe { Bound::from_owned_ptr_or_err(py, name) }.ok()?.extract().ok()
    };
    find().unwrap_or_default()
}

/// Folder of a loaded module's file.
fn folder_of(py: Python<'_>, module: &str) -> Option<String> {
    let file: String = member(&loaded(py, module)?, "__file__")?.extract().ok()?;
    file.rsplit_once('/').map(|(folder, _)| folder.to_owned())
}

/// Adds this module's functions to `caulk._agent`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // Until more is configured: the standard library and caulk itself are not the user's.
    user_files::configure(["os", "caulk"].into_iter().filter_map(|name| folder_of(py, name)).collect());
    if let Some(folder) = folder_of(py, "caulk") {
        user_files::configure_own(folder);
    }
    module.add_function(wrap_pyfunction!(py_configure_user_files, module)?)?;
    module.add_function(wrap_pyfunction!(py_is_user_file, module)?)?;
    module.add_function(wrap_pyfunction!(py_user_frame, module)?)?;
    module.add_function(wrap_pyfunction!(py_user_stack, module)?)?;
    module.add_function(wrap_pyfunction!(py_read_local, module)?)?;
    module.add_function(wrap_pyfunction!(py_read_locals, module)?)?;
    module.add_function(wrap_pyfunction!(py_frames_usable, module)?)
}

/// Sets the folders whose files are not the user's: the standard library, caulk itself.
#[pyfunction]
#[pyo3(name = "configure_user_files")]
fn py_configure_user_files(prefixes: Vec<String>) {
    user_files::configure(prefixes);
}

/// Is this file name one of the user's own?
#[pyfunction]
#[pyo3(name = "is_user_file")]
fn py_is_user_file(filename: &str) -> bool {
    is_user_file(filename)
}

/// `(file, line, function)` of the innermost frame of the user's code, or `None`.
#[pyfunction]
#[pyo3(name = "user_frame")]
fn py_user_frame(py: Python<'_>) -> Option<(String, u32, String)> {
    user_frame(py).map(|place| (place.file, place.line, place.function))
}

/// `(file, line, function)` of the user's frames, innermost first.
#[pyfunction]
#[pyo3(name = "user_stack", signature = (longest = 16))]
fn py_user_stack(py: Python<'_>, longest: usize) -> Vec<(String, u32, String)> {
    user_stack(py, longest).into_iter().map(|place| (place.file, place.line, place.function)).collect()
}

/// Value of a frame's local, cell or free variable; raises `LookupError` where it is unbound or cannot be read.
#[pyfunction]
#[pyo3(name = "read_local")]
fn py_read_local<'py>(frame: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    local(frame, name).ok_or_else(|| PyLookupError::new_err(name.clone().unbind()))
}

/// Every bound local, cell and free variable of a frame.
#[pyfunction]
#[pyo3(name = "read_locals")]
fn py_read_locals<'py>(frame: &Bound<'py, PyAny>) -> HashMap<String, Bound<'py, PyAny>> {
    let mut found = HashMap::new();
    for_each_local(frame, &mut |name, value| {
        found.insert(name.to_owned(), value.clone());
    });
    found
}

/// Can locals be read on this interpreter?
#[pyfunction]
#[pyo3(name = "frames_usable")]
fn py_frames_usable(py: Python<'_>) -> bool {
    usable(py)
}
