//! Memory of the sampler's own, straight from the kernel.

use std::ptr::NonNull;

/// New zeroed memory that is never given back; `None` where there is none.
pub(crate) fn anonymous(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
}

/// A part of an open file, shared with whoever else maps it.
pub(crate) fn shared(bytes: usize, file: libc::c_int, offset: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::MAP_SHARED, file, offset)
}

fn map(bytes: usize, flags: libc::c_int, file: libc::c_int, offset: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // The system call itself: libc's function may be hooked, here or by others.
    // SAFETY: a new mapping that replaces none.
    let found = unsafe { libc::syscall(libc::SYS_mmap, 0, bytes, protection, flags, file, offset) };
    if found == -1 { None } else { NonNull::new(found as *mut u8) }
}

/// Gives a mapping back.
///
/// # Safety
/// Nobody uses it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: as promised by the caller.
    unsafe { libc::syscall(libc::SYS_munmap, start.as_ptr(), bytes) };
}
