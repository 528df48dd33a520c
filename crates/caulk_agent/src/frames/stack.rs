//! Frames of a stack, one after the other: code, line, caller, and the place of each.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::symbols;

/// Where a frame is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// File, as the code object has it.
    pub(crate) file: String,
    /// Line, from 1; 0 where the frame has none.
    pub(crate) line: u32,
    /// Qualified name of the function, comprehensions counted to the function around them; on 3.10 the bare name.
    pub(crate) function: String,
}

/// Bound on the frames of one thread: deep recursion is not walked to its end.
const DEEPEST: usize = 2000;

/// The code object of a frame.
pub(crate) fn code_of<'py>(frame: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: `frame` is a frame; the function returns a new reference and cannot fail.
    unsafe { Bound::from_owned_ptr(frame.py(), ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) }
}

/// The line that a frame is on, from 1; 0 where there is none.
pub(crate) fn line_of(frame: &Bound<'_, PyAny>) -> u32 {
    // SAFETY: `frame` is a frame.
    u32::try_from(unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) }).unwrap_or(0)
}

/// The frame that called this one.
pub(crate) fn caller_of<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let back = symbols::frame_back()?;
    // SAFETY: `frame` is a frame; the function returns a new reference or null, without an exception.
    unsafe { Bound::from_owned_ptr_or_opt(frame.py(), back(frame.as_ptr().cast()).cast()) }
}

/// The frame that this thread is running.
pub(crate) fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the GIL is held; the function returns a borrowed reference or null, without an exception.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// The frame and its callers, innermost first.
pub(crate) fn stack_of(frame: Option<Bound<'_, PyAny>>) -> impl Iterator<Item = Bound<'_, PyAny>> {
    std::iter::successors(frame, caller_of).take(DEEPEST)
}

/// Where a frame is.
pub(crate) fn place(frame: &Bound<'_, PyAny>) -> Place {
    let code = code_of(frame);
    let mut function = function_of(&code);
    // 3.10 has no qualified names: a comprehension is told from its caller by being one of the caller's constants.
    let mut inner = code.clone();
    for outer in stack_of(caller_of(frame)).take(3) {
        if !is_comprehension(&function) {
            break;
        }
        let outer = code_of(&outer);
        if !constants(&outer).is_some_and(|constants| constants.iter().any(|constant| constant.is(&inner))) {
            break;
        }
        function = function_of(&outer);
        inner = outer;
    }
    Place { file: file_of(&code), line: line_of(frame), function }
}

/// File of a code object.
pub(crate) fn file_of(code: &Bound<'_, PyAny>) -> String {
    text(code, intern!(code.py(), "co_filename"))
}

/// Qualified name of a code object's function; comprehensions and generator expressions count to the one around them.
pub(crate) fn function_of(code: &Bound<'_, PyAny>) -> String {
    let py = code.py();
    let qualified = symbols::minor().is_some_and(|minor| minor >= 11);
    let name = text(code, if qualified { intern!(py, "co_qualname") } else { intern!(py, "co_name") });
    let mut name = name.as_str();
    while let Some((outer, last)) = name.rsplit_once(".<locals>.") {
        if !is_comprehension(last) {
            break;
        }
        name = outer;
    }
    name.to_owned()
}

/// Constants of a code object, nested code objects among them.
pub(crate) fn constants<'py>(code: &Bound<'py, PyAny>) -> Option<Bound<'py, PyTuple>> {
    code.getattr(intern!(code.py(), "co_consts")).ok()?.cast_into().ok()
}

fn is_comprehension(name: &str) -> bool {
    matches!(name, "<listcomp>" | "<setcomp>" | "<dictcomp>" | "<genexpr>")
}

fn text(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> String {
    let value = object.getattr(name).ok().and_then(|value| value.cast_into::<PyString>().ok());
    value.map_or_else(String::new, |value| value.to_string_lossy().into_owned())
}
