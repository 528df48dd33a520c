//! What caulk makes of an object by its type, read without calling anything.
//!
//! Facts are read from the type's flags, slots and two size fields, so that a walk over the heap that meets a new type
//! neither makes objects nor calls Python: addresses are held meanwhile.

use std::os::raw::{c_int, c_void};
use std::sync::OnceLock;

use caulk_wire::ContainerKind;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple, PyType};

use super::{Address, loaded, member, read_word};
use crate::symbols;

/// What caulk makes of an object, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    List,
    Dict,
    Set,
    Deque,
    /// `bytearray`.
    Buffer,
    /// `array.array`.
    Items,
    /// `queue.SimpleQueue`, whose elements are its own from 3.13 on; before, they are in a list of its.
    SimpleQueue,
    Tuple,
    Text,
    Bytes,
    Tensor,
    Array,
    Module,
    Type,
    Frame,
    /// Coroutines and asynchronous generators as well.
    Generator,
    Function,
    Code,
    Exception,
    LruCache,
    /// An iterator of `itertools.tee`.
    Tee,
    /// What iterators of one `itertools.tee` have still to read.
    TeeBlock,
    /// `io.BytesIO`.
    Stream,
    /// `io.StringIO`.
    TextStream,
    /// A mapping, an array or structure of ctypes: a handle of memory beside it.
    Exporter,
    /// Anything else.
    Plain,
}

impl Shape {
    /// What reports call a container of this shape.
    pub(crate) fn kind(self) -> ContainerKind {
        match self {
            Self::Dict => ContainerKind::Dict,
            Self::Set => ContainerKind::Set,
            Self::Deque => ContainerKind::Deque,
            Self::SimpleQueue | Self::Tee => ContainerKind::Queue,
            Self::Buffer | Self::Items => ContainerKind::Buffer,
            _ => ContainerKind::List,
        }
    }
}

/// Facts of a type, read once per walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeInfo {
    pub(crate) shape: Shape,
    pub(crate) traverse: Option<ffi::traverseproc>,
    pub(crate) basic_size: usize,
    pub(crate) item_size: usize,
    pub(crate) collected: bool,
    /// Made by a `class` statement (or a heap type of an extension): may have attributes.
    pub(crate) instance: bool,
}

/// Types whose identity matters, where the program has loaded them.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct KnownTypes {
    deque: Address,
    array: Address,
    simple_queue: Address,
    lru_cache: Address,
    tee: Address,
    pub(super) tee_block: Address,
    streams: [Address; 2],
    exporters: [Address; 3],
    pub(super) tensor: Address,
    pub(super) parameter: Address,
    pub(super) ndarray: Address,
    frame: Address,
    generators: [Address; 3],
    code: Address,
    pub(super) function: Address,
}

impl KnownTypes {
    pub(super) fn find(py: Python<'_>) -> Self {
        let find = |module: &str, name: &str| -> Address {
            loaded(py, module)
                .and_then(|module| member(&module, name))
                .map_or(0, |found| found.as_ptr() as Address)
        };
        let address = |found: Option<*mut ffi::PyTypeObject>| found.map_or(0, |found| found as Address);
        Self {
            deque: find("_collections", "deque").max(find("collections", "deque")),
            array: find("array", "array"),
            simple_queue: find("_queue", "SimpleQueue"),
            lru_cache: find("functools", "_lru_cache_wrapper"),
            tee: find("itertools", "_tee"),
            tee_block: find("itertools", "_tee_dataobject"),
            streams: ["BytesIO", "StringIO"].map(|name| find("_io", name)),
            exporters: [("mmap", "mmap"), ("_ctypes", "Array"), ("_ctypes", "Structure")]
                .map(|(module, name)| find(module, name)),
            tensor: find("torch", "Tensor"),
            parameter: find("torch.nn.parameter", "Parameter"),
            ndarray: find("numpy", "ndarray"),
            frame: address(symbols::frame_type()),
            generators: [
                symbols::generator_type(),
                symbols::coroutine_type(),
                symbols::async_generator_type(),
            ]
            .map(address),
            code: address(symbols::code_type()),
            function: address(symbols::function_type()),
        }
    }

    /// Facts of a type.
    pub(super) fn inspect(&self, object_type: *mut ffi::PyTypeObject) -> TypeInfo {
        // SAFETY: a live object's type is alive.
        let flags = unsafe { ffi::PyType_GetFlags(object_type) };
        let collected = flags & ffi::Py_TPFLAGS_HAVE_GC != 0;
        let traverse = traversal(object_type).filter(|_| collected);
        let (basic_size, item_size) = sizes(object_type as Address);
        TypeInfo {
            shape: self.shape(object_type, flags as u64),
            traverse,
            basic_size,
            item_size,
            collected,
            instance: flags & ffi::Py_TPFLAGS_HEAPTYPE != 0,
        }
    }

    fn shape(&self, object_type: *mut ffi::PyTypeObject, flags: u64) -> Shape {
        // Bits of `tp_flags` for subclasses of built-in types: CPython, Include/object.h, stable since 3.0.
        const BY_FLAG: [(u32, Shape); 7] = [
            (25, Shape::List),
            (26, Shape::Tuple),
            (27, Shape::Bytes),
            (28, Shape::Text),
            (29, Shape::Dict),
            (30, Shape::Exception),
            (31, Shape::Type),
        ];
        if let Some((_, shape)) = BY_FLAG.iter().find(|(bit, _)| flags & (1 << bit) != 0) {
            return *shape;
        }
        let by_type = [
            (self.deque, Shape::Deque),
            (self.tensor, Shape::Tensor),
            (self.ndarray, Shape::Array),
            (self.array, Shape::Items),
            (self.lru_cache, Shape::LruCache),
            (self.tee, Shape::Tee),
            (self.tee_block, Shape::TeeBlock),
            (self.frame, Shape::Frame),
            (self.generators[0], Shape::Generator),
            (self.generators[1], Shape::Generator),
            (self.generators[2], Shape::Generator),
            (self.code, Shape::Code),
            (self.function, Shape::Function),
            (&raw mut ffi::PySet_Type as Address, Shape::Set),
            (&raw mut ffi::PyByteArray_Type as Address, Shape::Buffer),
            (&raw mut ffi::PyModule_Type as Address, Shape::Module),
        ];
        let found = by_type.iter().find(|(base, _)| {
            // SAFETY: both are live type objects.
            *base != 0 && unsafe { ffi::PyType_IsSubtype(object_type, *base as *mut ffi::PyTypeObject) } != 0
        });
        match found {
            Some((_, shape)) => *shape,
            // A class of the user's may have methods of its own.
            None if object_type as Address == self.streams[0] => Shape::Stream,
            None if object_type as Address == self.streams[1] => Shape::TextStream,
            None if object_type as Address == self.simple_queue => Shape::SimpleQueue,
            None if self.exports(object_type) => Shape::Exporter,
            None => Shape::Plain,
        }
    }

    /// Does it hand out memory by the library's own function, and not by one of a class of the user's?
    fn exports(&self, object_type: *mut ffi::PyTypeObject) -> bool {
        /// `Py_bf_getbuffer` (Include/typeslots.h).
        const GET_BUFFER: c_int = 1;
        // SAFETY: a live type; the slot exists in all versions from 3.10 on.
        let slot = |of: *mut ffi::PyTypeObject| unsafe { ffi::PyType_GetSlot(of, GET_BUFFER) };
        self.exporters.iter().any(|base| {
            let base = *base as *mut ffi::PyTypeObject;
            // SAFETY: both are live type objects.
            !base.is_null()
                && unsafe { ffi::PyType_IsSubtype(object_type, base) } != 0
                && slot(object_type) == slot(base)
        })
    }
}

/// `tp_traverse` of a live type.
pub(super) fn traversal(object_type: *mut ffi::PyTypeObject) -> Option<ffi::traverseproc> {
    // SAFETY: the slot exists for static and heap types from 3.10 on.
    let slot = unsafe { ffi::PyType_GetSlot(object_type, ffi::Py_tp_traverse) };
    // SAFETY: the slot's documented type; null is `None`.
    unsafe { std::mem::transmute::<*mut c_void, Option<ffi::traverseproc>>(slot) }
}

/// Byte offsets of `tp_basicsize` and `tp_itemsize` in `PyTypeObject` (CPython, Include/cpython/object.h; 64-bit).
const BASIC_SIZE: usize = 32;
const ITEM_SIZE: usize = 40;

/// Whether these offsets hold here.
static SIZES_KNOWN: OnceLock<bool> = OnceLock::new();

/// `tp_basicsize` and `tp_itemsize`; zeros where their place is not known.
fn sizes(object_type: Address) -> (usize, usize) {
    if SIZES_KNOWN.get() == Some(&true) {
        (read_word(object_type + BASIC_SIZE), read_word(object_type + ITEM_SIZE))
    } else {
        (0, 0)
    }
}

/// Holds the offsets against what the interpreter says of some types, once.
pub(super) fn check_sizes(py: Python<'_>) {
    SIZES_KNOWN.get_or_init(|| {
        let known = [
            py.get_type::<PyInt>(),
            py.get_type::<PyList>(),
            py.get_type::<PyTuple>(),
            py.get_type::<PyDict>(),
            py.get_type::<PyType>(),
        ];
        let agrees = |object_type: &Bound<'_, PyType>, name: &str, offset: usize| {
            let told = object_type.getattr(name).and_then(|size| size.extract::<usize>());
            told.is_ok_and(|told| told == read_word(object_type.as_ptr() as Address + offset))
        };
        known
            .iter()
            .all(|each| agrees(each, "__basicsize__", BASIC_SIZE) && agrees(each, "__itemsize__", ITEM_SIZE))
    });
}
