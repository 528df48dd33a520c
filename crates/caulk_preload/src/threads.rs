//! Threads remember who made them: what they allocate without Python frames of their own is their maker's doing.

use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::local::{Inside, local};
use crate::real::Routine;
use crate::{before, lent, pools, process, real, stacks, sums};

type Create = unsafe extern "C" fn(*mut usize, *const c_void, Routine, *mut c_void) -> c_int;

/// A thread that is being started.
struct Start {
    taken: AtomicBool,
    routine: AtomicUsize,
    argument: AtomicUsize,
    creator: AtomicU32,
    leader: AtomicUsize,
    serves: AtomicU32,
}

/// Threads that may be on their way at a time; more are started without a maker.
const STARTS: usize = 64;
static STARTING: [Start; STARTS] = [const {
    Start {
        taken: AtomicBool::new(false),
        routine: AtomicUsize::new(0),
        argument: AtomicUsize::new(0),
        creator: AtomicU32::new(0),
        leader: AtomicUsize::new(0),
        serves: AtomicU32::new(0),
    }
}; STARTS];

/// # Safety
/// As `pthread_create`.
pub(crate) unsafe fn create(
    thread: *mut usize,
    attributes: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    let next = real::PTHREAD_CREATE.get_or_resolve();
    if next == 0 {
        return libc::EAGAIN;
    }
    // SAFETY: the symbol's type.
    let next = unsafe { mem::transmute::<usize, Create>(next) };
    if before::are_kept() {
        sums::watch_threads();
    }
    let free = || STARTING.iter().find(|start| !start.taken.swap(true, Ordering::Acquire));
    let Some(start) = own_stack().and_then(|creator| {
        let start = free()?;
        start.creator.store(creator, Ordering::Relaxed);
        start.leader.store(pools::leader(routine), Ordering::Relaxed);
        start.serves.store(lent::engages(), Ordering::Relaxed);
        Some(start)
    }) else {
        // SAFETY: handed on as it came.
        return unsafe { next(thread, attributes, routine, argument) };
    };
    start.routine.store(routine as usize, Ordering::Relaxed);
    start.argument.store(argument as usize, Ordering::Release);
    let handle = std::ptr::from_ref(start).cast_mut().cast();
    // SAFETY: it takes what is handed to it.
    let result = unsafe { next(thread, attributes, caulk_heap_thread, handle) };
    if result != 0 {
        start.taken.store(false, Ordering::Release);
    }
    result
}

/// In a forked child: threads that the parent was starting are not on their way here.
pub(crate) fn forget() {
    for start in &STARTING {
        start.taken.store(false, Ordering::Relaxed);
    }
}

/// Number of the calling thread's stack plus 1, where stacks are known.
fn own_stack() -> Option<u32> {
    let mut inside = Inside::enter()?;
    let segment = process::current().ok()?;
    stacks::current(segment, inside.local()).map(|stack| stack + 1)
}

/// The program's own function for a thread, and what it is called with.
#[repr(C)]
struct Call {
    routine: usize,
    argument: *mut c_void,
}

/// What a thread is to remember, and to do then. No reference is left to the place, which is free again.
#[unsafe(no_mangle)]
extern "C" fn caulk_heap_thread_begins(handle: *mut c_void) -> Call {
    // SAFETY: one of the places above, which are never given back.
    let start = unsafe { &*handle.cast::<Start>() };
    let argument = start.argument.load(Ordering::Acquire) as *mut c_void;
    let routine = start.routine.load(Ordering::Relaxed);
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.creator = start.creator.load(Ordering::Relaxed);
    own.leader = start.leader.load(Ordering::Relaxed);
    own.serves = start.serves.load(Ordering::Relaxed);
    start.taken.store(false, Ordering::Release);
    Call { routine, argument }
}

// What a thread does first. It jumps to the program's function: `pthread_exit` and exceptions unwind a thread's stack, and
// find nothing of ours there.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.caulk_heap_thread,\"ax\",@progbits",
    ".hidden caulk_heap_thread",
    ".type caulk_heap_thread, @function",
    "caulk_heap_thread:",
    "sub rsp, 8",
    "call caulk_heap_thread_begins@PLT",
    "add rsp, 8",
    "mov rdi, rdx",
    "jmp rax",
    ".size caulk_heap_thread, . - caulk_heap_thread",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.caulk_heap_thread,\"ax\",@progbits",
    ".hidden caulk_heap_thread",
    ".type caulk_heap_thread, @function",
    "caulk_heap_thread:",
    "stp x29, x30, [sp, #-16]!",
    "bl caulk_heap_thread_begins",
    "ldp x29, x30, [sp], #16",
    "mov x16, x0",
    "mov x0, x1",
    "br x16",
    ".size caulk_heap_thread, . - caulk_heap_thread",
    ".popsection",
);

unsafe extern "C" {
    fn caulk_heap_thread(handle: *mut c_void) -> *mut c_void;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_starts_where_its_library_came_later() {
        real::PTHREAD_CREATE.forget();
        assert_eq!(std::thread::spawn(|| 7).join().ok(), Some(7));
    }
}
