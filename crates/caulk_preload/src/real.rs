//! The allocator behind the hooks: the next library's functions, and a little memory for what is asked for before these
//! are known.

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::filter;
use crate::local::local;
use crate::python::symbol;

/// What a thread runs.
pub(crate) type Routine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// One function of the next library.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    fn resolve(&self) {
        // SAFETY: a name that ends with zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found as usize, Ordering::Relaxed);
    }

    /// Its address; 0 where it is not known (yet).
    pub(crate) fn get(&self) -> usize {
        self.address.load(Ordering::Relaxed)
    }

    /// The same of a function that a library brings which may be loaded later (glibc before 2.34 has a library for
    /// threads). Not for functions of the allocator: this may wait for the loader.
    pub(crate) fn get_or_resolve(&self) -> usize {
        if self.get() == 0 {
            self.resolve();
        }
        self.get()
    }

    /// As if it had not been found.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        self.address.store(0, Ordering::Relaxed);
    }
}

/// Functions with a next one: name of the static, name of the symbol.
macro_rules! next {
    ($($function:ident $symbol:literal)*) => {
        $(pub(crate) static $function: Next = Next::new($symbol);)*
        /// Finds all of them.
        pub(crate) fn resolve() { $($function.resolve();)* }
    };
}

next! {
    MALLOC c"malloc"
    CALLOC c"calloc"
    REALLOC c"realloc"
    FREE c"free"
    MEMALIGN c"memalign"
    ALIGNED_ALLOC c"aligned_alloc"
    POSIX_MEMALIGN c"posix_memalign"
    VALLOC c"valloc"
    PVALLOC c"pvalloc"
    PTHREAD_CREATE c"pthread_create"
    MMAP c"mmap"
    MUNMAP c"munmap"
    MREMAP c"mremap"
    DL_FIND_OBJECT c"_dl_find_object"
    OPERATOR_NEW c"_Znwm"
    USABLE_SIZE c"malloc_usable_size"
    STATISTICS c"mallinfo2"
    NARROW_STATISTICS c"mallinfo"
}

/// Bytes of the block with which the order of libraries is found out.
const PROBE: usize = 40;

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Aligned = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Map = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
type Unmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;
type Remap = unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;

/// # Safety
/// As `malloc`.
pub(crate) unsafe fn malloc(size: usize) -> *mut c_void {
    match MALLOC.get() {
        0 => boot(size),
        // SAFETY: the symbol's type; the caller upholds its contract.
        next => unsafe { mem::transmute::<usize, Malloc>(next)(size) },
    }
}

/// # Safety
/// As `calloc`.
pub(crate) unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    match CALLOC.get() {
        0 => count.checked_mul(size).map_or(ptr::null_mut(), boot),
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, Calloc>(next)(count, size) },
    }
}

/// # Safety
/// As `realloc`.
pub(crate) unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if let Some(old) = boot_size(block) {
        // SAFETY: as above.
        let new = unsafe { malloc(size) };
        if !new.is_null() {
            // SAFETY: two blocks, both as long as the shorter of them.
            unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old.min(size)) };
        }
        return new;
    }
    match REALLOC.get() {
        0 if block.is_null() => boot(size),
        0 => ptr::null_mut(),
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, Realloc>(next)(block, size) },
    }
}

/// # Safety
/// As `free`, for no block that [`boot_size`] knows.
pub(crate) unsafe fn free(block: *mut c_void) {
    if let next @ 1.. = FREE.get() {
        // SAFETY: as above.
        unsafe { mem::transmute::<usize, Free>(next)(block) };
    }
}

/// `memalign`, `aligned_alloc`: those that take an alignment and a size.
///
/// # Safety
/// As the function.
pub(crate) unsafe fn aligned(function: &Next, alignment: usize, size: usize) -> *mut c_void {
    match function.get() {
        0 => ptr::null_mut(),
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, Aligned>(next)(alignment, size) },
    }
}

/// `valloc`, `pvalloc`: those that take a size.
///
/// # Safety
/// As the function.
pub(crate) unsafe fn sized(function: &Next, size: usize) -> *mut c_void {
    match function.get() {
        0 => ptr::null_mut(),
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, Malloc>(next)(size) },
    }
}

/// # Safety
/// As `posix_memalign`.
pub(crate) unsafe fn posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    match POSIX_MEMALIGN.get() {
        0 => libc::ENOMEM,
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, PosixMemalign>(next)(out, alignment, size) },
    }
}

/// # Safety
/// As `mmap`.
pub(crate) unsafe fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    match MMAP.get() {
        // SAFETY: as above.
        0 => unsafe {
            libc::syscall(libc::SYS_mmap, address, length, protection, flags, file, offset) as *mut c_void
        },
        // SAFETY: as above.
        next => unsafe {
            mem::transmute::<usize, Map>(next)(address, length, protection, flags, file, offset)
        },
    }
}

/// # Safety
/// As `munmap`.
pub(crate) unsafe fn munmap(address: *mut c_void, length: usize) -> c_int {
    match MUNMAP.get() {
        // SAFETY: as above.
        0 => unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int },
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, Unmap>(next)(address, length) },
    }
}

/// # Safety
/// As `mremap`, whose last argument may be missing: then it is anything.
pub(crate) unsafe fn mremap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    target: *mut c_void,
) -> *mut c_void {
    match MREMAP.get() {
        // SAFETY: as above.
        0 => unsafe { libc::syscall(libc::SYS_mremap, address, old, new, flags, target) as *mut c_void },
        // SAFETY: as above.
        next => unsafe { mem::transmute::<usize, Remap>(next)(address, old, new, flags, target) },
    }
}

/// Memory for what the loader asks for while the functions are being found.
const BOOT_BYTES: usize = 64 << 10;
/// Before each block, its size: blocks are aligned to 16 as malloc's are.
const BOOT_HEAD: usize = 16;

#[repr(C, align(16))]
struct Boot(std::cell::UnsafeCell<[u8; BOOT_BYTES]>);
// SAFETY: every byte is handed out once.
unsafe impl Sync for Boot {}

static BOOT: Boot = Boot(std::cell::UnsafeCell::new([0; BOOT_BYTES]));
static BOOT_USED: AtomicUsize = AtomicUsize::new(0);

fn boot(size: usize) -> *mut c_void {
    let Some(whole) = size.checked_add(BOOT_HEAD + 15).map(|whole| whole & !15) else {
        return ptr::null_mut();
    };
    let fits = |used: usize| used.checked_add(whole).filter(|used| *used <= BOOT_BYTES);
    let Ok(at) = BOOT_USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) else {
        return ptr::null_mut();
    };
    // SAFETY: within the memory.
    let head = unsafe { BOOT.0.get().cast::<u8>().add(at) };
    // SAFETY: within the memory, and nobody else's.
    unsafe { head.cast::<usize>().write_unaligned(size) };
    // SAFETY: as above.
    let block = unsafe { head.add(BOOT_HEAD) };
    filter::enter(block as usize);
    block.cast()
}

/// Size of a block that was handed out before the allocator was known. Nobody but [`filter::may_know`] need be asked
/// before: it says so of each of them for ever.
pub(crate) fn boot_size(block: *mut c_void) -> Option<usize> {
    let (start, address) = (BOOT.0.get() as usize, block as usize);
    if address < start + BOOT_HEAD || address >= start + BOOT_BYTES {
        return None;
    }
    // SAFETY: the size stands before each block.
    Some(unsafe { (address as *const usize).byte_sub(BOOT_HEAD).read() })
}

/// Is the C library one whose threads and forks are known here?
pub(crate) fn is_glibc() -> bool {
    symbol(c"gnu_get_libc_version").is_some()
}

/// Is the allocator the C library's own? It maps memory past the hooks; another one's mappings look like any.
pub(crate) fn is_libc() -> bool {
    object(MALLOC.get()).is_some_and(|allocator| object(MMAP.get()) == Some(allocator))
}

/// `struct mallinfo2` of glibc (malloc.h).
#[repr(C)]
struct Statistics {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// Bytes that glibc's malloc has handed out, and those of them in mappings of their own; `None` where it does not say.
/// Not for large heaps: it looks through all that is free.
pub(crate) fn handed_out() -> Option<(i64, i64)> {
    type Read = unsafe extern "C" fn() -> Statistics;
    type ReadNarrow = unsafe extern "C" fn() -> libc::mallinfo;
    if let next @ 1.. = STATISTICS.get() {
        // SAFETY: the symbol's type.
        let now = unsafe { mem::transmute::<usize, Read>(next)() };
        return Some(((now.uordblks + now.hblkhd) as i64, now.hblkhd as i64));
    }
    // glibc before 2.33; its figures wrap at 4 GB.
    let next @ 1.. = NARROW_STATISTICS.get() else { return None };
    // SAFETY: the symbol's type.
    let now = unsafe { mem::transmute::<usize, ReadNarrow>(next)() };
    let [used, singly] = [now.uordblks, now.hblkhd].map(|bytes| i64::from(bytes.cast_unsigned()));
    Some((used + singly, singly))
}

static BRINGS_NEW: AtomicBool = AtomicBool::new(false);

/// Finds out whether C++'s operators come with the allocator.
pub(crate) fn look_for_new() {
    let brings = object(OPERATOR_NEW.get()).is_some_and(|library| object(MALLOC.get()) == Some(library));
    BRINGS_NEW.store(brings, Ordering::Relaxed);
}

/// Does the allocator bring C++'s operators? Its `new` may call `aligned_alloc` where its `delete` calls no `free`
/// (jemalloc 5.3, `jemalloc_cpp.cpp`).
pub(crate) fn brings_new() -> bool {
    BRINGS_NEW.load(Ordering::Relaxed)
}

/// Is what the program calls `malloc` this library's? Another one may have been loaded first.
///
/// Addresses do not tell: a hook's is that of whoever comes first, too, and programs at fixed addresses have entries of
/// their own for what they call. So it is called, and the hook looked at.
pub(crate) fn is_first() -> bool {
    let (Some(malloc), Some(free)) = (symbol(c"malloc"), symbol(c"free")) else { return false };
    // SAFETY: this thread's own, for the length of a statement.
    let bytes_left = || unsafe { local().as_ref() }.countdown;
    let before = bytes_left();
    // SAFETY: the symbol's type.
    let block = unsafe { mem::transmute::<*mut c_void, Malloc>(malloc)(PROBE) };
    let after = bytes_left();
    // By name here, too: within this library `free` is its own.
    // SAFETY: the symbol's type, and the block from above.
    unsafe { mem::transmute::<*mut c_void, Free>(free)(block) };
    before != after
}

/// Where the program or library that an address lies in was loaded.
fn object(address: usize) -> Option<usize> {
    // SAFETY: plain data.
    let mut info: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: looks an address up, and writes there.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut info) };
    (found != 0).then_some(info.dli_fbase as usize)
}
