//! Whether the heads of blocks are as [`Chunk`] reads them, tried out before anything is counted.

use std::ffi::c_void;
use std::mem;

use crate::chunk::Chunk;
use crate::real;

/// Bytes of the block that is tried out.
const TRIED: usize = 1000;

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
