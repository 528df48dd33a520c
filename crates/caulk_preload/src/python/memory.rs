//! The interpreter's memory, by address: the calling thread's part of it, which stays as it is meanwhile, or another
//! thread's, which may change and vanish.

use std::mem::size_of;
use std::ptr;

/// Whose memory is read, and so how.
pub(crate) trait Memory {
    /// Copies bytes; false where they are not there.
    ///
    /// # Safety
    /// `to` has that room. Of the calling thread's own, the bytes are there.
    unsafe fn copy(from: usize, to: *mut u8, length: usize) -> bool;
}

/// The calling thread's own.
pub(crate) struct Own;

impl Memory for Own {
    unsafe fn copy(from: usize, to: *mut u8, length: usize) -> bool {
        // SAFETY: as promised by the caller.
        unsafe { ptr::copy_nonoverlapping(from as *const u8, to, length) };
        true
    }
}

/// Another thread's: the system reads it, and knows what is gone.
pub(crate) struct Others;

impl Memory for Others {
    unsafe fn copy(from: usize, to: *mut u8, length: usize) -> bool {
        let remote = libc::iovec { iov_base: from as *mut _, iov_len: length };
        let local = libc::iovec { iov_base: to.cast(), iov_len: length };
        // SAFETY: a number.
        let own = unsafe { libc::getpid() } as usize;
        // By number, as not every C library has a function for it. All in whole words: the system looks at all bits.
        let (one, flags): (usize, usize) = (1, 0);
        // SAFETY: writes where the caller promised room, and reads what is there.
        let copied = unsafe {
            libc::syscall(
                libc::SYS_process_vm_readv,
                own,
                &raw const local,
                one,
                &raw const remote,
                one,
                flags,
            )
        };
        usize::try_from(copied) == Ok(length)
    }
}

/// Reads a number; `None` where there is nothing.
///
/// # Safety
/// Of the calling thread's own, there is such a number.
pub(crate) unsafe fn read<M: Memory, T: Copy + Default>(address: usize) -> Option<T> {
    let mut value = T::default();
    // SAFETY: room for one, and as promised by the caller.
    unsafe { M::copy(address, (&raw mut value).cast(), size_of::<T>()) }.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_no_fault() {
        let there = 0x0123_4567_89ab_cdef_u64;
        let address = &raw const there as usize;
        // SAFETY: it is there.
        assert_eq!(unsafe { read::<Own, u64>(address) }, Some(there));
        // SAFETY: any address will do.
        assert_eq!(unsafe { read::<Others, u64>(address) }, Some(there));
        // SAFETY: as above.
        assert_eq!(unsafe { read::<Others, u64>(16) }, None);
    }
}
