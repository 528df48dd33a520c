//! Where a watched value is, and how it is read there without running user code or keeping anything alive.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule, PyString, PyTuple, PyType, PyWeakrefReference};

use super::watch::{Known, Measure, Reading, Target};
use crate::frames;
use crate::heap::{Address, Heap, cell_contents, loaded, member};
use crate::label::is_context_variable;
use crate::symbols;

/// Something of the program's that is watched and not kept alive.
///
/// Weakly where its type allows that. Lists, dicts and cells have no weak references: they are held, until nobody else
/// holds them; one that only a cycle of its own keeps lives until the trace ends.
pub(super) enum Reference {
    Weak(Py<PyWeakrefReference>),
    Strong(Py<PyAny>),
}

impl Reference {
    fn to(object: &Bound<'_, PyAny>) -> Self {
        match PyWeakrefReference::new(object) {
            Ok(weak) => Self::Weak(weak.unbind()),
            Err(_) => Self::Strong(object.clone().unbind()),
        }
    }

    /// The object, while it lives.
    fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Weak(weak) => weak.bind(py).upgrade(),
            Self::Strong(object) => Some(object.bind(py).clone()),
        }
    }

    /// Is it gone, or held by nobody else?
    fn is_abandoned(&self, py: Python<'_>) -> bool {
        match self {
            Self::Weak(weak) => weak.bind(py).upgrade().is_none(),
            // SAFETY: the object is alive: `self` refers to it.
            Self::Strong(object) => unsafe { ffi::Py_REFCNT(object.as_ptr()) == 1 },
        }
    }
}

/// Where the value to read is.
pub(super) enum Source {
    Object(Reference),
    Key {
        dict: Reference,
        key: Py<PyString>,
    },
    Index {
        list: Reference,
        index: usize,
    },
    Instance {
        owner: Reference,
        name: Py<PyString>,
    },
    /// An attribute that C++ code keeps and wraps for Python when it is asked for: `grad`.
    Wrapped {
        owner: Reference,
        name: Py<PyString>,
    },
    Class {
        class: Reference,
        name: Py<PyString>,
    },
    Cell(Reference),
    /// A context variable, in the context that the code runs in.
    Context(Reference),
    Local {
        code: Py<PyAny>,
        name: Py<PyString>,
    },
}

impl Source {
    /// Where the target's value is read from; `None` where it cannot be read without running user code.
    pub(super) fn of(py: Python<'_>, target: Target, known: &Known) -> Option<Self> {
        match target {
            Target::Object(object) => {
                let object = object.into_bound(py);
                // What is already measurable, else the container inside a queue, cache or wrapper class.
                if known.measure_of(object.get_type_ptr()) != Measure::None {
                    return Some(Self::Object(Reference::to(&object)));
                }
                inner_container(&object, known).map(|inner| Self::Object(Reference::to(&inner)))
            }
            Target::Local { function, name } => {
                let code = running_code(py, &function).filter(|_| frames::usable(py))?;
                Some(Self::Local { code: code.unbind(), name: PyString::intern(py, &name).unbind() })
            }
            Target::Slot { owner, name } => Self::slot(owner.bind(py), &name, known),
        }
    }

    fn slot(owner: &Bound<'_, PyAny>, name: &str, known: &Known) -> Option<Self> {
        let py = owner.py();
        let key = PyString::intern(py, name);
        if let Ok(module) = owner.cast::<PyModule>() {
            return Some(Self::Key { dict: Reference::to(module.dict().as_any()), key: key.unbind() });
        }
        if let Ok(dict) = owner.cast::<PyDict>() {
            return Some(Self::Key { dict: Reference::to(dict), key: key.unbind() });
        }
        if let Ok(list) = owner.cast::<PyList>() {
            return Some(Self::Index { list: Reference::to(list), index: name.parse().ok()? });
        }
        if let Ok(class) = owner.cast::<PyType>() {
            return Some(Self::Class { class: Reference::to(class), name: key.unbind() });
        }
        if is_context_variable(owner) {
            return Some(Self::Context(Reference::to(owner)));
        }
        if Some(owner.get_type_ptr()) == symbols::cell_type() {
            return Some(Self::Cell(Reference::to(owner)));
        }
        if Some(owner.get_type_ptr()) == symbols::function_type() {
            return closure_cell(owner, name).map(|cell| Self::Cell(Reference::to(&cell)));
        }
        if !reads_without_user_code(owner, &key, known) {
            return None;
        }
        if [known.tensor, known.parameter].contains(&(owner.get_type_ptr() as Address)) && name == "grad" {
            return Some(Self::Wrapped { owner: Reference::to(owner), name: key.unbind() });
        }
        if plain_attribute(owner, &key).is_some() {
            return Some(Self::Instance { owner: Reference::to(owner), name: key.unbind() });
        }
        // A torch module keeps its tensors in dicts of its own.
        let dicts = ["_buffers", "_parameters", "_modules"].into_iter();
        let dict = dicts
            .filter_map(|dict| {
                plain_attribute(owner, &PyString::intern(py, dict))?.cast_into::<PyDict>().ok()
            })
            .find(|dict| dict.contains(&key).unwrap_or(false));
        match dict {
            Some(dict) => Some(Self::Key { dict: Reference::to(&dict), key: key.unbind() }),
            None => Some(Self::Instance { owner: Reference::to(owner), name: key.unbind() }),
        }
    }

    /// Is it a local variable of this code?
    pub(super) fn is_local_of(&self, running: Address) -> bool {
        matches!(self, Self::Local { code, .. } if code.as_ptr() as Address == running)
    }

    /// Nobody else refers to the watched object or the slot's owner any more.
    pub(super) fn is_abandoned(&self, py: Python<'_>) -> bool {
        match self {
            Self::Object(owner)
            | Self::Cell(owner)
            | Self::Context(owner)
            | Self::Instance { owner, .. }
            | Self::Wrapped { owner, .. }
            | Self::Key { dict: owner, .. }
            | Self::Index { list: owner, .. }
            | Self::Class { class: owner, .. } => owner.is_abandoned(py),
            Self::Local { .. } => false,
        }
    }

    /// The value now; `running` tells which local variables can be seen.
    pub(super) fn read(&self, py: Python<'_>, known: &Known, before: &Reading, running: Running) -> Reading {
        if let Self::Wrapped { owner, name } = self {
            let Some(owner) = owner.get(py) else { return Reading::default() };
            let _overrides_off = known.overrides_off(py);
            let value = plain_attribute(&owner, name.bind(py));
            return value.map_or(Reading::default(), |value| known.read_wrapped(&value, before));
        }
        if let Self::Local { code, name } = self {
            return match running.local(py, code, name) {
                // Another function runs: the local is as it was.
                None => *before,
                Some(value) => value.map_or(Reading::default(), |value| known.read(&value, before)),
            };
        }
        self.value(py).map_or(Reading::default(), |value| known.read(&value, before))
    }

    /// What is bound where it can be looked up at any time.
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Object(object) => object.get(py),
            Self::Key { dict, key } => dict.get(py)?.cast::<PyDict>().ok()?.get_item(key).ok()?,
            Self::Index { list, index } => list.get(py)?.cast::<PyList>().ok()?.get_item(*index).ok(),
            Self::Instance { owner, name } => plain_attribute(&owner.get(py)?, name.bind(py)),
            Self::Class { class, name } => {
                class_attribute(class.get(py)?.cast::<PyType>().ok()?, name.bind(py))
            }
            Self::Cell(cell) => cell_contents(&cell.get(py)?),
            Self::Context(variable) => variable.get(py)?.call_method0(intern!(py, "get")).ok(),
            Self::Wrapped { .. } | Self::Local { .. } => None,
        }
    }
}

/// The frame of the event that is being handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running {
    /// Address of the frame's code object.
    pub(super) code: Address,
    /// Address of the frame, which runs while the event is handled.
    pub(super) frame: Address,
}

impl Running {
    /// No event.
    pub(super) const NOWHERE: Self = Self { code: 0, frame: 0 };

    pub(super) fn frame(self, py: Python<'_>) -> Option<Bound<'_, PyAny>> {
        // SAFETY: null, or the frame of the event that is being handled, which the interpreter keeps alive.
        unsafe { Bound::from_borrowed_ptr_or_opt(py, self.frame as *mut ffi::PyObject) }
    }

    /// Value of the variable, `None` where it is unbound, if the frame runs `code` or a function that shares its variable.
    #[expect(
        clippy::option_option,
        reason = "another function's frame and an unbound variable are different"
    )]
    fn local<'py>(
        self,
        py: Python<'py>,
        code: &Py<PyAny>,
        name: &Py<PyString>,
    ) -> Option<Option<Bound<'py, PyAny>>> {
        let frame = self.frame(py)?;
        let name = name.bind(py);
        if self.code != code.as_ptr() as Address {
            let running = frames::code_of(&frame);
            let free = running.getattr(intern!(py, "co_freevars")).ok()?.cast_into::<PyTuple>().ok()?;
            if !free.iter_borrowed().any(|other| other.is(name)) {
                return None;
            }
        }
        Some(frames::local(&frame, name))
    }
}

/// Code of the outermost running function of this name.
fn running_code<'py>(py: Python<'py>, function: &str) -> Option<Bound<'py, PyAny>> {
    let threads = frames::all_frames(py);
    let mut stacks = threads.iter().flat_map(|(_, stack)| stack.iter().rev());
    stacks.find(|frame| frames::place(frame).function == function).map(frames::code_of)
}

/// An instance's attribute by the generic look-up, which reads inline values without making a dict.
fn plain_attribute<'py>(owner: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: two live objects; a new reference, or null with an exception.
    let value = unsafe { ffi::PyObject_GenericGetAttr(owner.as_ptr(), name.as_ptr()) };
    // SAFETY: as above; the conversion takes the exception.
    unsafe { Bound::from_owned_ptr_or_err(owner.py(), value) }.ok()
}

fn class_attribute<'py>(
    class: &Bound<'py, PyType>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let lookup = symbols::type_lookup()?;
    // SAFETY: a type and a string; a borrowed reference or null.
    let value = unsafe { lookup(class.as_type_ptr(), name.as_ptr()) };
    // SAFETY: as above.
    unsafe { Bound::from_borrowed_ptr_or_opt(class.py(), value) }
}

fn closure_cell<'py>(function: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    let py = function.py();
    let code = function.getattr(intern!(py, "__code__")).ok()?;
    let names = code.getattr(intern!(py, "co_freevars")).ok()?.cast_into::<PyTuple>().ok()?;
    let index = names.iter().position(|other| other.eq(name).unwrap_or(false))?;
    function.getattr(intern!(py, "__closure__")).ok()?.cast_into::<PyTuple>().ok()?.get_item(index).ok()
}

/// Would the generic look-up of this attribute run nothing but C code of the interpreter? A property or another
/// descriptor on the class would be called; a tensor's own attributes are C code where its class is torch's.
fn reads_without_user_code(owner: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, known: &Known) -> bool {
    let Some(found) = class_attribute(&owner.get_type(), name) else {
        return symbols::type_lookup().is_some();
    };
    let found_type = found.get_type_ptr();
    if found_type == &raw mut ffi::PyMemberDescr_Type {
        return true;
    }
    if found_type == &raw mut ffi::PyGetSetDescr_Type {
        let owner_type = owner.get_type_ptr() as Address;
        let leaf = || {
            owner.getattr(intern!(owner.py(), "is_leaf")).is_ok_and(|leaf| leaf.is_truthy().unwrap_or(false))
        };
        return (owner_type == known.tensor || owner_type == known.parameter) && leaf();
    }
    // A plain value on the class, hidden by the instance's own: not a descriptor.
    // SAFETY: a live object's type; the slot exists for static and heap types from 3.10 on.
    unsafe { ffi::PyType_GetSlot(found_type, ffi::Py_tp_descr_get) }.is_null()
}

/// The container that a queue, a wrapper class or an `lru_cache` keeps its elements in.
fn inner_container<'py>(object: &Bound<'py, PyAny>, known: &Known) -> Option<Bound<'py, PyAny>> {
    let py = object.py();
    let lru_cache = loaded(py, "functools").and_then(|module| member(&module, "_lru_cache_wrapper"));
    if lru_cache.is_some_and(|lru_cache| lru_cache.as_ptr().cast() == object.get_type_ptr()) {
        let heap = Heap::new(py);
        return heap.dict_of_cache(object.as_ptr() as Address).map(|dict| heap.own(dict));
    }
    // `queue.Queue`, `asyncio.Queue`, `multiprocessing.Queue`; `UserDict`, `UserList`, weak dicts.
    let names = ["queue", "_queue", "_buffer", "data"];
    names.into_iter().find_map(|name| {
        let name = PyString::intern(py, name);
        let inner =
            reads_without_user_code(object, &name, known).then(|| plain_attribute(object, &name))??;
        (!matches!(known.measure_of(inner.get_type_ptr()), Measure::None | Measure::Text)).then_some(inner)
    })
}
