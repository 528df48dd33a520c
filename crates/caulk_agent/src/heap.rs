//! Reading the interpreter's heap: every object that the collector knows, what an object refers to, what a type is.
//!
//! Only C-level slots are used (`tp_traverse`, sizes of built-in types): no attribute look-ups on instances, no
//! `__len__`, no `__repr__`. Everything here needs the GIL and lets no Python code run in between, so that borrowed
//! pointers stay valid for the length of one call.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::os::raw::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::symbols;

/// Address of an object: compared and looked up, dereferenced only within the call that found it.
pub(crate) type Address = usize;

/// Hashes addresses: they are unique and aligned, so one multiplication spreads them well enough.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4); the rotation brings the well-mixed high bits down.
        self.0 = (self.0 ^ (value >> 4)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

pub(crate) type AddressMap<V> = HashMap<Address, V, BuildHasherDefault<AddressHasher>>;
pub(crate) type AddressSet = std::collections::HashSet<Address, BuildHasherDefault<AddressHasher>>;

/// What caulk makes of an object, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    List,
    Dict,
    Set,
    Deque,
    Buffer,
    Tuple,
    Tensor,
    Array,
    Module,
    Type,
    Frame,
    Function,
    Code,
    Exception,
    LruCache,
    /// Anything else.
    Plain,
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
struct KnownTypes {
    deque: Address,
    array: Address,
    lru_cache: Address,
    tensor: Address,
    ndarray: Address,
    frame: Address,
    code: Address,
    function: Address,
}

/// A view of the heap for the length of one call.
pub(crate) struct Heap<'py> {
    pub(crate) py: Python<'py>,
    types: AddressMap<TypeInfo>,
    known: KnownTypes,
    /// `type.__basicsize__` and `type.__itemsize__`, read without running a metaclass's code.
    basic_size: Option<Bound<'py, PyAny>>,
    item_size: Option<Bound<'py, PyAny>>,
}

impl<'py> Heap<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        let type_type = py.get_type::<pyo3::types::PyType>();
        let slot = |name: &str| type_type.getattr("__dict__").and_then(|dict| dict.get_item(name)).ok();
        Self {
            py,
            types: AddressMap::default(),
            known: known_types(py),
            basic_size: slot("__basicsize__"),
            item_size: slot("__itemsize__"),
        }
    }

    /// Address of `numpy.ndarray`; 0 where the program has not loaded numpy.
    pub(crate) fn ndarray(&self) -> Address {
        self.known.ndarray
    }

    /// Is it exactly a Python function, whose attributes are C-level?
    pub(crate) fn is_function(&self, object: &Bound<'py, PyAny>) -> bool {
        self.known.function != 0 && object.get_type().as_ptr() as Address == self.known.function
    }

    /// Facts of the object's type.
    pub(crate) fn type_of(&mut self, object: Address) -> TypeInfo {
        // SAFETY: `object` is alive: the GIL is held and no Python code has run since it was found.
        let object_type = unsafe { ffi::Py_TYPE(object as *mut ffi::PyObject) };
        if let Some(info) = self.types.get(&(object_type as Address)) {
            return *info;
        }
        let info = self.inspect(object_type);
        self.types.insert(object_type as Address, info);
        info
    }

    fn inspect(&self, object_type: *mut ffi::PyTypeObject) -> TypeInfo {
        // SAFETY: a live object's type is alive.
        let flags = unsafe { ffi::PyType_GetFlags(object_type) };
        let collected = flags & ffi::Py_TPFLAGS_HAVE_GC != 0;
        // SAFETY: as above; the slot exists for static and heap types from 3.10 on.
        let traverse = unsafe { ffi::PyType_GetSlot(object_type, ffi::Py_tp_traverse) };
        // SAFETY: the slot's documented type; null is `None`.
        let traverse = unsafe { std::mem::transmute::<*mut c_void, Option<ffi::traverseproc>>(traverse) }
            .filter(|_| collected);
        TypeInfo {
            shape: self.shape(object_type, flags as u64),
            traverse,
            basic_size: self.type_size(self.basic_size.as_ref(), object_type),
            item_size: self.type_size(self.item_size.as_ref(), object_type),
            collected,
            instance: flags & ffi::Py_TPFLAGS_HEAPTYPE != 0,
        }
    }

    fn shape(&self, object_type: *mut ffi::PyTypeObject, flags: u64) -> Shape {
        // Bits of `tp_flags` for subclasses of built-in types: CPython, Include/object.h, stable since 3.0.
        const BY_FLAG: [(u32, Shape); 5] = [
            (25, Shape::List),
            (26, Shape::Tuple),
            (29, Shape::Dict),
            (30, Shape::Exception),
            (31, Shape::Type),
        ];
        if let Some((_, shape)) = BY_FLAG.iter().find(|(bit, _)| flags & (1 << bit) != 0) {
            return *shape;
        }
        let known = &self.known;
        let by_type = [
            (known.deque, Shape::Deque),
            (known.tensor, Shape::Tensor),
            (known.ndarray, Shape::Array),
            (known.array, Shape::Buffer),
            (known.lru_cache, Shape::LruCache),
            (known.frame, Shape::Frame),
            (known.code, Shape::Code),
            (known.function, Shape::Function),
            (&raw mut ffi::PySet_Type as Address, Shape::Set),
            (&raw mut ffi::PyByteArray_Type as Address, Shape::Buffer),
            (&raw mut ffi::PyModule_Type as Address, Shape::Module),
        ];
        let found = by_type.iter().find(|(base, _)| {
            // SAFETY: both are live type objects.
            *base != 0 && unsafe { ffi::PyType_IsSubtype(object_type, *base as *mut ffi::PyTypeObject) } != 0
        });
        found.map_or(Shape::Plain, |(_, shape)| *shape)
    }

    fn type_size(
        &self,
        descriptor: Option<&Bound<'py, PyAny>>,
        object_type: *mut ffi::PyTypeObject,
    ) -> usize {
        // SAFETY: a live type; the new reference is dropped at the end of this function.
        let object = unsafe { Bound::from_borrowed_ptr(self.py, object_type.cast()) };
        let size = descriptor.and_then(|slot| slot.call_method1("__get__", (object,)).ok());
        size.and_then(|size| size.extract().ok()).unwrap_or(0)
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
            Shape::List | Shape::Deque => length * 8,
            // A dict's table: 8-byte hash, key and value for two thirds of its slots, and an index of one to four bytes.
            Shape::Dict => (length.max(5).next_power_of_two() * 3 / 2) * 24,
            Shape::Set => length.max(8).next_power_of_two() * 2 * 16,
            Shape::Buffer => length,
            _ => 0,
        };
        header + info.basic_size + info.item_size * Self::items(object, info) + beside
    }

    fn items(object: Address, info: TypeInfo) -> usize {
        if info.item_size == 0
            || matches!(info.shape, Shape::List | Shape::Deque | Shape::Buffer | Shape::Type)
        {
            return 0;
        }
        // `ob_size` follows the two words of every object. Ints keep their sign in it (3.11 and before) or a tag in its
        // low bits (3.12 on), hence the clamp; `Py_SIZE` refuses them.
        let size = read_word(object + 2 * size_of::<Address>()) as isize;
        size.unsigned_abs().min(1 << 20)
    }

    /// Calls `visit` with every object that `object` refers to, as the collector would.
    pub(crate) fn referents(&mut self, object: Address, visit: &mut dyn FnMut(Address)) {
        let info = self.type_of(object);
        self.referents_of(object, info, visit);
    }

    /// As [`Self::referents`], for an object whose type was looked up.
    #[expect(clippy::unused_self, reason = "reads the object, which only a heap's holder may do")]
    pub(crate) fn referents_of(&self, object: Address, info: TypeInfo, visit: &mut dyn FnMut(Address)) {
        let Some(traverse) = info.traverse else { return };
        // Static types are no objects of the collector (`type_is_gc`), and their traversal aborts.
        if info.shape == Shape::Type && !is_heap_type(object) {
            return;
        }
        let mut visit = visit;
        // SAFETY: `traverse` is the type's own slot; `forward` gets the closure back through its argument.
        unsafe { traverse(object as *mut ffi::PyObject, forward, (&raw mut visit).cast()) };
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
        let type_type = self.py.get_type::<pyo3::types::PyType>();
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

    /// An owned reference to an object found in this call.
    pub(crate) fn own(&self, object: Address) -> Bound<'py, PyAny> {
        // SAFETY: `object` is alive: the GIL is held and no Python code has run since it was found.
        unsafe { Bound::from_borrowed_ptr(self.py, object as *mut ffi::PyObject) }
    }

    /// Reference count; immortal objects have a very large one.
    pub(crate) fn references(object: Address) -> usize {
        // SAFETY: `object` is alive; the count is the first word, of which 3.14 uses the lower half.
        let word = unsafe { *(object as *const u64) };
        (word & 0xffff_ffff) as usize
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

unsafe extern "C" fn forward(object: *mut ffi::PyObject, closure: *mut c_void) -> c_int {
    // SAFETY: `referents` passes a pointer to its `&mut dyn FnMut` that outlives the traversal.
    let visit = unsafe { &mut *closure.cast::<&mut dyn FnMut(Address)>() };
    // A panic must not unwind into the type's traversal; a non-zero answer ends it.
    NonNull::new(object).map_or(0, |object| {
        let visited = catch_unwind(AssertUnwindSafe(|| visit(object.as_ptr() as Address)));
        c_int::from(visited.is_err())
    })
}

fn known_types(py: Python<'_>) -> KnownTypes {
    let find = |module: &str, name: &str| -> Address {
        loaded(py, module)
            .and_then(|module| member(&module, name))
            .map_or(0, |found| found.as_ptr() as Address)
    };
    KnownTypes {
        deque: find("_collections", "deque").max(find("collections", "deque")),
        array: find("array", "array"),
        lru_cache: find("functools", "_lru_cache_wrapper"),
        tensor: find("torch", "Tensor"),
        ndarray: find("numpy", "ndarray"),
        frame: find("types", "FrameType"),
        code: find("types", "CodeType"),
        function: find("types", "FunctionType"),
    }
}

/// A module that the program has loaded; never imports.
pub(crate) fn loaded<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    // SAFETY: `PyImport_GetModuleDict` returns a borrowed reference to `sys.modules` or null.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) }?;
    let modules = modules.cast_into::<pyo3::types::PyDict>().ok()?;
    modules.get_item(name).ok()?.filter(PyAnyMethods::is_instance_of::<PyModule>)
}

/// A name in a module's namespace; never runs a module's `__getattr__`.
pub(crate) fn member<'py>(module: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    module.cast::<PyModule>().ok()?.dict().get_item(name).ok()?
}

/// Is the object's type this class or derived from it? Asks the types, never `__class__` or `__instancecheck__`.
pub(crate) fn is_a(object: &Bound<'_, PyAny>, class: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type of a live object; `class` is checked to be a type.
    class.is_instance_of::<pyo3::types::PyType>()
        && unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(object.as_ptr()), class.as_ptr().cast()) } != 0
}

/// Visits every object that the collector tracks, in no particular order; stops when `visit` returns false.
///
/// Returns false where this interpreter offers no safe way; then there is no census.
pub(crate) fn visit_tracked(py: Python<'_>, visit: &mut dyn FnMut(Address) -> bool) -> bool {
    if let Some(visit_objects) = symbols::gc_visit_objects() {
        let mut visit = visit;
        // SAFETY: the function's documented contract: the callback must not run Python code, and does not.
        unsafe { visit_objects(forward_while, (&raw mut visit).cast()) };
        return true;
    }
    let Some(generations) = Generations::find(py) else { return false };
    generations.visit(visit)
}

unsafe extern "C" fn forward_while(object: *mut ffi::PyObject, closure: *mut c_void) -> c_int {
    // SAFETY: `visit_tracked` passes a pointer to its `&mut dyn FnMut` that outlives the walk.
    let visit = unsafe { &mut *closure.cast::<&mut dyn FnMut(Address) -> bool>() };
    // A panic must not unwind into the collector.
    let proceed = catch_unwind(AssertUnwindSafe(|| visit(object as Address)));
    c_int::from(proceed.unwrap_or(false))
}

/// The collector's lists of CPython 3.10 and 3.11, found without knowing where the interpreter keeps them.
///
/// A new object is appended to the youngest generation, so the link after it is that list's head; the heads of the
/// generations lie beside each other in an array of `struct gc_generation { PyGC_Head head; int threshold; int count; }`
/// (CPython, `pycore_gc.h`, 3.8 to 3.11). The count of objects is held against `gc.get_objects()` once.
struct Generations {
    heads: [Address; 3],
}

/// `sizeof(PyGC_Head)`: the links before an object.
const LINKS: usize = 16;
/// `sizeof(struct gc_generation)`.
const GENERATION: usize = LINKS + 8;

impl Generations {
    fn find(py: Python<'_>) -> Option<Self> {
        static SOUND: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        let version = py.version_info();
        if (version.major, version.minor) >= (3, 12) || SOUND.get() == Some(&false) {
            return None;
        }
        // SAFETY: makes a tracked list; null is handled below.
        let fresh = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyList_New(0)) }?;
        let young = read_word(fresh.as_ptr() as Address - LINKS);
        let generations = Self { heads: [young, young + GENERATION, young + 2 * GENERATION] };
        let sound = *SOUND.get_or_init(|| generations.agrees_with_collector(py).unwrap_or(false));
        sound.then_some(generations)
    }

    fn agrees_with_collector(&self, py: Python<'_>) -> Option<bool> {
        let listed = loaded(py, "gc").or_else(|| py.import("gc").ok().map(Bound::into_any))?;
        let expected = listed.call_method0("get_objects").ok()?.len().ok()?;
        let mut counted = 0_usize;
        // A wrong guess of the heads would not close the ring: twice the expected number is proof enough.
        let closed = self.visit(&mut |_| {
            counted += 1;
            counted < 2 * expected
        });
        Some(closed && counted.abs_diff(expected) <= expected / 100 + 16)
    }

    fn visit(&self, visit: &mut dyn FnMut(Address) -> bool) -> bool {
        for head in self.heads {
            let mut links = read_word(head);
            while links != head {
                if links == 0 || !visit(links + LINKS) {
                    return false;
                }
                links = read_word(links);
            }
        }
        true
    }
}

fn read_word(address: Address) -> Address {
    // SAFETY: callers follow the collector's own links, which are never null or unaligned outside of a collection.
    unsafe { *(address as *const Address) }
}
