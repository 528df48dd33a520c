//! Memory that the agent itself holds, kept apart from the program's.
//!
//! Large blocks come straight from the kernel: malloc adapts to the large blocks that it sees freed (glibc's mmap
//! threshold), and would behave differently under caulk. Both are counted, so that they can be left out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks of this size and above are mapped, in bytes.
const LARGE: usize = 64 << 10;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of malloc's that the agent's own values hold now.
pub(crate) fn bytes() -> u64 {
    HELD.load(Ordering::Relaxed) as u64
}

/// Bytes that the agent has mapped for its own values now.
pub(crate) fn mapped() -> u64 {
    MAPPED.load(Ordering::Relaxed) as u64
}

/// The system's allocator for small blocks, with a count of what is handed out; the kernel for large ones.
pub(crate) struct Counted;

// SAFETY: a block is handed out, resized and taken back by the same source, which its size tells; both uphold the
// contract of `GlobalAlloc`.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: our caller upholds the contract of `GlobalAlloc`.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            HELD.fetch_add(layout.size(), Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: a whole mapping of this size, made by `alloc` or `realloc`.
            unsafe { libc::munmap(block.cast(), layout.size()) };
            MAPPED.fetch_sub(layout.size(), Ordering::Relaxed);
            return;
        }
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: a block of the system's; as above.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller passes a size that is valid for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(layout), is_large(wanted)) {
            (true, true) => {
                // SAFETY: a whole mapping of this size.
                let moved = unsafe { libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE) };
                if moved == libc::MAP_FAILED {
                    return std::ptr::null_mut();
                }
                MAPPED.fetch_add(size, Ordering::Relaxed);
                MAPPED.fetch_sub(layout.size(), Ordering::Relaxed);
                moved.cast()
            }
            (false, false) => {
                // SAFETY: a block of the system's; our caller upholds the contract.
                let moved = unsafe { System.realloc(block, layout, size) };
                if !moved.is_null() {
                    HELD.fetch_add(size, Ordering::Relaxed);
                    HELD.fetch_sub(layout.size(), Ordering::Relaxed);
                }
                moved
            }
            _ => {
                // SAFETY: a valid layout of this allocator.
                let moved = unsafe { self.alloc(wanted) };
                if !moved.is_null() {
                    // SAFETY: two blocks that do not overlap, both as long as the smaller of them.
                    unsafe { block.copy_to_nonoverlapping(moved, layout.size().min(size)) };
                    // SAFETY: the block is the caller's, of this layout.
                    unsafe { self.dealloc(block, layout) };
                }
                moved
            }
        }
    }
}

/// Is it mapped? Pages are aligned more than anything that is asked for.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= 4096
}

fn map(size: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping that replaces none.
    let block = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    if block == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    MAPPED.fetch_add(size, Ordering::Relaxed);
    block.cast()
}

#[cfg(test)]
mod tests {
    #[test]
    fn blocks_keep_their_contents_across_the_bound() {
        let mut bytes: Vec<u8> = Vec::new();
        for length in [10, super::LARGE - 1, super::LARGE, 10 * super::LARGE, 100] {
            bytes.resize(length, length as u8);
            bytes.shrink_to_fit();
            assert_eq!(bytes[..10], [10; 10]);
            assert_eq!(
                bytes[bytes.len() - 1],
                if length == 100 { (super::LARGE - 1) as u8 } else { length as u8 }
            );
        }
    }

    #[test]
    fn large_blocks_are_not_taken_from_malloc() {
        // Other tests run beside this one.
        let before = super::bytes();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let during = super::bytes();
        drop(block);
        assert!(during < before + (32 << 20), "{before} {during}");
    }
}
