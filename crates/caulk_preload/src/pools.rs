//! Threads of OpenMP's pools: made once, and at work in every parallel region after that.
//!
//! A pool belongs to the thread that made it, which waits at the end of each region for the pool's threads (libgomp,
//! `gomp_team_start` and `gomp_team_end`). So what these allocate is the doing of the line at which that one waits.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;

use crate::local::local;
use crate::real::Routine;
use crate::{python, real};

/// Runtimes, by how their files are called: GCC's, LLVM's, Intel's.
const RUNTIMES: [&[u8]; 3] = [b"libgomp", b"libomp", b"libiomp"];

/// What `_dl_find_object` writes (glibc 2.35, `dlfcn.h`), with the words that are kept for later.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    map: *const Map,
    rest: [usize; 12],
}

/// The beginning of a `link_map` (`link.h`).
#[repr(C)]
struct Map {
    address: usize,
    name: *const c_char,
}

/// Waits for no lock (glibc's manual, "Dynamic Linker Introspection").
type Find = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// State of the thread that the one being made works for, if it is one of a pool's; else 0.
pub(crate) fn leader(routine: Routine) -> usize {
    if !is_of_pool(routine) {
        return 0;
    }
    // A thread of a pool that makes one of its own waits, and another one waits for it.
    // SAFETY: this thread's own.
    python::thread_state().unwrap_or_else(|| unsafe { local().as_ref() }.leader)
}

/// Is this function part of a runtime of OpenMP?
fn is_of_pool(routine: Routine) -> bool {
    let find = real::DL_FIND_OBJECT.get();
    if find == 0 {
        return false;
    }
    let mut found = Found { flags: 0, start: 0, end: 0, map: std::ptr::null(), rest: [0; 12] };
    // SAFETY: the symbol's type; there is more room than it writes to.
    let failed = unsafe { mem::transmute::<usize, Find>(find)(routine as *const c_void, &raw mut found) };
    // SAFETY: the loader's entry of a library whose code is about to run.
    let Some(map) = (unsafe { found.map.as_ref() }).filter(|map| failed == 0 && !map.name.is_null()) else {
        return false;
    };
    // SAFETY: a string that ends with zero.
    let path = unsafe { CStr::from_ptr(map.name) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}
