//! Locals of running and suspended frames, read in place.
//!
//! 3.12 and later have a function for it. Before, the values are read from the frame's own array of local, cell and
//! free variables, whose place is fixed for a minor version; the value stack that follows it is never looked at. Either
//! way is tried out once on frames whose variables are known, and switched off where anything comes back wrong.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};

use super::stack::{code_of, current, stack_of};
use crate::exclusive::Exclusive;
use crate::symbols;

/// `CO_OPTIMIZED` of `co_flags`: the code's locals are in the frame, not in a dict (CPython, Include/cpython/code.h).
const OPTIMIZED: u32 = 1;

/// How this interpreter's frames are read.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// `PyFrame_GetVar`.
    Function,
    /// 3.11: the frame points to an interpreter frame with the values behind its fixed fields.
    Frame311,
    /// 3.10: the values follow the frame's fixed fields.
    Frame310,
}

/// Byte offsets into `struct _frame` and `_PyInterpreterFrame` of 3.11 (`Include/internal/pycore_frame.h`), 64-bit.
mod offsets_311 {
    pub(super) const BASIC_SIZE: usize = 120;
    pub(super) const INTERPRETER_FRAME: usize = 24;
    pub(super) const CODE: usize = 32;
    pub(super) const VALUES: usize = 72;
}

/// Byte offsets into `struct _frame` of 3.10 (Include/cpython/frameobject.h), 64-bit.
mod offsets_310 {
    pub(super) const BASIC_SIZE: usize = 360;
    pub(super) const CODE: usize = 32;
    pub(super) const VALUES: usize = 352;
}

/// Where errors of reading a variable go.
static ON_ERROR: OnceLock<fn(Python<'_>, PyErr)> = OnceLock::new();

/// 0: not tried yet; 1: being tried; 2: works; 3: does not.
static CHECKED: AtomicU8 = AtomicU8::new(0);

/// Passes the errors of reading a variable to `action` from now on: a signal handler may have raised them.
pub(crate) fn set_error_action(action: fn(Python<'_>, PyErr)) {
    ON_ERROR.get_or_init(|| action);
}

/// Can locals be read on this interpreter? Tried out at the first call.
pub(crate) fn usable(py: Python<'_>) -> bool {
    if CHECKED.load(Ordering::Relaxed) == 0 {
        // While it is being tried, other threads are told no: they may run in between.
        CHECKED.store(1, Ordering::Relaxed);
        let works = layout(py).is_some_and(|layout| try_out(py, layout).unwrap_or(false));
        CHECKED.store(if works { 2 } else { 3 }, Ordering::Relaxed);
    }
    CHECKED.load(Ordering::Relaxed) == 2
}

/// Value of the local, cell or free variable `name` of a frame; of a module's frame, its global.
pub(crate) fn local<'py>(
    frame: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let py = frame.py();
    if !usable(py) {
        return None;
    }
    let code = code_of(frame);
    match Way::of(&code, name)? {
        Way::Namespace => namespace(frame)??.get_item(name).ok()?,
        Way::Function => read_by_function(frame, name),
        Way::Slot { index, cell } => {
            let values = values(frame, &code, layout(py)?)?;
            value_at(py, values, index, cell)
        }
    }
}

/// How a variable of a code object is read.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// From the dict of a module's or class's frame.
    Namespace,
    /// By the interpreter's own function.
    Function,
    /// From the frame's array.
    Slot { index: usize, cell: bool },
}

/// Variables whose way is remembered: a loop's is asked for at every step.
const MOST_WAYS: usize = 256;

/// A way with the code and the name that it is for, which keeps their addresses theirs; `None` where there is no such
/// variable.
type KnownWay = (Option<Way>, Py<PyAny>, Py<PyString>);

static WAYS: Exclusive<Ways> = Exclusive::holding(Ways(None));

/// By the addresses of code and name.
struct Ways(Option<HashMap<(usize, usize), KnownWay>>);

impl Way {
    fn of(code: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Option<Self> {
        let key = (code.as_ptr() as usize, name.as_ptr() as usize);
        let known = WAYS.with(|ways| ways.0.as_ref().and_then(|ways| ways.get(&key).map(|(way, ..)| *way)));
        if let Some(way) = known.flatten() {
            return way;
        }
        let way = Self::find(code, name);
        let entry = (way, code.clone().unbind(), name.clone().unbind());
        // Dropped outside: that may run the program's code.
        let dropped = WAYS.with(|ways| {
            let ways = ways.0.get_or_insert_default();
            let full = if ways.len() >= MOST_WAYS { std::mem::take(ways) } else { HashMap::default() };
            ways.insert(key, entry);
            full
        });
        drop(dropped);
        way
    }

    fn find(code: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Option<Self> {
        if !is_optimized(code)? {
            return Some(Self::Namespace);
        }
        let layout = layout(code.py())?;
        let slots = match layout {
            Layout::Function => return Some(Self::Function),
            _ => Names::of(code)?.slots(layout),
        };
        // 3.10 has a captured argument twice, its place among the locals empty.
        let index = slots.iter().rposition(|slot| same(&slot.name, name))?;
        Some(Self::Slot { index, cell: slots[index].cell })
    }
}

/// Calls `visit` with every bound variable of a frame.
pub(crate) fn for_each_local<'py>(
    frame: &Bound<'py, PyAny>,
    visit: &mut dyn FnMut(&str, &Bound<'py, PyAny>),
) {
    let py = frame.py();
    let Some(layout) = layout(py).filter(|_| usable(py)) else { return };
    if let Some(namespace) = namespace(frame) {
        for (name, value) in namespace.iter().flatten() {
            if let Ok(name) = name.cast::<PyString>() {
                visit(&name.to_string_lossy(), &value);
            }
        }
        return;
    }
    for (name, value) in read_all(frame, layout) {
        visit(&name.to_string_lossy(), &value);
    }
}

/// For code whose variables are in a dict: that dict, where it can be had; `None` for functions.
#[expect(clippy::option_option, reason = "a class body has a namespace that is not read")]
fn namespace<'py>(frame: &Bound<'py, PyAny>) -> Option<Option<Bound<'py, PyDict>>> {
    let (py, code) = (frame.py(), code_of(frame));
    if is_optimized(&code)? {
        return None;
    }
    let module = code.getattr(intern!(py, "co_name")).is_ok_and(|name| name.eq("<module>").unwrap_or(false));
    // A module's frame has no fast locals, so that reading the attribute makes and caches nothing.
    let read = || frame.getattr(intern!(py, "f_locals")).ok()?.cast_into().ok();
    Some(module.then(read).flatten())
}

/// Are the code's locals in the frame? `None` where it does not say.
fn is_optimized(code: &Bound<'_, PyAny>) -> Option<bool> {
    let flags: u32 = code.getattr(intern!(code.py(), "co_flags")).ok()?.extract().ok()?;
    Some(flags & OPTIMIZED != 0)
}

fn layout(py: Python<'_>) -> Option<Layout> {
    static FOUND: OnceLock<Option<Layout>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return *found;
    }
    // Found outside of the lock, as calls may let another thread run.
    let found = find_layout(py);
    *FOUND.get_or_init(|| found)
}

fn find_layout(py: Python<'_>) -> Option<Layout> {
    let size = || -> Option<usize> {
        // SAFETY: a static type of the interpreter; the reference is borrowed.
        let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, symbols::frame_type()?.cast()) }?;
        frame.getattr(intern!(py, "__basicsize__")).ok()?.extract().ok()
    };
    match symbols::minor()? {
        10 => (size() == Some(offsets_310::BASIC_SIZE)).then_some(Layout::Frame310),
        11 => (size() == Some(offsets_311::BASIC_SIZE)).then_some(Layout::Frame311),
        _ => symbols::frame_variable().map(|_| Layout::Function),
    }
}

fn read_by_function<'py>(
    frame: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let get = symbols::frame_variable()?;
    // SAFETY: a frame and a string; the function returns a new reference, or null with an exception.
    let value = unsafe { get(frame.as_ptr().cast(), name.as_ptr()) };
    // SAFETY: as above; the conversion takes the exception.
    let value = unsafe { Bound::from_owned_ptr_or_err(frame.py(), value) };
    // For what it has to say of an unbound variable the interpreter runs handlers of signals (`PyObject_Repr`).
    value.map_err(|error| ON_ERROR.get().map(|action| action(frame.py(), error))).ok()
}

fn read_all<'py>(
    frame: &Bound<'py, PyAny>,
    layout: Layout,
) -> Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)> {
    let code = code_of(frame);
    let Some(names) = Names::of(&code) else { return Vec::new() };
    let slots = match layout {
        Layout::Function => {
            let names = names.locals.into_iter().chain(names.cells).chain(names.free);
            let mut seen = Vec::<Bound<'py, PyString>>::new();
            let unseen = names.filter(|name| {
                let new = !seen.iter().any(|other| other.is(name));
                seen.push(name.clone());
                new
            });
            return unseen.filter_map(|name| Some((name.clone(), read_by_function(frame, &name)?))).collect();
        }
        layout => names.slots(layout),
    };
    let Some(values) = values(frame, &code, layout) else { return Vec::new() };
    let values = slots
        .into_iter()
        .enumerate()
        .filter_map(|(index, slot)| Some((slot.name, value_at(frame.py(), values, index, slot.cell)?)));
    values.collect()
}

/// An entry of a frame's array, that [`Names::slots`] of its code has.
fn value_at(
    py: Python<'_>,
    values: *const *mut ffi::PyObject,
    index: usize,
    cell: bool,
) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the array has one entry for each local, cell and free variable.
    let value = unsafe { *values.add(index) };
    // SAFETY: the entry is null or a reference that the frame owns; the GIL is held.
    let value = unsafe { Bound::from_borrowed_ptr_or_opt(py, value) }?;
    if cell { contents(value) } else { Some(value) }
}

/// The frame's array of variables, after the fields before it were held against what the interpreter says.
fn values(
    frame: &Bound<'_, PyAny>,
    code: &Bound<'_, PyAny>,
    layout: Layout,
) -> Option<*const *mut ffi::PyObject> {
    let address = frame.as_ptr() as usize;
    let (holder, code_offset, values) = match layout {
        Layout::Function => return None,
        Layout::Frame311 => {
            (word(address + offsets_311::INTERPRETER_FRAME), offsets_311::CODE, offsets_311::VALUES)
        }
        Layout::Frame310 => (address, offsets_310::CODE, offsets_310::VALUES),
    };
    let sound =
        holder != 0 && holder.is_multiple_of(8) && word(holder + code_offset) == code.as_ptr() as usize;
    sound.then_some((holder + values) as *const *mut ffi::PyObject)
}

fn word(address: usize) -> usize {
    // SAFETY: callers pass the address of a pointer field of a live frame, whose size was checked by `layout`.
    unsafe { *(address as *const usize) }
}

/// What a cell holds; a variable that is not in its cell yet is taken as it is.
fn contents(value: Bound<'_, PyAny>) -> Option<Bound<'_, PyAny>> {
    if Some(value.get_type_ptr()) != symbols::cell_type() {
        return Some(value);
    }
    // SAFETY: a cell; the function returns a new reference or null, without an exception.
    unsafe { Bound::from_owned_ptr_or_opt(value.py(), symbols::cell_get()?(value.as_ptr())) }
}

/// Names of a code object's variables.
struct Names<'py> {
    locals: Vec<Bound<'py, PyString>>,
    cells: Vec<Bound<'py, PyString>>,
    free: Vec<Bound<'py, PyString>>,
}

/// One entry of a frame's array.
struct Slot<'py> {
    name: Bound<'py, PyString>,
    cell: bool,
}

impl<'py> Names<'py> {
    fn of(code: &Bound<'py, PyAny>) -> Option<Self> {
        let py = code.py();
        let read = |name: &Bound<'py, PyString>| -> Option<Vec<Bound<'py, PyString>>> {
            let names = code.getattr(name).ok()?.cast_into::<PyTuple>().ok()?;
            names.iter().map(|name| name.cast_into().ok()).collect()
        };
        Some(Self {
            locals: read(intern!(py, "co_varnames"))?,
            cells: read(intern!(py, "co_cellvars"))?,
            free: read(intern!(py, "co_freevars"))?,
        })
    }

    /// Entries of a frame's array.
    fn slots(self, layout: Layout) -> Vec<Slot<'py>> {
        match layout {
            Layout::Function => Vec::new(),
            Layout::Frame311 => self.slots_311(),
            Layout::Frame310 => self.slots_310(),
        }
    }

    /// 3.11: a captured argument keeps its place among the locals, as a cell.
    fn slots_311(self) -> Vec<Slot<'py>> {
        let captured = |name: &Bound<'py, PyString>| self.cells.iter().any(|cell| same(cell, name));
        let mut slots: Vec<_> =
            self.locals.iter().map(|name| Slot { name: name.clone(), cell: captured(name) }).collect();
        let fresh = self.cells.iter().filter(|cell| !self.locals.iter().any(|name| same(cell, name)));
        slots.extend(fresh.chain(&self.free).map(|name| Slot { name: name.clone(), cell: true }));
        slots
    }

    /// 3.10: locals, cells, free variables; a captured argument is moved to its cell.
    fn slots_310(self) -> Vec<Slot<'py>> {
        let locals = self.locals.into_iter().map(|name| Slot { name, cell: false });
        let cells = self.cells.into_iter().chain(self.free).map(|name| Slot { name, cell: true });
        locals.chain(cells).collect()
    }
}

fn same(left: &Bound<'_, PyString>, right: &Bound<'_, PyString>) -> bool {
    left.is(right) || left.as_any().eq(right).unwrap_or(false)
}

/// Reads frames whose variables are known: locals, cells, free variables, captured arguments, unbound names, running and
/// suspended.
fn try_out(py: Python<'_>, layout: Layout) -> PyResult<bool> {
    let check = move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<bool> {
        // A suspended generator's frame is passed; otherwise the innermost frame is the one that called.
        let (frame, expected): (Option<Bound<'_, PyAny>>, Bound<'_, PyDict>) = args.extract()?;
        let Some(frame) = frame.or_else(|| current(args.py())) else { return Ok(false) };
        if stack_of(Some(frame.clone())).count() == 0 || namespace(&frame).is_some() {
            return Ok(false);
        }
        let read = read_all(&frame, layout);
        let as_expected = read.iter().all(|(name, value)| {
            expected
                .get_item(name)
                .is_ok_and(|known| known.is_some_and(|known| known.is_none() || known.is(value)))
        });
        Ok(as_expected && read.len() == expected.len())
    };
    let check = PyCFunction::new_closure(py, Some(c"check"), None, check)?;
    let globals = PyDict::new(py);
    globals.set_item("check", check)?;
    py.run(PROGRAM, Some(&globals), None)?;
    globals.get_item("works")?.map_or(Ok(false), |works| works.extract())
}

/// `None` among the expected values stands for "bound to anything".
const PROGRAM: &std::ffi::CStr = cr#"
def outer(argument, captured_argument, *rest, keyword=None):
    plain, captured, gone = [1], [2], [3]
    del gone
    def inner():
        own = [captured, captured_argument]
        return check(None, {"own": own, "captured": captured, "captured_argument": captured_argument})
    def suspended(first):
        second = [first, captured]
        yield second
        third = 3
    generator = suspended(plain)
    second = next(generator)
    results = (
        inner()
        and check(generator.gi_frame, {"first": plain, "second": second, "captured": captured})
        and check(None, {
            "argument": argument, "captured_argument": captured_argument, "rest": rest, "keyword": keyword,
            "plain": plain, "captured": captured, "inner": inner, "suspended": suspended, "generator": generator,
            "second": second,
        })
    )
    generator.close()
    return results
works = outer([4], [5], [6], keyword=[7])
"#;
