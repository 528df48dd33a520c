//! The functions that the program calls instead of the C library's. This is the list of all that is hooked.
//!
//! C++'s operators are not: its library takes from malloc what they are asked for, and may lie where no preloaded library
//! finds the next of a name, among what a module of Python's brought along. An allocator's own operators are not sampled.

use std::ffi::{c_int, c_void};

use crate::mappings::Taken;
use crate::real::Routine;
use crate::{filter, mappings, real, sampler, sums, threads};

/// # Safety
/// As in the C library; so for all of these.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: handed on as it came; so for all of these.
    let block = unsafe { real::malloc(size) };
    sampler::allocated(block, size);
    sums::allocated(block);
    block
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: see `malloc`.
    let block = unsafe { real::calloc(count, size) };
    sampler::allocated(block, count.wrapping_mul(size));
    sums::allocated(block);
    block
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let record = if filter::may_know(block as usize) { sampler::take(block) } else { None };
    let before = sums::size(block);
    // SAFETY: see `malloc`.
    let new = unsafe { real::realloc(block, size) };
    sampler::moved(block, new, size, record);
    sums::moved(before, new, size);
    new
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    if let Some(size) = count.checked_mul(size) {
        // SAFETY: see `malloc`.
        return unsafe { realloc(block, size) };
    }
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    std::ptr::null_mut()
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if filter::may_know(block as usize) {
        sampler::freed(block);
        // Of the little memory from before the allocator was known, nothing comes back.
        if real::boot_size(block).is_some() {
            return;
        }
    }
    sums::freed(block);
    // SAFETY: see `malloc`.
    unsafe { real::free(block) };
}

/// C23; the size is a help that no allocator needs.
///
/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: see `malloc`.
    unsafe { free(block) };
}

/// C23, likewise.
///
/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _alignment: usize, _size: usize) {
    // SAFETY: see `malloc`.
    unsafe { free(block) };
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: see `malloc`.
    let block = unsafe { real::aligned(&real::MEMALIGN, alignment, size) };
    sampler::allocated(block, size);
    sums::allocated(block);
    block
}

/// Not sampled where it may be C++'s `new` that asks: what is given back by `delete` is not seen.
///
/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: see `malloc`.
    let block = unsafe { real::aligned(&real::ALIGNED_ALLOC, alignment, size) };
    if !real::brings_new() {
        sampler::allocated(block, size);
    }
    sums::allocated(block);
    block
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(
    out: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    // SAFETY: see `malloc`.
    let result = unsafe { real::posix_memalign(out, alignment, size) };
    if result == 0 {
        // SAFETY: a success has written there.
        let block = unsafe { *out };
        sampler::allocated(block, size);
        sums::allocated(block);
    }
    result
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: see `malloc`.
    let block = unsafe { real::sized(&real::VALLOC, size) };
    sampler::allocated(block, size);
    sums::allocated(block);
    block
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: see `malloc`.
    let block = unsafe { real::sized(&real::PVALLOC, size) };
    sampler::allocated(block, size);
    sums::allocated(block);
    block
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let fixed = flags & libc::MAP_FIXED != 0;
    let replaced = if fixed { mappings::take_out(address as usize, length) } else { None };
    // SAFETY: see `malloc`.
    let start = unsafe { real::mmap(address, length, protection, flags, file, offset) };
    if start == libc::MAP_FAILED {
        replaced.into_iter().for_each(Taken::stay);
        return start;
    }
    replaced.into_iter().for_each(Taken::go);
    if mappings::is_memory(protection, flags) {
        mappings::mapped(start as usize, length);
    }
    start
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: see `malloc`.
    unsafe { mmap(address, length, protection, flags, file, offset) }
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    let taken = mappings::take_out(address as usize, length);
    // SAFETY: see `malloc`.
    let result = unsafe { real::munmap(address, length) };
    taken.into_iter().for_each(if result == 0 { Taken::go } else { Taken::stay });
    result
}

/// In C its last argument may be missing. Then it is what happens to be in a register, here as behind it.
///
/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mremap(
    address: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    target: *mut c_void,
) -> *mut c_void {
    let taken = mappings::take_out(address as usize, old);
    let fixed = flags & libc::MREMAP_FIXED != 0;
    let replaced = if fixed { mappings::take_out(target as usize, new) } else { None };
    // SAFETY: see `malloc`.
    let start = unsafe { real::mremap(address, old, new, flags, target) };
    if start == libc::MAP_FAILED {
        taken.into_iter().chain(replaced).for_each(Taken::stay);
        return start;
    }
    replaced.into_iter().for_each(Taken::go);
    mappings::grown(start as usize, old, new, taken.is_some());
    if let Some(taken) = taken {
        taken.move_to(start as usize, new);
    }
    start
}

/// # Safety
/// See [`malloc`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut usize,
    attributes: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: see `malloc`.
    unsafe { threads::create(thread, attributes, routine, argument) }
}
