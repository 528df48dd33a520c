//! What is watched: a container's length, or the value of a name that is bound anew, read without running user code.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::heap::{Address, loaded, member};
use crate::torch::Torch;

/// Something whose growth an armed trace looks for.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Number of the container in this process.
    pub(crate) id: u32,
    /// What to look at.
    pub(crate) target: Target,
    /// Names by which source code may mention it, as [`crate::label::mentioned_as`] tells them.
    pub(crate) names: Vec<String>,
    /// Module, or qualified type, that defines the holder: its code is looked at first, also if it is not the user's.
    /// Empty where it is not known.
    pub(crate) home: String,
    /// It is reached from a running function of the user's: no name of its own leads to it from a library.
    pub(crate) is_local: bool,
    /// It is the head of a chain: another object of its type in its place is one more link.
    pub(crate) links: bool,
}

impl Watch {
    /// Is it an object, and not a name that is bound anew?
    pub(super) fn is_object(&self) -> bool {
        matches!(self.target, Target::Object(_))
    }
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
    pub(super) value_type: Address,
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
pub(super) enum Measure {
    /// Not at all: growth cannot be told.
    #[default]
    None,
    List,
    Dict,
    Set,
    /// `ob_size`: tuple, deque, bytearray, `array.array`.
    Size,
    Text,
    /// `qsize()` of a `queue.SimpleQueue`.
    Queue,
    Tensor,
    Array,
    /// A tensor whose class may run user code: only its identity is used.
    Identity,
}

impl Reading {
    /// Is it another object of this type than before: one more link of a chain?
    pub(super) fn links_to(&self, before: &Self, link_type: Address) -> bool {
        self.value != before.value && self.value_type == link_type && self.value != 0
    }

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
    simple_queue: Address,
    ndarray: Address,
    pub(super) tensor: Address,
    pub(super) parameter: Address,
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
            simple_queue: address("_queue", "SimpleQueue"),
            ndarray: address("numpy", "ndarray"),
            tensor: address("torch", "Tensor"),
            parameter: address("torch.nn.parameter", "Parameter"),
            modes: find("torch._C", "_len_torch_function_stack").map(Bound::unbind),
        }
    }

    pub(super) fn measure_of(&self, value_type: *mut ffi::PyTypeObject) -> Measure {
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
            (self.simple_queue, Measure::Queue),
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
    pub(super) fn read(&self, value: &Bound<'_, PyAny>, before: &Reading) -> Reading {
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
            Measure::Queue => waiting_in(value),
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
    pub(super) fn read_wrapped(&self, value: &Bound<'_, PyAny>, before: &Reading) -> Reading {
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
        let _overrides_off = self.overrides_off(py);
        reading.version = number(tensor, intern!(py, "_version")).max(0) as u64;
        let same = (before.value, before.value_type, before.version)
            == (reading.value, reading.value_type, reading.version);
        if same {
            return *before;
        }
        reading.graph = Torch::grad_fn(tensor).is_some();
        reading.size = Torch::view_bytes(tensor);
        reading
    }

    /// Switches the program's modes off, where some are active: they would see every attribute that is read.
    pub(super) fn overrides_off<'py>(&self, py: Python<'py>) -> Option<Torch<'py>> {
        let depth = self.modes.as_ref()?.bind(py).call0().and_then(|depth| depth.extract::<usize>());
        if depth.is_ok_and(|depth| depth > 0) { Torch::new(py) } else { None }
    }
}

/// Elements of an exact `queue.SimpleQueue`.
fn waiting_in(queue: &Bound<'_, PyAny>) -> isize {
    let count = queue.call_method0(intern!(queue.py(), "qsize"));
    count.and_then(|count| count.extract()).unwrap_or(0)
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
