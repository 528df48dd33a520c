//! The head that glibc's malloc keeps before each block: how many bytes the block takes.
//!
//! Read as it lies in memory: to ask `malloc_usable_size` for it would cost as much as the allocation itself. Whether it
//! reads as here is tried out before anything is counted ([`reads_right`]).

use std::ffi::c_void;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::line::Sums;
use crate::real;

/// The lowest bits of the size are none of it (malloc/malloc.c: `PREV_INUSE`, `IS_MMAPPED`, `NON_MAIN_ARENA`).
const FLAGS: usize = 7;
const SINGLY: usize = 2;
/// Bytes of the block that is tried out.
const TRIED: usize = 1000;

/// What a block takes.
#[derive(Clone, Copy)]
pub(crate) struct Chunk {
    size: usize,
    block: *const c_void,
}

impl Chunk {
    /// Of a block that lives.
    ///
    /// # Safety
    /// The block is glibc's, and not null.
    #[inline]
    pub(crate) unsafe fn of(block: *const c_void) -> Self {
        // SAFETY: as promised by the caller.
        Self { size: unsafe { word(block, 1) }, block }
    }

    /// Bytes from its head to the next one.
    #[inline]
    pub(crate) fn bytes(self) -> i64 {
        (self.size & !FLAGS) as i64
    }

    /// Has it a mapping of its own?
    #[inline]
    pub(crate) fn is_singly(self) -> bool {
        self.size & SINGLY != 0
    }

    /// What so many like it take.
    #[cold]
    pub(crate) fn sums(self, blocks: i64) -> Sums {
        let single = if self.is_singly() { self.bytes() + self.before() } else { 0 };
        let bytes = if self.is_singly() { single } else { self.bytes() };
        [bytes, 1, single].map(|sum| sum * blocks)
    }

    /// Bytes of its own mapping that lie before it: an alignment may have asked for them.
    fn before(self) -> i64 {
        // SAFETY: it has not been given back since it was read, and was glibc's then.
        unsafe { word(self.block, 2) as i64 }
    }
}

/// A word before a block. Another thread may change the flags in it.
///
/// # Safety
/// The block is glibc's, and has so much of a head.
#[inline]
unsafe fn word(block: *const c_void, before: usize) -> usize {
    // SAFETY: as promised by the caller; blocks are aligned to 16.
    let word = unsafe { &*block.cast::<AtomicUsize>().sub(before) };
    word.load(Ordering::Relaxed)
}

/// Are heads as they are read here? Where the allocator tags its memory, they cannot be read by a block's address.
pub(crate) fn reads_right() -> bool {
    type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
    let usable_size = real::USABLE_SIZE.get();
    if usable_size == 0 || tags_memory() {
        return false;
    }
    // SAFETY: any size may be asked for.
    let block = unsafe { real::malloc(TRIED) };
    if block.is_null() {
        return false;
    }
    // SAFETY: the symbol's type, and the block from above.
    let usable = unsafe { mem::transmute::<usize, UsableSize>(usable_size)(block) };
    let is_right = is_known() && {
        // SAFETY: the allocator has been found to be the C library's, which is glibc.
        let chunk = unsafe { Chunk::of(block) };
        chunk.bytes() == (usable + size_of::<usize>()) as i64 && !chunk.is_singly()
    };
    // SAFETY: the block from above.
    unsafe { real::free(block) };
    is_right
}

/// Does glibc's malloc know of the block? Valgrind has every function of the family replaced by its own, at its address.
fn is_known() -> bool {
    real::handed_out().is_some_and(|(bytes, _)| bytes >= TRIED as i64)
}

/// Does this process have tags checked (`glibc.mem.tagging`)?
#[cfg(target_arch = "aarch64")]
fn tags_memory() -> bool {
    /// linux/prctl.h: `PR_MTE_TCF_MASK`.
    const CHECKED: i32 = 3 << 1;
    // SAFETY: no pointers.
    let control = unsafe { libc::prctl(libc::PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0) };
    control > 0 && control & CHECKED != 0
}

/// Only 64-bit ARM does.
#[cfg(not(target_arch = "aarch64"))]
fn tags_memory() -> bool {
    false
}
