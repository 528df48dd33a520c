//! The head that glibc's malloc keeps before each block: how many bytes the block takes.
//!
//! Read as it lies in memory: to ask `malloc_usable_size` for it would cost as much as the allocation itself. Whether it
//! reads as here is tried out before anything is counted ([`crate::heads`]).

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The lowest bits of the size are none of it (malloc/malloc.c: `PREV_INUSE`, `IS_MMAPPED`, `NON_MAIN_ARENA`).
const FLAGS: usize = 7;
const SINGLY: usize = 2;

/// Bytes, blocks, and bytes of blocks that were mapped singly.
pub(crate) type Sums = [i64; 3];

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
