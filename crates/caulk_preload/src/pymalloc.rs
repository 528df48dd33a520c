//! Small Python objects: they come out of pymalloc's pools, which malloc never sees.
//!
//! A sampled object is taken from malloc instead; pymalloc hands addresses that are not of its pools back to `free` and
//! `realloc` by itself. Only where the allocator is pymalloc and nothing else (`PYTHONMALLOC`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::ops::RangeInclusive;

use crate::local::local;
use crate::once::Once;
use crate::python::symbol;
use crate::{arenas, clock, real, sampler, state, sums};

/// Largest request that pymalloc serves from its pools, in bytes (Objects/obmalloc.c, `SMALL_REQUEST_THRESHOLD`).
const SMALL: usize = 512;

/// Sizes of strings of 1 to 100 ASCII characters, in bytes: longer ones are not cached (Objects/typeobject.c,
/// `MCACHE_MAX_ATTR_SIZE`; `PyASCIIObject` of 48 bytes, 40 from CPython 3.12 on).
const NAMES: RangeInclusive<usize> = 42..=149;
/// Addresses after which the places of that cache begin anew (`MCACHE_HASH_METHOD`: 4096 places, eight bytes each).
const CACHED: usize = 4096 * 8;

type Malloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Access = unsafe extern "C" fn(c_int, *mut Allocator);
type Calloc = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;

/// `PyMemAllocatorEx`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator {
    context: *mut c_void,
    malloc: Option<Malloc>,
    calloc: Option<Calloc>,
    realloc: *mut c_void,
    free: *mut c_void,
}

// SAFETY: functions and a context that belongs to the interpreter; only ever copied.
unsafe impl Send for Allocator {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

/// Domains of `PyMem_SetAllocator` (pymem.h): `PyMem_Malloc` and `PyObject_Malloc`.
const MEM: c_int = 1;
const OBJ: c_int = 2;

/// `PyObjectArenaAllocator`: where pymalloc's pools lie.
#[repr(C)]
#[derive(Clone, Copy)]
struct Arenas {
    context: *mut c_void,
    malloc: Option<Malloc>,
    free: Option<FreeArena>,
}

// SAFETY: as above.
unsafe impl Send for Arenas {}
// SAFETY: as above.
unsafe impl Sync for Arenas {}

type FreeArena = unsafe extern "C" fn(*mut c_void, *mut c_void, usize);
type AccessArenas = unsafe extern "C" fn(*mut Arenas);

static OLD_ARENAS: Once<Arenas> = Once::new();
static OLD_MEM: Once<Allocator> = Once::new();
static OLD_OBJ: Once<Allocator> = Once::new();

/// Samples small objects from now on; false where these are not pymalloc's. With the interpreter's lock held.
pub(crate) fn hook() -> bool {
    let found = (symbol(c"PyMem_GetAllocator"), symbol(c"PyMem_SetAllocator"));
    let (Some(get), Some(set)) = found else { return false };
    if OLD_OBJ.get().is_some() {
        // In a forked child: so it was in the parent.
        return true;
    }
    if !is_pymalloc() {
        return false;
    }
    // SAFETY: the symbols' types.
    let (get, set) =
        unsafe { (mem::transmute::<*mut c_void, Access>(get), mem::transmute::<*mut c_void, Access>(set)) };
    let hooks: [(c_int, &Once<Allocator>, Malloc, Calloc); 2] =
        [(MEM, &OLD_MEM, malloc_mem, calloc_mem), (OBJ, &OLD_OBJ, malloc_obj, calloc_obj)];
    for (domain, old, malloc, calloc) in hooks {
        let none = std::ptr::null_mut();
        let mut now = Allocator { context: none, malloc: None, calloc: None, realloc: none, free: none };
        // SAFETY: a valid domain and a place for its answer.
        unsafe { get(domain, &raw mut now) };
        if now.malloc.is_none() || now.calloc.is_none() || !old.set(now) {
            return false;
        }
        let mut hooked = Allocator { malloc: Some(malloc), calloc: Some(calloc), ..now };
        // SAFETY: functions that keep the contract of the domain; what they hand out is freed by the old ones.
        unsafe { set(domain, &raw mut hooked) };
    }
    true
}

/// Lets pools be mapped quietly from now on, as their objects are told of one by one, and counts them. False where they
/// cannot be told from other mappings. With the interpreter's lock held.
pub(crate) fn hook_arenas() -> bool {
    if OLD_ARENAS.get().is_some() {
        return true;
    }
    let found = (symbol(c"PyObject_GetArenaAllocator"), symbol(c"PyObject_SetArenaAllocator"));
    let (Some(get), Some(set)) = found else { return false };
    // SAFETY: the symbols' types.
    let (get, set) = unsafe {
        (mem::transmute::<*mut c_void, AccessArenas>(get), mem::transmute::<*mut c_void, AccessArenas>(set))
    };
    let none = std::ptr::null_mut();
    let mut now = Arenas { context: none, malloc: None, free: None };
    // SAFETY: a place for the answer.
    unsafe { get(&raw mut now) };
    if now.malloc.is_none() || !OLD_ARENAS.set(now) {
        return false;
    }
    let free = now.free.map(|_| free_arena as FreeArena);
    let mut hooked = Arenas { malloc: Some(malloc_arena), free, ..now };
    // SAFETY: hands on; what it returns is freed by the old one.
    unsafe { set(&raw mut hooked) };
    true
}

unsafe extern "C" fn malloc_arena(context: *mut c_void, size: usize) -> *mut c_void {
    let Some(next) = OLD_ARENAS.get().and_then(|old| old.malloc) else { return std::ptr::null_mut() };
    // SAFETY: this thread's own, for the length of a statement.
    unsafe { local().as_mut() }.quiet += 1;
    // SAFETY: handed on as it came.
    let arena = unsafe { next(context, size) };
    // SAFETY: as above.
    unsafe { local().as_mut() }.quiet -= 1;
    if !arena.is_null() {
        arenas::mapped(size);
        tell();
    }
    arena
}

unsafe extern "C" fn free_arena(context: *mut c_void, arena: *mut c_void, size: usize) {
    if let Some(next) = OLD_ARENAS.get().and_then(|old| old.free) {
        // SAFETY: handed on as it came.
        unsafe { next(context, arena, size) };
    }
    arenas::unmapped(size);
    tell();
}

/// Lets whoever reads the slot know.
fn tell() {
    if let Some(segment) = state::active() {
        segment.tell_arenas(arenas::bytes());
    }
}

fn is_pymalloc() -> bool {
    let Some(name) = symbol(c"_PyMem_GetCurrentAllocatorName") else { return false };
    // SAFETY: the symbol's type; returns a constant, or null.
    let name = unsafe { mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(name)() };
    // SAFETY: a string that ends with zero.
    !name.is_null() && unsafe { CStr::from_ptr(name) } == c"pymalloc"
}

/// A small object from malloc, where it is one to be sampled. The interpreter's lock is held: the clock strikes here.
fn sampled(size: usize) -> Option<*mut c_void> {
    let mut own = local();
    // SAFETY: this thread's own.
    let own = unsafe { own.as_mut() };
    if own.strikes > 0 {
        clock::strike(own);
    }
    if size > SMALL || own.inside > 0 || !sampler::due(size) {
        return None;
    }
    let block = in_malloc(size.max(1));
    sums::allocated(block);
    sampler::note(block, size.max(1), None);
    (!block.is_null()).then_some(block)
}

/// A block for an object that is taken out of pymalloc's pools.
///
/// Where it lies must not decide how long it lives. The interpreter keeps each string by which it looked an attribute up
/// last, in a place of its cache that the string's address chooses (`PyObject_GetAttrString` makes one anew each time, as
/// `torch.tensor` does). Pools hand the same few addresses out again, so that strings drive each other out;
/// at a new address each, the sampled ones would stay. All at one address of the cache do not.
fn in_malloc(size: usize) -> *mut c_void {
    if NAMES.contains(&size) && real::MEMALIGN.get() != 0 {
        // SAFETY: a power of two, and a size.
        unsafe { real::aligned(&real::MEMALIGN, CACHED, size) }
    } else {
        // SAFETY: a size; zero bytes are one, as pymalloc has it.
        unsafe { real::malloc(size) }
    }
}

/// # Safety
/// As `PyMemAllocatorEx.malloc`.
unsafe fn malloc(old: &Once<Allocator>, context: *mut c_void, size: usize) -> *mut c_void {
    if let Some(block) = sampled(size) {
        return block;
    }
    match old.get().and_then(|old| old.malloc) {
        // SAFETY: handed on as it came.
        Some(next) => unsafe { next(context, size) },
        None => std::ptr::null_mut(),
    }
}

/// # Safety
/// As `PyMemAllocatorEx.calloc`.
unsafe fn calloc(old: &Once<Allocator>, context: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let whole = count.saturating_mul(size);
    if let Some(block) = sampled(whole) {
        // SAFETY: as long as was asked for.
        unsafe { block.cast::<u8>().write_bytes(0, whole.max(1)) };
        return block;
    }
    match old.get().and_then(|old| old.calloc) {
        // SAFETY: handed on as it came.
        Some(next) => unsafe { next(context, count, size) },
        None => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn malloc_mem(context: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: our caller keeps the contract; so for the others.
    unsafe { malloc(&OLD_MEM, context, size) }
}

unsafe extern "C" fn malloc_obj(context: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: see above.
    unsafe { malloc(&OLD_OBJ, context, size) }
}

unsafe extern "C" fn calloc_mem(context: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: see above.
    unsafe { calloc(&OLD_MEM, context, count, size) }
}

unsafe extern "C" fn calloc_obj(context: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: see above.
    unsafe { calloc(&OLD_OBJ, context, count, size) }
}
