//! Threads remember who made them: what they allocate without Python frames of their own is their maker's doing.

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::local::{Inside, local};
use crate::{lent, real, segment, stacks};

type Routine = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut usize, *const c_void, Routine, *mut c_void) -> c_int;

/// A thread that is being started.
struct Start {
    taken: AtomicBool,
    routine: AtomicUsize,
    argument: AtomicUsize,
    creator: AtomicU32,
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
        serves: AtomicU32::new(0),
    }
}; STARTS];

/// # Safety
/// As in the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut usize,
    attributes: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    let next = real::PTHREAD_CREATE.get();
    if next == 0 {
        return libc::EAGAIN;
    }
    // SAFETY: the symbol's type.
    let next = unsafe { mem::transmute::<usize, Create>(next) };
    let free = || STARTING.iter().find(|start| !start.taken.swap(true, Ordering::Acquire));
    let Some(start) = own_stack().and_then(|creator| {
        let start = free()?;
        start.creator.store(creator, Ordering::Relaxed);
        start.serves.store(lent::engages(), Ordering::Relaxed);
        Some(start)
    }) else {
        // SAFETY: handed on as it came.
        return unsafe { next(thread, attributes, routine, argument) };
    };
    start.routine.store(routine as usize, Ordering::Relaxed);
    start.argument.store(argument as usize, Ordering::Release);
    let handle = std::ptr::from_ref(start).cast_mut().cast();
    // SAFETY: `first` takes what is handed to it.
    let result = unsafe { next(thread, attributes, first, handle) };
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
    let segment = segment::current().ok()?;
    stacks::current(segment, inside.local()).map(|stack| stack + 1)
}

/// What a thread does first.
// `pthread_exit` unwinds through here.
extern "C-unwind" fn first(handle: *mut c_void) -> *mut c_void {
    // SAFETY: one of the places above, which are never given back.
    let start = unsafe { &*handle.cast::<Start>() };
    let argument = start.argument.load(Ordering::Acquire) as *mut c_void;
    // SAFETY: what the program wanted to be called.
    let routine = unsafe { mem::transmute::<usize, Routine>(start.routine.load(Ordering::Relaxed)) };
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.creator = start.creator.load(Ordering::Relaxed);
    own.serves = start.serves.load(Ordering::Relaxed);
    start.taken.store(false, Ordering::Release);
    routine(argument)
}
