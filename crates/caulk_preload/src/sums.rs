//! How much malloc has handed out: exact sums of bytes and blocks, kept at every allocation.
//!
//! What a block takes stands in its head ([`Chunk`]), and each thread adds it up in a line of its own of the shared
//! memory: two additions per call, and nobody waits for anybody. What was there before this library was comes from
//! `mallinfo2`, once. Only on glibc's own malloc, whose heads are known.
//!
//! A thread's line is found in its thread-local storage, where it is null at first. Then, before the process has its slot, and
//! when the thread has ended or found no line, it adds to a line of all threads, at the price of an atomic addition.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::before::{BEFORE, KEPT, are_kept, hand_on};
use crate::chunk::{Chunk, Sums};
use crate::line::Line;
use crate::local::{Local, local};
use crate::python::symbol;
use crate::slot::Segment;
use crate::{heads, real, sampler, state};

/// Begins, where blocks can be counted: with what is handed out by now. Other threads are not there yet.
pub(crate) fn start() {
    if cfg!(feature = "bench-without-sums")
        || !state::is_meant_to_be()
        || !real::is_libc()
        || !heads::reads_right()
    {
        return;
    }
    if let Some((bytes, singly)) = real::handed_out() {
        BEFORE.add([bytes, 0, singly]);
        watch_threads();
        KEPT.store(true, Ordering::Release);
    }
}

/// A block was handed out, unless it is null.
#[inline]
pub(crate) fn allocated(block: *mut c_void) {
    if !block.is_null() {
        count(block, 1);
    }
}

/// A block is about to be given back, unless it is null. Not for what [`real::boot_size`] knows.
#[inline]
pub(crate) fn freed(block: *mut c_void) {
    if !block.is_null() {
        count(block, -1);
    }
}

#[inline]
fn count(block: *mut c_void, blocks: i64) {
    if cfg!(feature = "bench-without-sums") {
        return;
    }
    match line() {
        Some(line) => {
            // SAFETY: lines are handed out only where the allocator is glibc's.
            let chunk = unsafe { Chunk::of(block) };
            line.count(chunk, blocks);
        }
        None => count_elsewhere(block, blocks),
    }
}

/// The calling thread's line, where it has one.
#[inline]
fn line() -> Option<&'static Line> {
    // SAFETY: this thread's own, for the length of a statement.
    unsafe { local().as_ref() }.line
}

/// What a block takes, before it is resized; `None` where nothing is counted.
pub(crate) fn size(block: *mut c_void) -> Option<Sums> {
    if block.is_null() || !are_kept() || real::boot_size(block).is_some() {
        return None;
    }
    // SAFETY: sums are kept only where the allocator is glibc's.
    Some(unsafe { Chunk::of(block) }.sums(1))
}

/// A block was resized, which took so much before; `size` is what was asked for.
pub(crate) fn moved(old: Option<Sums>, new: *mut c_void, size: usize) {
    // Nothing comes of nothing asked for, and else of a failure: then the block is as it was.
    if new.is_null() && size > 0 {
        return;
    }
    if let Some(old) = old {
        add(old.map(|sum| -sum));
    }
    allocated(new);
}

/// Where the thread has no line, or not yet.
#[cold]
fn count_elsewhere(block: *mut c_void, blocks: i64) {
    if are_kept() {
        // SAFETY: sums are kept only where the allocator is glibc's.
        let chunk = unsafe { Chunk::of(block) };
        add(chunk.sums(blocks));
    }
}

fn add(sums: Sums) {
    match (line().or_else(find_line), state::active()) {
        (Some(line), _) => line.add_own(sums),
        (None, Some(segment)) => segment.common_line().add(sums),
        (None, None) => {
            BEFORE.add(sums);
            // The slot may be there by now, and what was counted before it was handed on.
            hand_on();
        }
    }
}

/// A line for a thread that has none yet, nor has given it back.
fn find_line() -> Option<&'static Line> {
    if state::active().is_none() {
        sampler::claim();
    }
    let segment = state::active()?;
    // SAFETY: this thread's own, and nobody else has a hold of it here.
    let own = unsafe { local().as_mut() };
    if own.lineless > 0 {
        return None;
    }
    own.line = segment.own_line();
    own.lineless = u32::from(own.line.is_none());
    let line = own.line?;
    // After it is known: this may allocate.
    remember(line);
    Some(line)
}

/// What is handed out now; `None` where that is not counted.
pub(crate) fn all() -> Option<Sums> {
    if !are_kept() {
        return None;
    }
    let lines = state::active().into_iter().flat_map(Segment::lines);
    let add = |sum: Sums, line: &Line| {
        let more = line.sums();
        std::array::from_fn(|at| sum[at].wrapping_add(more[at]))
    };
    Some(lines.fold(BEFORE.sums(), add))
}

/// The calling thread is about to fork: what it sees handed out is what its child begins with.
pub(crate) fn before_fork() {
    // SAFETY: this thread's own.
    unsafe { local().as_mut() }.at_fork = all().unwrap_or_default();
}

/// In a forked child, whose lines are its parent's: it has what the parent had.
pub(crate) fn begin_anew(own: &Local) {
    BEFORE.take();
    BEFORE.add(own.at_fork);
}

type Destructor = extern "C" fn(*mut c_void);
type CreateKey = unsafe extern "C" fn(*mut c_int, Destructor) -> c_int;
type SetSpecific = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// One more than the number by which a thread's end is noticed; 0 where none is.
static KEY: AtomicU32 = AtomicU32::new(0);
/// `pthread_setspecific`, known where there is a key: a thread that looked it up might wait for the loader.
static SET_SPECIFIC: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Sees to it that the ends of threads are noticed. glibc before 2.34 has a library for threads, which may come later.
pub(crate) fn watch_threads() {
    if KEY.load(Ordering::Relaxed) > 0 {
        return;
    }
    let found = (symbol(c"pthread_key_create"), symbol(c"pthread_setspecific"));
    let (Some(create), Some(set)) = found else { return };
    SET_SPECIFIC.store(set, Ordering::Relaxed);
    // SAFETY: the symbol's type; keys are numbers from 0 on.
    let create = unsafe { mem::transmute::<*mut c_void, CreateKey>(create) };
    let mut key = 0;
    // SAFETY: a place for the key, and a function that stays loaded.
    if unsafe { create(&raw mut key, thread_ends) } == 0 {
        KEY.store(key.cast_unsigned() + 1, Ordering::Release);
    }
}

/// Has the calling thread's end noticed: it has this line to release then.
fn remember(line: &'static Line) {
    let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) else { return };
    // SAFETY: the symbol's type, found before the key was made.
    let set = unsafe { mem::transmute::<*mut c_void, SetSpecific>(SET_SPECIFIC.load(Ordering::Relaxed)) };
    // SAFETY: a key from above; of the value only that it is not null is of account.
    unsafe { set(key.cast_signed(), ptr::from_ref(line).cast()) };
}

/// The thread's line goes to another one. What it still allocates, here or in others' such functions, is counted in the
/// line of all.
extern "C" fn thread_ends(_line: *mut c_void) {
    // SAFETY: this thread's own.
    let own = unsafe { local().as_mut() };
    own.lineless = 1;
    if let Some(line) = own.line.take() {
        line.release();
    }
}
