//! What is watched: a container's length, or the value of a name that is bound anew, read without running user code.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyModule, PyString, PyTuple, PyType};

use crate::frames;
use crate::heap::{Address, loaded, member};
use crate::symbols;
use crate::torch::Torch;

/// Something whose growth an armed trace looks for.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Number of the container in this process.
    pub(crate) id: u32,
    /// What to look at.
    pub(crate) target: Target,
    /// Name by which source code mentions it: the last attribute, variable or key of its holder path.
    pub(crate) name: String,
    /// Module, or qualified type, that defines the holder: its code is looked at first, also if it is not the user's.
    /// Empty where it is not known.
    pub(crate) home: String,
}

/// How a watched thing is reached.
#[derive(Debug)]
pub(crate) enum Target {
    /// A container watched by its length, or a tensor by its version.
    Object(Py<PyAny>),
    /// An attribute of an instance, class or module, a key of a dict, an index of a list, a variable of a closure: what
    /// it is bound to is watched, and that it is bound anew.
    Slot {
        /// The instance, class, module, dict, list, function or cell.
        owner: Py<PyAny>,
        /// The attribute, key, index (in decimal) or variable.
        name: String,
    },
    /// A local variable of a function, watched as a slot in every frame that runs it.
    Local {
        /// The function's qualified name, as [`frames::Place`] has it; it must be running.
        function: String,
        /// The variable.
        name: String,
    },
}

/// State of a watched thing at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// Address of the value; 0 where there is none.
    value: Address,
    /// Address of its type, so that `measure` is chosen once.
    value_type: Address,
    measure: Measure,
    /// Counts changes in place, of tensors.
    version: u64,
    /// Elements or bytes.
    size: u64,
    /// The value is a tensor with a graph behind it.
    graph: bool,
}

/// How a value's size is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Measure {
    /// Not at all: growth cannot be told.
    #[default]
    None,
    List,
    Dict,
    Set,
    /// `ob_size`: tuple, deque, bytearray, `array.array`.
    Size,
    Text,
    Tensor,
    Array,
    /// A tensor whose class may run user code: only its identity is used.
    Identity,
}

impl Reading {
    /// How much more there is than there was: elements, or bytes; 1 for a graph that was extended.
    pub(super) fn growth_since(&self, before: &Self) -> u64 {
        if self.value == 0 || self == before {
            return 0;
        }
        let changed = self.value != before.value || self.version != before.version;
        let comparable =
            before.value != 0 && before.measure != Measure::None && self.measure != Measure::None;
        let larger = if comparable { self.size.saturating_sub(before.size) } else { 0 };
        if larger == 0 && changed && self.graph { 1 } else { larger }
    }
}

/// Types and functions of libraries that the program has loaded.
pub(super) struct Known {
    deque: Address,
    array: Address,
    ndarray: Address,
    tensor: Address,
    parameter: Address,
    /// `torch._C._len_torch_function_stack`: while a mode is active, attributes of tensors run its code.
    modes: Option<Py<PyAny>>,
}

impl Known {
    pub(super) fn find(py: Python<'_>) -> Self {
        let find = |module: &str, name: &str| loaded(py, module).and_then(|module| member(&module, name));
        let address =
            |module: &str, name: &str| find(module, name).map_or(0, |found| found.as_ptr() as Address);
        Self {
            deque: address("_collections", "deque").max(address("collections", "deque")),
            array: address("array", "array"),
            ndarray: address("numpy", "ndarray"),
            tensor: address("torch", "Tensor"),
            parameter: address("torch.nn.parameter", "Parameter"),
            modes: find("torch._C", "_len_torch_function_stack").map(Bound::unbind),
        }
    }

    fn measure_of(&self, value_type: *mut ffi::PyTypeObject) -> Measure {
        // Bits of `tp_flags` for subclasses of built-in types: CPython, Include/object.h, stable since 3.0.
        const BY_FLAG: [(u32, Measure); 5] = [
            (25, Measure::List),
            (26, Measure::Size),
            (27, Measure::Text),
            (28, Measure::Text),
            (29, Measure::Dict),
        ];
        // SAFETY: a live object's type.
        let flags = unsafe { ffi::PyType_GetFlags(value_type) } as u64;
        if let Some((_, measure)) = BY_FLAG.iter().find(|(bit, _)| flags & (1 << bit) != 0) {
            return *measure;
        }
        let exact = [
            (self.tensor, Measure::Tensor),
            (self.parameter, Measure::Tensor),
            (self.ndarray, Measure::Array),
        ];
        if let Some((_, measure)) = exact.iter().find(|(known, _)| *known == value_type as Address) {
            return *measure;
        }
        let bases = [
            (&raw mut ffi::PySet_Type as Address, Measure::Set),
            (&raw mut ffi::PyByteArray_Type as Address, Measure::Size),
            (self.deque, Measure::Size),
            (self.array, Measure::Size),
            (self.tensor, Measure::Identity),
        ];
        let found = bases.iter().find(|(base, _)| {
            // SAFETY: both are live types.
            *base != 0 && unsafe { ffi::PyType_IsSubtype(value_type, *base as *mut ffi::PyTypeObject) } != 0
        });
        found.map_or(Measure::None, |(_, measure)| *measure)
    }

    /// Elements of a container, bytes of a tensor or array; `None` for other values.
    pub(super) fn size_of(&self, value: &Bound<'_, PyAny>) -> Option<u64> {
        let reading = self.read(value, &Reading::default());
        (!matches!(reading.measure, Measure::None | Measure::Identity)).then_some(reading.size)
    }

    /// Reads a value that the caller keeps alive.
    fn read(&self, value: &Bound<'_, PyAny>, before: &Reading) -> Reading {
        let value_type = value.get_type_ptr();
        let measure = if before.value_type == value_type as Address {
            before.measure
        } else {
            self.measure_of(value_type)
        };
        let same = before.value == value.as_ptr() as Address && before.value_type == value_type as Address;
        let mut reading = Reading {
            value: value.as_ptr() as Address,
            value_type: value_type as Address,
            measure,
            ..Reading::default()
        };
        let pointer = value.as_ptr();
        reading.size = match measure {
            // SAFETY: a list or a subclass; reads a field.
            Measure::List => unsafe { ffi::PyList_Size(pointer) },
            // SAFETY: a dict or a subclass; reads a field.
            Measure::Dict => unsafe { ffi::PyDict_Size(pointer) },
            // SAFETY: a set or a subclass; reads a field.
            Measure::Set => unsafe { ffi::PySet_Size(pointer) },
            // SAFETY: a variable-size object whose `ob_size` counts its elements.
            Measure::Size => unsafe { ffi::Py_SIZE(pointer) },
            Measure::Text => text_length(value),
            // An array keeps its size while it keeps its identity, but for `resize`, which nobody grows data with.
            Measure::Array if same => before.size as isize,
            Measure::Array => number(value, intern!(value.py(), "nbytes")),
            Measure::Tensor => return self.read_tensor(value, reading, before),
            Measure::Identity => {
                reading.graph = true;
                0
            }
            Measure::None => 0,
        }
        .max(0) as u64;
        reading
    }

    /// Reads a tensor whose Python object is made anew, maybe at the old one's address, when it is asked for: the address
    /// of its data tells it from the one before, which was there when it was made.
    fn read_wrapped(&self, value: &Bound<'_, PyAny>, before: &Reading) -> Reading {
        if self.measure_of(value.get_type_ptr()) != Measure::Tensor {
            return Reading::default();
        }
        let data = value.call_method0(intern!(value.py(), "data_ptr")).and_then(|data| data.extract::<u64>());
        let mut reading = self.read(value, &Reading { version: u64::MAX, ..*before });
        reading.version = reading.version.wrapping_add(data.unwrap_or(0));
        reading
    }

    fn read_tensor(&self, tensor: &Bound<'_, PyAny>, mut reading: Reading, before: &Reading) -> Reading {
        let py = tensor.py();
        let in_mode = self.modes.as_ref().is_some_and(|modes| {
            modes.bind(py).call0().and_then(|depth| depth.extract::<usize>()).is_ok_and(|depth| depth > 0)
        });
        let guard = if in_mode { Torch::new(py) } else { None };
        reading.version = number(tensor, intern!(py, "_version")).max(0) as u64;
        let same = (before.value, before.value_type, before.version)
            == (reading.value, reading.value_type, reading.version);
        if same {
            return *before;
        }
        reading.graph = Torch::grad_fn(tensor).is_some();
        reading.size = Torch::view_bytes(tensor);
        drop(guard);
        reading
    }
}

/// Length of an exact `str` or `bytes`; other text is left alone.
fn text_length(value: &Bound<'_, PyAny>) -> isize {
    if let Ok(text) = value.cast_exact::<PyString>() {
        // SAFETY: a string; reads a field.
        return unsafe { ffi::PyUnicode_GetLength(text.as_ptr()) };
    }
    value.cast_exact::<PyBytes>().map_or(0, |bytes| bytes.as_bytes().len() as isize)
}

/// A whole number in an attribute of C code; -1 where it cannot be had (inference tensors have no version).
fn number(value: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> isize {
    value.getattr(name).and_then(|number| number.extract()).unwrap_or(-1)
}

/// Where the value to read is.
pub(super) enum Source {
    Object(Py<PyAny>),
    Key {
        dict: Py<PyDict>,
        key: Py<PyString>,
    },
    Index {
        list: Py<PyList>,
        index: usize,
    },
    Instance {
        owner: Py<PyAny>,
        name: Py<PyString>,
    },
    /// An attribute that C++ code keeps and wraps for Python when it is asked for: `grad`.
    Wrapped {
        owner: Py<PyAny>,
        name: Py<PyString>,
    },
    Class {
        class: Py<PyType>,
        name: Py<PyString>,
    },
    Cell(Py<PyAny>),
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
                    return Some(Self::Object(object.unbind()));
                }
                inner_container(&object, known).map(|inner| Self::Object(inner.unbind()))
            }
            Target::Local { function, name } => {
                let code = running_code(py, &function).filter(|_| frames::usable(py))?;
                Some(Self::Local { code: code.unbind(), name: PyString::intern(py, &name).unbind() })
            }
            Target::Slot { owner, name } => Self::slot(owner.into_bound(py), &name, known),
        }
    }

    fn slot(owner: Bound<'_, PyAny>, name: &str, known: &Known) -> Option<Self> {
        let py = owner.py();
        let key = PyString::intern(py, name);
        if let Ok(module) = owner.cast::<PyModule>() {
            return Some(Self::Key { dict: module.dict().unbind(), key: key.unbind() });
        }
        if let Ok(dict) = owner.cast::<PyDict>() {
            return Some(Self::Key { dict: dict.clone().unbind(), key: key.unbind() });
        }
        if let Ok(list) = owner.cast::<PyList>() {
            return Some(Self::Index { list: list.clone().unbind(), index: name.parse().ok()? });
        }
        if let Ok(class) = owner.cast::<PyType>() {
            return Some(Self::Class { class: class.clone().unbind(), name: key.unbind() });
        }
        if Some(owner.get_type_ptr()) == symbols::cell_type() {
            return Some(Self::Cell(owner.unbind()));
        }
        if Some(owner.get_type_ptr()) == symbols::function_type() {
            return closure_cell(&owner, name).map(|cell| Self::Cell(cell.unbind()));
        }
        if !reads_without_user_code(&owner, &key, known) {
            return None;
        }
        if [known.tensor, known.parameter].contains(&(owner.get_type_ptr() as Address)) && name == "grad" {
            return Some(Self::Wrapped { owner: owner.unbind(), name: key.unbind() });
        }
        if plain_attribute(&owner, &key).is_some() {
            return Some(Self::Instance { owner: owner.unbind(), name: key.unbind() });
        }
        // A torch module keeps its tensors in dicts of its own.
        let dicts = ["_buffers", "_parameters", "_modules"].into_iter();
        let dict = dicts
            .filter_map(|dict| {
                plain_attribute(&owner, &PyString::intern(py, dict))?.cast_into::<PyDict>().ok()
            })
            .find(|dict| dict.contains(&key).unwrap_or(false));
        match dict {
            Some(dict) => Some(Self::Key { dict: dict.unbind(), key: key.unbind() }),
            None => Some(Self::Instance { owner: owner.unbind(), name: key.unbind() }),
        }
    }

    /// Is it a local variable of this code?
    pub(super) fn is_local_of(&self, running: Address) -> bool {
        matches!(self, Self::Local { code, .. } if code.as_ptr() as Address == running)
    }

    /// Nobody else refers to the watched object or the slot's owner any more.
    pub(super) fn is_abandoned(&self) -> bool {
        let owner = match self {
            Self::Object(object)
            | Self::Cell(object)
            | Self::Instance { owner: object, .. }
            | Self::Wrapped { owner: object, .. } => object.as_ptr(),
            Self::Key { dict, .. } => dict.as_ptr(),
            Self::Index { list, .. } => list.as_ptr(),
            Self::Class { .. } | Self::Local { .. } => return false,
        };
        // SAFETY: the object is alive: `self` refers to it.
        unsafe { ffi::Py_REFCNT(owner) == 1 }
    }

    /// The value now; `running` tells which local variables can be seen.
    pub(super) fn read(&self, py: Python<'_>, known: &Known, before: &Reading, running: Running) -> Reading {
        let value = match self {
            Self::Object(object) => return known.read(object.bind(py), before),
            Self::Key { dict, key } => dict.bind(py).get_item(key).ok().flatten(),
            Self::Index { list, index } => list.bind(py).get_item(*index).ok(),
            Self::Instance { owner, name } => plain_attribute(owner.bind(py), name.bind(py)),
            Self::Wrapped { owner, name } => {
                let value = plain_attribute(owner.bind(py), name.bind(py));
                return value.map_or(Reading::default(), |value| known.read_wrapped(&value, before));
            }
            Self::Class { class, name } => class_attribute(class.bind(py), name.bind(py)),
            Self::Cell(cell) => cell_contents(cell.bind(py)),
            Self::Local { code, name } => match running.local(py, code, name) {
                // Another function runs: the local is as it was.
                None => return *before,
                Some(value) => value,
            },
        };
        value.map_or(Reading::default(), |value| known.read(&value, before))
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
        Some(frames::local(&frame, &name.to_string_lossy()))
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

fn cell_contents<'py>(cell: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a cell; a new reference or null.
    unsafe { Bound::from_owned_ptr_or_opt(cell.py(), symbols::cell_get()?(cell.as_ptr())) }
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
        return cache_dict(object);
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

/// The dict inside an `lru_cache` wrapper: of the dicts it refers to, the one that is not its `__dict__`.
fn cache_dict<'py>(wrapper: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = wrapper.py();
    let attributes = wrapper.getattr(intern!(py, "__dict__")).ok()?;
    let mut heap = crate::heap::Heap::new(py);
    let mut found = None;
    let dict_type = &raw mut ffi::PyDict_Type;
    heap.referents(wrapper.as_ptr() as Address, &mut |referent| {
        // SAFETY: the wrapper, which is alive, refers to it.
        let referent_type = unsafe { ffi::Py_TYPE(referent as *mut ffi::PyObject) };
        if referent_type == dict_type && referent != attributes.as_ptr() as Address {
            found = Some(referent);
        }
    });
    found.map(|found| heap.own(found))
}
