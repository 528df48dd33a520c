//! Functions and types of CPython outside the limited API, looked up by name in the running interpreter.
//!
//! Every symbol that the agent uses beyond the limited API is in one of the two tables below, with the versions in
//! which its signature is known to hold; on other versions it is absent, and so is what is built on it. What also
//! depends on the layout of a structure checks that layout where it is used, before it is believed.

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::OnceLock;

use pyo3::ffi;

/// Receives one object of a walk over the collector's lists; zero stops the walk.
pub(crate) type VisitObject = unsafe extern "C" fn(*mut ffi::PyObject, *mut c_void) -> c_int;

/// A trace or profile function of the interpreter (`Py_tracefunc`).
pub(crate) type TraceFunction =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyFrameObject, c_int, *mut ffi::PyObject) -> c_int;

/// `Py_buffer` (Include/cpython/object.h up to 3.10, Include/pybuffer.h since).
#[repr(C)]
pub(crate) struct BufferView {
    pub(crate) start: *mut c_void,
    object: *mut ffi::PyObject,
    pub(crate) length: isize,
    item_size: isize,
    read_only: c_int,
    dimensions: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

type VisitObjects = unsafe extern "C" fn(VisitObject, *mut c_void);
type FrameBack = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
type FrameVariable = unsafe extern "C" fn(*mut ffi::PyFrameObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
type TypeLookup = unsafe extern "C" fn(*mut ffi::PyTypeObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
type FunctionPart = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
type CellGet = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
type GetBuffer = unsafe extern "C" fn(*mut ffi::PyObject, *mut BufferView, c_int) -> c_int;
type ReleaseBuffer = unsafe extern "C" fn(*mut BufferView);
type SetTracer =
    unsafe extern "C" fn(*mut ffi::PyThreadState, Option<TraceFunction>, *mut ffi::PyObject) -> c_int;
type ThreadHead = unsafe extern "C" fn(*mut ffi::PyInterpreterState) -> *mut ffi::PyThreadState;
type ThreadNext = unsafe extern "C" fn(*mut ffi::PyThreadState) -> *mut ffi::PyThreadState;

/// Oldest and newest minor version of CPython 3 that the agent knows.
const KNOWN: (u8, u8) = (10, 14);

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident: $type:ty = $symbol:literal, $first:literal..=$last:literal;)*) => {$(
        $(#[$meta])*
        pub(crate) fn $name() -> Option<$type> {
            static FOUND: OnceLock<Option<$type>> = OnceLock::new();
            *FOUND.get_or_init(|| {
                let symbol = ($first..=$last).contains(&minor()?).then(|| find($symbol))??;
                // SAFETY: the symbol is CPython's function of this name, whose signature holds in these versions.
                Some(unsafe { std::mem::transmute::<*mut c_void, $type>(symbol) })
            })
        }
    )*};
}

functions! {
    /// `PyUnstable_GC_VisitObjects`.
    gc_visit_objects: VisitObjects = c"PyUnstable_GC_VisitObjects", 12..=14;
    /// `PyFrame_GetBack`: a new reference or null.
    frame_back: FrameBack = c"PyFrame_GetBack", 10..=14;
    /// `PyFrame_GetVar`: a new reference, or null with an exception.
    frame_variable: FrameVariable = c"PyFrame_GetVar", 12..=14;
    /// `_PyType_Lookup`: a borrowed reference or null, without an exception.
    type_lookup: TypeLookup = c"_PyType_Lookup", 10..=14;
    /// `PyFunction_GetCode`: a borrowed reference.
    function_code: FunctionPart = c"PyFunction_GetCode", 10..=14;
    /// `PyFunction_GetGlobals`: a borrowed reference.
    function_globals: FunctionPart = c"PyFunction_GetGlobals", 10..=14;
    /// `PyCell_Get`: a new reference or null, without an exception.
    cell_get: CellGet = c"PyCell_Get", 10..=14;
    /// `PyObject_GetBuffer`: 0, or -1 with an exception.
    get_buffer: GetBuffer = c"PyObject_GetBuffer", 10..=14;
    /// `PyBuffer_Release`.
    release_buffer: ReleaseBuffer = c"PyBuffer_Release", 10..=14;
    /// `_PyEval_SetProfile`, for any thread of the interpreter.
    set_profile: SetTracer = c"_PyEval_SetProfile", 10..=11;
    /// `PyInterpreterState_ThreadHead`.
    thread_head: ThreadHead = c"PyInterpreterState_ThreadHead", 10..=14;
    /// `PyThreadState_Next`.
    thread_next: ThreadNext = c"PyThreadState_Next", 10..=14;
}

macro_rules! types {
    ($($(#[$meta:meta])* $name:ident = $symbol:literal;)*) => {$(
        $(#[$meta])*
        pub(crate) fn $name() -> Option<*mut ffi::PyTypeObject> {
            static FOUND: OnceLock<Option<usize>> = OnceLock::new();
            FOUND.get_or_init(|| find($symbol).map(|found| found as usize)).map(|found| found as *mut ffi::PyTypeObject)
        }
    )*};
}

types! {
    /// Type of Python functions.
    function_type = c"PyFunction_Type";
    /// Type of code objects.
    code_type = c"PyCode_Type";
    /// Type of frames.
    frame_type = c"PyFrame_Type";
    /// Type of generators.
    generator_type = c"PyGen_Type";
    /// Type of coroutines.
    coroutine_type = c"PyCoro_Type";
    /// Type of asynchronous generators.
    async_generator_type = c"PyAsyncGen_Type";
    /// Type of the cells of closures.
    cell_type = c"PyCell_Type";
    /// Type of context variables.
    context_variable_type = c"PyContextVar_Type";
}

pub(crate) fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name; looks it up among what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Minor version of the running CPython 3; `None` where the interpreter is not one that the agent knows: another
/// implementation or version, a build without the GIL, or one whose objects carry debugging fields.
pub(crate) fn minor() -> Option<u8> {
    static MINOR: OnceLock<Option<u8>> = OnceLock::new();
    *MINOR.get_or_init(|| {
        // SAFETY: returns a static string, at any time.
        let version = unsafe { CStr::from_ptr(ffi::Py_GetVersion()) }.to_str().ok()?;
        // Until 3.12 exported by `Py_TRACE_REFS` builds only, which have two more words before every object.
        let traced = find(c"_Py_AddToAllObjects").is_some() || find(c"_Py_ForgetReference").is_some();
        parse_version(version).filter(|minor| !(traced && *minor <= 12) && find(c"PyPyObject_Size").is_none())
    })
}

/// `3.13.0 experimental free-threading build (main, ...)` -> none; `3.11.7 (main, ...)` -> 11.
fn parse_version(version: &str) -> Option<u8> {
    let minor = version.strip_prefix("3.")?.split(['.', ' ', '+', 'a', 'b', 'r']).next()?.parse().ok()?;
    (!version.contains("free-threading") && (KNOWN.0..=KNOWN.1).contains(&minor)).then_some(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        for (text, expected) in [
            ("3.11.7 (main, Nov 21 2026) [GCC 12.2.0]", Some(11)),
            ("3.13.0 experimental free-threading build (main)", None),
            ("3.14.0b1+ (heads/main)", Some(14)),
            ("3.15.0a1 (main)", None),
            ("3.9.18 (main)", None),
            ("2.7.18", None),
        ] {
            assert_eq!(parse_version(text), expected, "{text}");
        }
    }
}
