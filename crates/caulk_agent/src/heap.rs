//! Reading the interpreter's heap: every object that the collector knows, what an object refers to, what a type is.
//!
//! Only C-level slots are used (`tp_traverse`, sizes of built-in types): no attribute look-ups on instances, no
//! `__len__`, no `__repr__`. Walking makes no objects and calls nothing, so that addresses stay good until it is over;
//! what is looked into afterwards is kept alive first ([`Heap::keep`], [`Heap::own`]), since any call may let another
//! thread run.

use std::os::raw::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

mod address_types;
mod addresses;
mod collector;
mod entries;
mod lookahead;
mod modules;
mod references;
mod types;

pub(crate) use address_types::AddressTypes;
pub(crate) use addresses::{Address, AddressMap, AddressSet, read_word};
pub(crate) use collector::{is_forked, try_lists, visit_in_order, visit_tracked, write_no_more};
pub(crate) use entries::{Entries, item};
pub(crate) use lookahead::Lookahead;
pub(crate) use modules::{loaded, member, modules};
pub(crate) use types::{Shape, TypeInfo};

use types::KnownTypes;

/// References of one object that are visited: the rest of a list of millions is left out.
pub(crate) const MOST_REFERENTS: usize = 200_000;

/// The same of a cache with a bound, three for each of its entries: some milliseconds.
const MOST_OF_CACHE: usize = 1_000_000;

/// What a class may refer to before its namespace: its metaclass, and what that gives it.
const MOST_BEFORE_NAMESPACE: usize = 8;

/// Variables of a frame or generator, with its value stack: what most functions have.
const VARIABLES: usize = 8;

/// A view of the heap for the length of one call.
pub(crate) struct Heap<'py> {
    pub(crate) py: Python<'py>,
    types: AddressMap<TypeInfo>,
    known: KnownTypes,
    kept: AddressMap<Bound<'py, PyAny>>,
}

impl<'py> Heap<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        types::check_sizes(py);
        Self { py, types: AddressMap::default(), known: KnownTypes::find(py), kept: AddressMap::default() }
    }

    /// Address of `numpy.ndarray`; 0 where the program has not loaded numpy.
    pub(crate) fn ndarray(&self) -> Address {
        self.known.ndarray
    }

    /// Address of the type of the blocks which `itertools.tee` fills.
    pub(crate) fn tee_block(&self) -> Option<Address> {
        Some(self.known.tee_block).filter(|known| *known != 0)
    }

    /// Is it exactly a Python function, whose attributes are C-level?
    pub(crate) fn is_function(&self, object: &Bound<'py, PyAny>) -> bool {
        self.known.function != 0 && object.get_type().as_ptr() as Address == self.known.function
    }

    /// Is it a tensor whose attributes are C++ alone, as long as torch's overrides are off? A subclass may run user code.
    pub(crate) fn is_plain_tensor(&self, object: &Bound<'py, PyAny>) -> bool {
        let object_type = object.get_type_ptr() as Address;
        self.known.tensor != 0 && [self.known.tensor, self.known.parameter].contains(&object_type)
    }

    /// Facts of the object's type.
    pub(crate) fn type_of(&mut self, object: Address) -> TypeInfo {
        // SAFETY: `object` is alive: the GIL is held and no Python code has run since it was found.
        let object_type = unsafe { ffi::Py_TYPE(object as *mut ffi::PyObject) };
        if let Some(info) = self.types.get(&(object_type as Address)) {
            return *info;
        }
        let info = self.known.inspect(object_type);
        self.types.insert(object_type as Address, info);
        info
    }

    /// Elements of a container, or bytes of a buffer; `None` for other shapes.
    pub(crate) fn length(&mut self, object: Address) -> Option<usize> {
        Self::length_of(object, self.type_of(object).shape)
    }

    /// As [`Self::length`], for an object whose shape is known.
    pub(crate) fn length_of(object: Address, shape: Shape) -> Option<usize> {
        let pointer = object as *mut ffi::PyObject;
        let length = match shape {
            // SAFETY: variable-size objects whose `ob_size` is the number of elements or bytes, subclasses included.
            Shape::List | Shape::Deque | Shape::Tuple | Shape::Buffer => unsafe { ffi::Py_SIZE(pointer) },
            // SAFETY: a dict or a subclass; reads a field.
            Shape::Dict => unsafe { ffi::PyDict_Size(pointer) },
            // SAFETY: a set or a subclass; reads a field.
            Shape::Set => unsafe { ffi::PySet_Size(pointer) },
            // SAFETY: as for a list.
            Shape::Items => unsafe { ffi::Py_SIZE(pointer) }.saturating_mul(item_bytes(object)),
            Shape::SimpleQueue => return Some(held_by(object)),
            _ => return None,
        };
        usize::try_from(length).ok()
    }

    /// Shallow bytes, by `tp_basicsize`, `tp_itemsize` and what built-in containers allocate beside themselves.
    pub(crate) fn shallow_bytes(&mut self, object: Address) -> usize {
        let info = self.type_of(object);
        self.shallow_bytes_of(object, info)
    }

    /// As [`Self::shallow_bytes`], for an object whose type was looked up.
    #[expect(clippy::unused_self, reason = "reads the object, which only a heap's holder may do")]
    pub(crate) fn shallow_bytes_of(&self, object: Address, info: TypeInfo) -> usize {
        let header = if info.collected { 16 } else { 0 };
        let length = Self::length_of(object, info.shape).unwrap_or(0);
        let beside = match info.shape {
            Shape::List | Shape::Deque | Shape::SimpleQueue => length * 8,
            // A dict's table: 8-byte hash, key and value for two thirds of its slots, and an index of one to four bytes.
            Shape::Dict => (length.max(5).next_power_of_two() * 3 / 2) * 24,
            Shape::Set => length.max(8).next_power_of_two() * 2 * 16,
            Shape::Buffer | Shape::Items => length,
            // One byte for each character: what is not Latin-1 takes two or four.
            // SAFETY: a string or a subclass; reads a field.
            Shape::Text => unsafe { ffi::PyUnicode_GetLength(object as *mut ffi::PyObject) }.unsigned_abs(),
            _ => 0,
        };
        header + info.basic_size + info.item_size * Self::items(object, info) + beside
    }

    fn items(object: Address, info: TypeInfo) -> usize {
        if info.item_size == 0
            || matches!(info.shape, Shape::List | Shape::Deque | Shape::Buffer | Shape::Items | Shape::Type)
        {
            return 0;
        }
        // Frames and generators have an item size for their variables and, from 3.11 on, no `ob_size`: another field is
        // in its place.
        if matches!(info.shape, Shape::Frame | Shape::Generator) {
            return VARIABLES * size_of::<Address>();
        }
        // `ob_size` follows the two words of every object. Ints keep their sign in it (3.11 and before) or a tag in its
        // low bits (3.12 on), and other types may have something else there, hence the clamp; `Py_SIZE` refuses ints.
        let size = (read_word(object + 2 * size_of::<Address>()) as isize).unsigned_abs();
        if matches!(info.shape, Shape::Tuple | Shape::Bytes) { size } else { size.min(1 << 20) }
    }

    /// Calls `visit` with every object that `object` refers to, as the collector would: the first [`MOST_REFERENTS`].
    pub(crate) fn referents(&mut self, object: Address, visit: &mut dyn FnMut(Address)) {
        let info = self.type_of(object);
        self.referents_of(object, info, visit);
    }

    /// As [`Self::referents`], for an object whose type was looked up.
    pub(crate) fn referents_of(&self, object: Address, info: TypeInfo, visit: &mut dyn FnMut(Address)) {
        self.first_referents_of(object, info, MOST_REFERENTS, visit);
    }

    #[expect(clippy::unused_self, reason = "reads the object, which only a heap's holder may do")]
    fn first_referents_of(
        &self,
        object: Address,
        info: TypeInfo,
        most: usize,
        visit: &mut dyn FnMut(Address),
    ) {
        let Some(traverse) = info.traverse else { return };
        // Static types are no objects of the collector (`type_is_gc`), and their traversal aborts.
        if info.shape == Shape::Type && !is_heap_type(object) {
            return;
        }
        let mut visit = Visit { visit, left: most };
        // SAFETY: `traverse` is the type's own slot; `forward` gets the visit back through its argument.
        unsafe { traverse(object as *mut ffi::PyObject, forward, (&raw mut visit).cast()) };
    }

    /// The dict in which a cache of `functools` keeps its results: the last one that it refers to but for its `__dict__`
    /// (Modules/_functoolsmodule.c, `lru_cache_tp_traverse`; a bounded cache's results, which may be dicts, come first).
    pub(crate) fn dict_of_cache(&self, wrapper: Address) -> Option<Address> {
        let attributes = namespace_of(&self.own(wrapper))?.as_ptr() as Address;
        let info = self.known.inspect(self.own(wrapper).get_type_ptr());
        let (mut found, mut visited) = (None, 0);
        self.first_referents_of(wrapper, info, MOST_OF_CACHE, &mut |referent| {
            visited += 1;
            if type_address(referent) == &raw mut ffi::PyDict_Type as Address && referent != attributes {
                found = Some(referent);
            }
        });
        found.filter(|_| visited < MOST_OF_CACHE)
    }

    /// What a class statement wrote down as the module that it is in: read from the namespace, which is the first dict that
    /// a class refers to (Objects/typeobject.c, `type_traverse`; `subtype_traverse` visits a metaclass before), without
    /// making any object.
    pub(crate) fn module_of_class(&self, class: Address) -> Option<Bound<'py, PyString>> {
        let info = self.known.inspect(self.own(class).get_type_ptr());
        let mut namespace = None;
        self.first_referents_of(class, info, MOST_BEFORE_NAMESPACE, &mut |referent| {
            let is_dict = type_address(referent) == &raw mut ffi::PyDict_Type as Address;
            namespace = namespace.or(is_dict.then_some(referent));
        });
        let namespace = self.own(namespace?).cast_into_exact::<PyDict>().ok()?;
        namespace.get_item(intern!(self.py, "__module__")).ok()??.cast_into_exact().ok()
    }

    /// Type of the object as `module.Qualified.Name`.
    pub(crate) fn type_name(&self, object: Address) -> String {
        // SAFETY: `object` is alive.
        let object_type = unsafe { ffi::Py_TYPE(object as *mut ffi::PyObject) };
        self.name_of_type(object_type as Address)
    }

    /// Name of a type as `module.Qualified.Name`, without `builtins.`.
    pub(crate) fn name_of_type(&self, object_type: Address) -> String {
        // SAFETY: the caller found the type alive in this call.
        let object: Bound<'py, PyAny> =
            unsafe { Bound::from_borrowed_ptr(self.py, object_type as *mut ffi::PyObject) };
        let type_type = self.py.get_type::<PyType>();
        let read = |name: &str| -> Option<String> {
            type_type
                .getattr("__dict__")
                .ok()?
                .get_item(name)
                .ok()?
                .call_method1("__get__", (&object,))
                .ok()?
                .extract()
                .ok()
        };
        let name = read("__qualname__").unwrap_or_else(|| "?".into());
        match read("__module__") {
            Some(module) if module != "builtins" => format!("{module}.{name}"),
            _ => name,
        }
    }

    /// An owned reference to an object whose address is still good.
    pub(crate) fn own(&self, object: Address) -> Bound<'py, PyAny> {
        // SAFETY: `object` is alive: nothing was called since it was found, or it has been kept since.
        unsafe { Bound::from_borrowed_ptr(self.py, object as *mut ffi::PyObject) }
    }

    /// Keeps objects alive as long as this view: their addresses stay good whatever is called.
    pub(crate) fn keep(&mut self, objects: impl IntoIterator<Item = Address>) {
        for object in objects {
            let owned = self.own(object);
            self.kept.entry(object).or_insert(owned);
        }
    }

    /// Owned references to objects whose addresses are still good: they stay so as long as the references are held.
    pub(crate) fn hold(&self, objects: impl IntoIterator<Item = Address>) -> Vec<Bound<'py, PyAny>> {
        objects.into_iter().map(|object| self.own(object)).collect()
    }
}

/// Address of an object's type.
pub(crate) fn type_address(object: Address) -> Address {
    // SAFETY: callers found the object alive, and no Python code has run since.
    unsafe { ffi::Py_TYPE(object as *mut ffi::PyObject) as Address }
}

fn is_heap_type(object: Address) -> bool {
    // SAFETY: a live type object, by its shape.
    let flags = unsafe { ffi::PyType_GetFlags(object as *mut ffi::PyTypeObject) };
    flags & ffi::Py_TPFLAGS_HEAPTYPE != 0
}

/// How many objects one refers to, but for its type: a `queue.SimpleQueue` knows its elements, and tells their number to a
/// call alone.
fn held_by(object: Address) -> usize {
    struct Held {
        object_type: *mut ffi::PyObject,
        count: usize,
    }
    unsafe extern "C" fn count(object: *mut ffi::PyObject, held: *mut c_void) -> c_int {
        // SAFETY: the traversal below passes a pointer to its `Held`.
        let held = unsafe { &mut *held.cast::<Held>() };
        held.count += usize::from(object != held.object_type);
        0
    }
    let object = object as *mut ffi::PyObject;
    // SAFETY: `object` is alive.
    let object_type = unsafe { ffi::Py_TYPE(object) };
    let mut held = Held { object_type: object_type.cast(), count: 0 };
    if let Some(traverse) = types::traversal(object_type) {
        // SAFETY: the type's own slot; `count` gets its `Held` back.
        unsafe { traverse(object, count, (&raw mut held).cast()) };
    }
    held.count
}

/// Who is told of an object's referents, and of how many more.
struct Visit<'a> {
    visit: &'a mut dyn FnMut(Address),
    left: usize,
}

unsafe extern "C" fn forward(object: *mut ffi::PyObject, closure: *mut c_void) -> c_int {
    // SAFETY: `referents` passes a pointer to its `Visit` that outlives the traversal.
    let closure = unsafe { &mut *closure.cast::<Visit<'_>>() };
    let Some(object) = NonNull::new(object) else { return 0 };
    // A panic must not unwind into the type's traversal; a non-zero answer ends it.
    let visited = catch_unwind(AssertUnwindSafe(|| (closure.visit)(object.as_ptr() as Address)));
    closure.left -= 1;
    c_int::from(visited.is_err() || closure.left == 0)
}

/// Is the object's type this class or derived from it? Asks the types, never `__class__` or `__instancecheck__`.
pub(crate) fn is_a(object: &Bound<'_, PyAny>, class: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type of a live object; `class` is checked to be a type.
    class.is_instance_of::<PyType>()
        && unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(object.as_ptr()), class.as_ptr().cast()) } != 0
}

/// Bytes of an item of an `array.array`, which keeps them in its fourth field's table (Modules/arraymodule.c,
/// `arrayobject.ob_descr->itemsize`); 1 where that does not look like one.
fn item_bytes(array: Address) -> isize {
    const TYPE_CODES: &[u8] = b"bBuwhHiIlLqQfd";
    let table = read_word(array + 5 * size_of::<Address>());
    if table == 0 {
        return 1;
    }
    let word = read_word(table).to_ne_bytes();
    let bytes = i32::from_ne_bytes([word[4], word[5], word[6], word[7]]);
    if TYPE_CODES.contains(&word[0]) && (1..=8).contains(&bytes) { bytes as isize } else { 1 }
}

/// The namespace of an instance, for objects on a path only: asking for it can materialise it for good.
pub(crate) fn namespace_of<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    if object.is_instance_of::<PyType>() || object.is_instance_of::<pyo3::types::PyCFunction>() {
        return None;
    }
    // SAFETY: the generic getter reads the instance's own dict without the type's `__getattribute__`.
    let pointer = unsafe { ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut()) };
    if pointer.is_null() {
        // SAFETY: clears the AttributeError of objects without a namespace.
        unsafe { ffi::PyErr_Clear() };
        return None;
    }
    // SAFETY: a new reference.
    unsafe { Bound::from_owned_ptr(object.py(), pointer) }.cast_into().ok()
}

/// A type's name without its module. Not by `str`, which lets handlers of signals run (CPython, `PyObject_Str`).
pub(crate) fn type_name(object_type: &Bound<'_, PyType>) -> String {
    object_type.name().map_or_else(|_| "?".into(), |name| name.to_string_lossy().into_owned())
}

/// What the cell of a closure's variable holds.
pub(crate) fn cell_contents<'py>(cell: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a cell; a new reference or null.
    unsafe { Bound::from_owned_ptr_or_opt(cell.py(), crate::symbols::cell_get()?(cell.as_ptr())) }
}
