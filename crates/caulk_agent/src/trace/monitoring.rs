//! Events of candidates on 3.12 and later: `sys.monitoring`, local to their code objects.
//!
//! A tool of our own is used, never one that is in use; the numbers that CPython sets aside for debuggers, coverage,
//! profilers and optimizers are left to them. `PY_START` is needed beside `LINE`: 3.13.0 has no line event for a body
//! on the line of its `def`. Frames that run already are reached, since the code object itself is instrumented.

use std::os::raw::c_int;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use super::armed::on_event;
use super::engine::{Engine, Event};
use super::tool::Tool;
use crate::heap::Address;

/// Tool numbers without a designated use (`sys.monitoring` documentation).
const FREE_TOOLS: [u8; 2] = [4, 3];
const NAME: &str = "caulk";

/// A C function that receives an event's arguments.
type Callback =
    unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut ffi::PyObject, isize) -> *mut ffi::PyObject;

/// Events with their callbacks, by the names in `sys.monitoring.events`.
const CALLBACKS: [(&str, Callback); 5] = [
    ("PY_START", on_start),
    ("PY_RESUME", on_resume),
    ("PY_RETURN", on_leave),
    ("PY_YIELD", on_leave),
    ("LINE", on_line),
];

impl Tool {
    pub(super) fn install(py: Python<'_>, codes: Vec<Py<PyAny>>) -> Result<Self, String> {
        // SAFETY: returns a borrowed reference or null.
        let monitoring =
            unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(c"monitoring".as_ptr())) };
        let monitoring = monitoring.ok_or("this interpreter has no sys.monitoring")?;
        let is_free =
            |number: &u8| monitoring.call_method1("get_tool", (*number,)).is_ok_and(|tool| tool.is_none());
        let number = FREE_TOOLS.into_iter().find(is_free).ok_or("all numbers of sys.monitoring are taken")?;
        let failed = |error: PyErr| format!("sys.monitoring failed: {}", error.value(py).get_type());
        monitoring.call_method1("use_tool_id", (number, NAME)).map_err(failed)?;
        let tool = Self { monitoring: monitoring.unbind(), number, codes };
        if let Err(error) = tool.switch_on(py) {
            let reason = failed(error);
            tool.remove(py);
            return Err(reason);
        }
        Ok(tool)
    }

    fn switch_on(&self, py: Python<'_>) -> PyResult<()> {
        let monitoring = self.monitoring.bind(py);
        let events = monitoring.getattr(intern!(py, "events"))?;
        let mut all = 0_u32;
        for (name, callback) in CALLBACKS {
            let event: u32 = events.getattr(name)?.extract()?;
            monitoring.call_method1("register_callback", (self.number, event, function(py, callback)?))?;
            all |= event;
        }
        for code in &self.codes {
            monitoring.call_method1("set_local_events", (self.number, code, all))?;
        }
        Ok(())
    }

    /// Ends the trace if somebody has taken the tool away.
    pub(super) fn check(&self, py: Python<'_>, engine: &mut Engine) {
        let name = self.monitoring.bind(py).call_method1("get_tool", (self.number,));
        if !name.is_ok_and(|name| name.eq(NAME).unwrap_or(false)) {
            engine.stopped = Some("the program took the trace's place in sys.monitoring".into());
        }
    }

    /// Takes every event and callback off again; each step is tried whatever became of the one before.
    pub(super) fn remove(self, py: Python<'_>) {
        let monitoring = self.monitoring.bind(py);
        let ours = monitoring
            .call_method1("get_tool", (self.number,))
            .and_then(|name| name.eq(NAME))
            .unwrap_or(false);
        if !ours {
            return;
        }
        for code in &self.codes {
            drop(monitoring.call_method1("set_local_events", (self.number, code, 0)));
        }
        if let Ok(events) = monitoring.getattr(intern!(py, "events")) {
            for (name, _) in CALLBACKS {
                let event = events.getattr(name).and_then(|event| event.extract::<u32>()).unwrap_or(0);
                drop(monitoring.call_method1("register_callback", (self.number, event, py.None())));
            }
        }
        drop(monitoring.call_method1("free_tool_id", (self.number,)));
    }
}

/// A Python callable for a C function, without the argument parsing of ordinary ones.
fn function(py: Python<'_>, callback: Callback) -> PyResult<Bound<'_, PyAny>> {
    // The interpreter keeps a pointer to the definition for as long as the function lives: a few dozen bytes per arming.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"caulk".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: callback },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: std::ptr::null(),
    }));
    // SAFETY: the definition lives for ever; a new reference, or null with an exception.
    unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCFunction_NewEx(definition, std::ptr::null_mut(), std::ptr::null_mut()),
        )
    }
}

/// `PY_START(code, offset)`.
unsafe extern "C" fn on_start(
    _: *mut ffi::PyObject,
    arguments: *mut *mut ffi::PyObject,
    count: isize,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes `count` arguments.
    let code = unsafe { argument(arguments, count, 0) };
    on_event(|py, engine, thread| {
        let Some(line) = engine.candidates.get(&(code as Address)).map(|candidate| candidate.first_line)
        else {
            return;
        };
        engine.handle(py, thread, running_frame(), code as Address, Event::Start(line));
    });
    none()
}

/// `PY_RESUME(code, offset)`.
unsafe extern "C" fn on_resume(
    _: *mut ffi::PyObject,
    arguments: *mut *mut ffi::PyObject,
    count: isize,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes `count` arguments.
    let code = unsafe { argument(arguments, count, 0) };
    on_event(|py, engine, thread| {
        let frame = running_frame();
        if frame == 0 {
            return;
        }
        // SAFETY: the frame runs.
        let line = unsafe { ffi::PyFrame_GetLineNumber(frame as *mut ffi::PyFrameObject) };
        engine.handle(py, thread, frame, code as Address, Event::Start(line.max(0) as u32));
    });
    none()
}

/// `LINE(code, line)`.
unsafe extern "C" fn on_line(
    _: *mut ffi::PyObject,
    arguments: *mut *mut ffi::PyObject,
    count: isize,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes `count` arguments.
    let code = unsafe { argument(arguments, count, 0) };
    // SAFETY: as above.
    let line = unsafe { argument(arguments, count, 1) };
    // SAFETY: an int object, or null, which gives -1 with an exception that `on_event` clears.
    let line = if line.is_null() { 0 } else { unsafe { ffi::PyLong_AsLong(line) } };
    on_event(|py, engine, thread| {
        engine.handle(py, thread, running_frame(), code as Address, Event::Line(line.max(0) as u32));
    });
    none()
}

/// `PY_RETURN(code, offset, value)` and `PY_YIELD(code, offset, value)`.
unsafe extern "C" fn on_leave(
    _: *mut ffi::PyObject,
    arguments: *mut *mut ffi::PyObject,
    count: isize,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter passes `count` arguments.
    let code = unsafe { argument(arguments, count, 0) };
    on_event(|py, engine, thread| engine.handle(py, thread, running_frame(), code as Address, Event::Leave));
    none()
}

/// An argument of a callback; null where there are fewer.
///
/// # Safety
/// `arguments` points to `count` arguments.
unsafe fn argument(arguments: *mut *mut ffi::PyObject, count: isize, index: c_int) -> *mut ffi::PyObject {
    if index as isize >= count {
        return std::ptr::null_mut();
    }
    // SAFETY: the index is below the count.
    unsafe { *arguments.add(index as usize) }
}

/// The frame that the event belongs to: a C callback has none of its own.
fn running_frame() -> Address {
    // SAFETY: the interpreter calls with the GIL held; a borrowed reference or null.
    unsafe { ffi::PyEval_GetFrame() as Address }
}

fn none() -> *mut ffi::PyObject {
    // SAFETY: the GIL is held.
    unsafe { ffi::Py_NewRef(ffi::Py_None()) }
}
