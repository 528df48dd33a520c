//! Bytes in use as mimalloc counts them. It keeps no sum: the pages of a thread's heap are asked for theirs.
//!
//! That is the heap of the thread that asks first, which trains. Blocks that other threads made are not in it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::malloc::Malloc;
use crate::symbols::find;

/// `mi_heap_area_t` (mimalloc.h, version 2).
#[repr(C)]
struct Area {
    blocks: *mut c_void,
    reserved: usize,
    committed: usize,
    used: usize,
    block_size: usize,
}

type GetDefault = unsafe extern "C" fn() -> *mut c_void;
type Visitor = unsafe extern "C" fn(*const c_void, *const Area, *mut c_void, usize, *mut c_void) -> bool;
type Visit = unsafe extern "C" fn(*mut c_void, bool, Visitor, *mut c_void) -> bool;
type Version = unsafe extern "C" fn() -> i32;

/// Its functions, where it is loaded.
#[derive(Clone, Copy)]
pub(super) struct Mimalloc {
    get_default: GetDefault,
    visit: Visit,
}

static HEAP: AtomicUsize = AtomicUsize::new(0);

impl Mimalloc {
    pub(super) fn find() -> Option<Self> {
        let (version, get_default) = (find(c"mi_version")?, find(c"mi_heap_get_default")?);
        let visit = find(c"mi_heap_visit_blocks")?;
        // SAFETY: mimalloc's documented signature.
        let version = unsafe { std::mem::transmute::<*mut c_void, Version>(version) };
        // SAFETY: returns a number: 209 is 2.0.9. The area's layout is that of versions 1 and 2.
        if unsafe { version() } >= 300 {
            return None;
        }
        // SAFETY: as above.
        let get_default = unsafe { std::mem::transmute::<*mut c_void, GetDefault>(get_default) };
        // SAFETY: as above.
        let visit = unsafe { std::mem::transmute::<*mut c_void, Visit>(visit) };
        Some(Self { get_default, visit })
    }

    /// `None` on another thread than the first: its heap is another, and that of the first one's is not to be touched.
    pub(super) fn read(self) -> Option<Malloc> {
        // SAFETY: the calling thread's heap.
        let heap = unsafe { (self.get_default)() };
        let first = HEAP.compare_exchange(0, heap as usize, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err_and(|first| first != heap as usize) {
            return None;
        }
        let mut sum = Malloc::default();
        // SAFETY: the calling thread's heap; pages alone are visited, and nothing is allocated meanwhile.
        unsafe { (self.visit)(heap, false, add, (&raw mut sum).cast()) };
        Some(sum)
    }
}

/// Adds a page of the heap.
unsafe extern "C" fn add(
    _heap: *const c_void,
    area: *const Area,
    _block: *mut c_void,
    _size: usize,
    sum: *mut c_void,
) -> bool {
    // SAFETY: a page of the heap, and the sum that `read` passes.
    let (area, sum) = unsafe { (&*area, &mut *sum.cast::<Malloc>()) };
    let used = (area.used * area.block_size) as u64;
    sum.used += used;
    sum.free += (area.committed as u64).saturating_sub(used);
    true
}
