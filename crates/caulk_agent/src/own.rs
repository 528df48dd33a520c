//! Memory that the agent itself holds, kept apart from the program's: none of it comes from malloc.
//!
//! A small block that outlives a boundary would lie where the program's next large one was to go, and malloc's heap would
//! grow by the large one; and malloc adapts to large blocks that it sees freed (glibc's mmap threshold).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use dlmalloc::Dlmalloc;

/// Blocks of this size and above are mapped singly, in bytes.
const LARGE: usize = 64 << 10;

static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the agent has mapped for its own values now.
pub(crate) fn mapped() -> u64 {
    MAPPED.load(Ordering::Relaxed) as u64
}

/// The agent's allocator: a heap of its own for small blocks, the kernel for large ones.
pub(crate) struct Own;

// SAFETY: a block is handed out, resized and taken back by the same source, which its size tells; both uphold the
// contract of `GlobalAlloc`.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: any size and alignment may be asked for.
        SMALL.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            unmap(block, layout.size());
            return;
        }
        // SAFETY: a block of the heap's.
        SMALL.with(|heap| unsafe { heap.c_free(block) });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller passes a size that is valid for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_large(layout), is_large(wanted)) {
            (true, true) => remap(block, layout.size(), size, libc::MREMAP_MAYMOVE),
            (false, false) if layout.align() <= NATURAL => {
                // SAFETY: a block of the heap's.
                SMALL.with(|heap| unsafe { heap.c_realloc(block, size) })
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

/// Alignment of every block of the heap, in bytes.
const NATURAL: usize = 2 * size_of::<usize>();

/// Is it mapped singly? Pages are aligned more than anything that is asked for.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

/// Where small blocks come from.
static SMALL: Heap = Heap {
    lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
    blocks: UnsafeCell::new(Dlmalloc::new_with_allocator(Pages)),
};

struct Heap {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    blocks: UnsafeCell<Dlmalloc<Pages>>,
}

// SAFETY: the blocks are touched under the lock alone, which is made for that.
unsafe impl Sync for Heap {}

impl Heap {
    /// `work` must not panic: a panic allocates. So the methods of the heap's that check what they are given are not used.
    fn with<R>(&self, work: impl FnOnce(&mut Dlmalloc<Pages>) -> R) -> R {
        self.lock();
        // SAFETY: nobody else has it under the lock, and `work` allocates nothing else.
        let result = work(unsafe { &mut *self.blocks.get() });
        self.unlock();
        result
    }

    fn lock(&self) {
        // SAFETY: a mutex that lives as long as the program.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
    }

    fn unlock(&self) {
        // SAFETY: as above, locked by this thread; in a forked child by the one that it goes on as.
        unsafe { libc::pthread_mutex_unlock(self.lock.get()) };
    }
}

/// Has forked children find the heap whole and unlocked, whichever thread was at it.
pub(crate) fn outlive_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn before() {
        SMALL.lock();
    }
    extern "C" fn after() {
        SMALL.unlock();
    }
    ONCE.call_once(|| {
        // SAFETY: the handlers take and give a lock, and this library is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    });
}

/// The kernel's memory, counted.
struct Pages;

const PAGE: usize = 4096;

// SAFETY: whole pages that are nobody else's until they are given back.
unsafe impl dlmalloc::Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        (map(size), size, 0)
    }

    fn remap(&self, block: *mut u8, before: usize, after: usize, moves: bool) -> *mut u8 {
        remap(block, before, after, if moves { libc::MREMAP_MAYMOVE } else { 0 })
    }

    fn free_part(&self, block: *mut u8, before: usize, after: usize) -> bool {
        !remap(block, before, after, 0).is_null()
    }

    fn free(&self, block: *mut u8, size: usize) -> bool {
        unmap(block, size)
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
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

/// Resizes what `map` has made; null where that cannot be, and then nothing has changed.
fn remap(block: *mut u8, before: usize, after: usize, flags: libc::c_int) -> *mut u8 {
    // SAFETY: pages that `map` has made, which their owner alone uses.
    let moved = unsafe { libc::mremap(block.cast(), before, after, flags) };
    if moved == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    MAPPED.fetch_add(after, Ordering::Relaxed);
    MAPPED.fetch_sub(before, Ordering::Relaxed);
    moved.cast()
}

fn unmap(block: *mut u8, size: usize) -> bool {
    // SAFETY: pages that `map` has made and that nobody uses any more.
    let done = unsafe { libc::munmap(block.cast(), size) } == 0;
    if done {
        MAPPED.fetch_sub(size, Ordering::Relaxed);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_contents_across_the_bound() {
        let mut bytes: Vec<u8> = Vec::new();
        for length in [10, LARGE - 1, LARGE, 10 * LARGE, 100] {
            bytes.resize(length, length as u8);
            bytes.shrink_to_fit();
            assert_eq!(bytes[..10], [10; 10]);
            assert_eq!(bytes[bytes.len() - 1], if length == 100 { (LARGE - 1) as u8 } else { length as u8 });
        }
    }

    #[test]
    fn nothing_is_taken_from_malloc() {
        // SAFETY: takes no arguments. Its heaps and what it has mapped singly, whatever is free in them.
        let heap = || unsafe { libc::mallinfo2() };
        let (before, mapped) = (heap(), mapped());
        let blocks: Vec<Box<[u8]>> = (0..4000).map(|size| vec![1; size].into()).collect();
        // Room alone: nothing of it is touched.
        let large = std::hint::black_box(Vec::<u8>::with_capacity(1 << 30));
        let (during, held) = (heap(), super::mapped() - mapped);
        drop((blocks, large));
        // Other tests run beside this one, and one of them asks malloc for 64 MB.
        let taken = (during.uordblks + during.hblkhd).saturating_sub(before.uordblks + before.hblkhd);
        assert!(taken < 1 << 29 && held > (1 << 30) + (4 << 20), "{taken} {held}");
    }

    #[test]
    fn a_child_of_many_threads_can_allocate() {
        outlive_forks();
        let busy = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while busy.load(Ordering::Relaxed) {
                        std::hint::black_box(vec![1_u8; 100]);
                    }
                });
            }
            for _ in 0..200 {
                // SAFETY: the child allocates, which is what this tests, and ends without running anything else.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    std::hint::black_box(vec![1_u8; 1000]);
                    // SAFETY: ends this process alone.
                    unsafe { libc::_exit(7) };
                }
                let mut status = 0;
                // SAFETY: waits for the child from above.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(libc::WEXITSTATUS(status), 7);
            }
            busy.store(false, Ordering::Relaxed);
        });
    }
}
