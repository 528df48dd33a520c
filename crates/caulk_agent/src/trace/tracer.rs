//! Events of candidates on 3.10 and 3.11: a native profile function that switches a native trace function on while a
//! candidate's own frame runs, and off while it calls other functions.
//!
//! A trace function that were always there would be asked at every instruction of every function. Both fields of a
//! thread's state must be empty at first and are given up at once where the program sets one: then the thread is left
//! alone and the trace ends.

use std::os::raw::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::armed::on_event;
use super::engine::{Engine, Event};
use crate::heap::Address;
use crate::symbols::{self, TraceFunction};

/// Kinds of events (CPython, Include/cpython/pystate.h).
const CALL: c_int = 0;
const LINE: c_int = 2;
const RETURN: c_int = 3;

/// Byte offset of `c_profilefunc` in `struct _ts`; `c_tracefunc` follows (Include/cpython/pystate.h, 64-bit).
fn profile_offset() -> Option<usize> {
    match symbols::minor()? {
        10 => Some(56),
        11 => Some(64),
        _ => None,
    }
}

const IN_USE: &str = "a debugger, coverage or a profiler is in use, without which caulk could watch it";
const TAKEN: &str = "the program set a tracer or profiler of its own";

/// Looks at a state that another thread is filling: it needs nothing for that but the processor.
const PATIENCE: usize = 10_000;

/// The two functions of a thread's state.
#[derive(Clone, Copy)]
struct Thread {
    state: *mut ffi::PyThreadState,
    profile: *mut Address,
    trace: *mut Address,
}

impl Thread {
    fn of(state: *mut ffi::PyThreadState) -> Option<Self> {
        let profile = state as Address + profile_offset()?;
        (!state.is_null()).then_some(Self {
            state,
            profile: profile as *mut Address,
            trace: (profile + size_of::<Address>()) as *mut Address,
        })
    }

    fn current() -> Option<Self> {
        // SAFETY: the GIL is held.
        Self::of(unsafe { ffi::PyThreadState_Get() })
    }

    fn all() -> Vec<Self> {
        let (Some(head), Some(next)) = (symbols::thread_head(), symbols::thread_next()) else {
            return Vec::new();
        };
        let live = |state: *mut ffi::PyThreadState| (!state.is_null()).then_some(state);
        let first = (0..PATIENCE).find_map(|_| {
            // SAFETY: the GIL is held: threads do not go, and this one stays.
            let newest = Self::of(unsafe { head(ffi::PyInterpreterState_Get()) })?;
            let filled = newest.is_filled();
            if !filled {
                std::thread::yield_now();
            }
            filled.then_some(newest.state)
        });
        // SAFETY: as above; a live thread's state, and those before it in the list are filled.
        let states = std::iter::successors(first, |state| live(unsafe { next(*state) }));
        states.filter_map(Self::of).collect()
    }

    /// A native thread makes its state without the GIL, and 3.11 puts it into the list before it is filled: whose
    /// `cframe`, which is before `c_profilefunc`, is still null.
    fn is_filled(self) -> bool {
        // SAFETY: a field of a state in the list; another thread may be writing it, which is a store of one word.
        unsafe { self.profile.sub(1).read_volatile() != 0 }
    }

    fn profile(self) -> Address {
        // SAFETY: a field of a live thread's state; the GIL is held.
        unsafe { *self.profile }
    }

    fn trace(self) -> Address {
        // SAFETY: a field of a live thread's state; the GIL is held.
        unsafe { *self.trace }
    }

    /// Switches line events on or off. The profile function stays, so that the interpreter's "is anything traced" flag
    /// needs no change.
    fn set_lines(self, on: bool) {
        // SAFETY: a field of a live thread's state, null or our own function; its argument is null in both cases.
        unsafe { *self.trace = if on { TRACE as Address } else { 0 } };
    }

    fn is_free(self) -> bool {
        self.profile() == 0 && self.trace() == 0
    }

    /// Another trace function than ours, or another profile function.
    fn is_taken(self) -> bool {
        self.profile() != PROFILE as Address || ![0, TRACE as Address].contains(&self.trace())
    }

    fn enter(self) -> bool {
        let Some(set_profile) = symbols::set_profile() else { return false };
        // SAFETY: a live thread's state; the GIL is held. The argument is null, so that `sys.getprofile()` is `None`.
        unsafe { set_profile(self.state, Some(PROFILE), std::ptr::null_mut()) == 0 }
    }

    /// Takes off what is ours and nothing else.
    fn leave(self) {
        if self.trace() == TRACE as Address {
            self.set_lines(false);
        }
        if self.profile() != PROFILE as Address {
            return;
        }
        let set_profile = symbols::set_profile();
        // SAFETY: as in `enter`.
        let removed =
            set_profile.is_some_and(|set| unsafe { set(self.state, None, std::ptr::null_mut()) } == 0);
        if !removed {
            // An audit hook objected: the interpreter skips an empty field, whatever its flag says.
            // SAFETY: a field of a live thread's state.
            unsafe { *self.profile = 0 };
        }
    }
}

const PROFILE: TraceFunction = on_profile;
const TRACE: TraceFunction = on_trace;

pub(super) fn install(py: Python<'_>) -> Result<(), String> {
    let own = Thread::current().ok_or("the layout of this interpreter's threads is not known")?;
    if has_tracer(py) {
        return Err(IN_USE.into());
    }
    // Tried on the own thread, of which it is known from Python that both are empty.
    if own.is_free() && !own.enter() {
        drop(PyErr::take(py));
        return Err("an audit hook of the program objects to a profile function".into());
    }
    if own.profile() != PROFILE as Address || own.trace() != 0 {
        if let Some(set_profile) = symbols::set_profile() {
            // SAFETY: as in `Thread::enter`; there was none before.
            unsafe { set_profile(own.state, None, std::ptr::null_mut()) };
        }
        return Err("the layout of this interpreter's threads is not known".into());
    }
    let others: Vec<_> = Thread::all().into_iter().filter(|thread| thread.state != own.state).collect();
    if !others.iter().all(|thread| thread.is_free()) {
        own.leave();
        return Err(IN_USE.into());
    }
    for thread in others {
        thread.enter();
    }
    drop(PyErr::take(py));
    NEWEST.store(newest(), Ordering::Relaxed);
    switch_running_on();
    Ok(())
}

/// `sys.gettrace()` or `sys.getprofile()` of this thread.
fn has_tracer(py: Python<'_>) -> bool {
    [c"gettrace", c"getprofile"].into_iter().any(|name| {
        // SAFETY: returns a borrowed reference or null.
        let getter = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(name.as_ptr())) };
        getter.and_then(|getter| getter.call0().ok()).is_none_or(|tracer| !tracer.is_none())
    })
}

/// A thread whose innermost frame is a candidate gets its lines from now on; the others when they return to one.
fn switch_running_on() {
    // The calling thread is inside caulk; which other thread runs which frame is told by its next call or return.
    // Threads that loop in a candidate without calling anything are reached through the lines switched on here.
    for thread in Thread::all() {
        if thread.profile() == PROFILE as Address && thread.trace() == 0 {
            thread.set_lines(true);
        }
    }
}

/// State of the newest thread when the threads were last gone through: new ones come first in the list.
static NEWEST: AtomicUsize = AtomicUsize::new(0);

fn newest() -> Address {
    // SAFETY: the GIL is held.
    symbols::thread_head().map_or(0, |head| unsafe { head(ffi::PyInterpreterState_Get()) } as Address)
}

/// Threads that were started since are profiled too, unless somebody else does.
pub(super) fn reach_new_threads(py: Python<'_>, engine: &mut Engine) {
    NEWEST.store(newest(), Ordering::Relaxed);
    if engine.stopped.is_some() {
        return;
    }
    for thread in Thread::all() {
        if thread.is_free() {
            thread.enter();
        } else if thread.is_taken() {
            engine.stopped = Some(TAKEN.into());
        }
    }
    drop(PyErr::take(py));
}

pub(super) fn remove(py: Python<'_>) {
    for thread in Thread::all() {
        thread.leave();
    }
    // What an audit hook raised must not reach the program.
    drop(PyErr::take(py));
}

/// Profile function of every thread: follows calls and returns, of C functions only to notice new threads.
unsafe extern "C" fn on_profile(
    _: *mut ffi::PyObject,
    frame: *mut ffi::PyFrameObject,
    what: c_int,
    _: *mut ffi::PyObject,
) -> c_int {
    let Some(state) = Thread::current() else { return 0 };
    if state.is_taken() {
        yield_to_program(state);
        return 0;
    }
    // Right after a thread was started, its starter's call returns.
    if newest() != NEWEST.load(Ordering::Relaxed) {
        on_event(|py, engine, _| reach_new_threads(py, engine));
    }
    if what == CALL || what == RETURN {
        on_event(|py, engine, thread| {
            let code = code_of(frame);
            let lines = if what == CALL {
                enter_function(py, engine, thread, frame as Address, code)
            } else {
                leave_function(py, engine, thread, frame as Address, code)
            };
            if let Some(lines) = lines {
                state.set_lines(lines);
            }
        });
    }
    0
}

/// Trace function of the threads whose innermost frame is a candidate.
unsafe extern "C" fn on_trace(
    _: *mut ffi::PyObject,
    frame: *mut ffi::PyFrameObject,
    what: c_int,
    _: *mut ffi::PyObject,
) -> c_int {
    let Some(state) = Thread::current() else { return 0 };
    if state.is_taken() {
        yield_to_program(state);
    } else if what == LINE {
        on_event(|py, engine, thread| {
            let code = code_of(frame);
            if !engine.candidates.contains_key(&code) {
                state.set_lines(false);
                return;
            }
            // SAFETY: the frame runs; during a line event it knows its line.
            let line = unsafe { ffi::PyFrame_GetLineNumber(frame) };
            engine.handle(py, thread, frame as Address, code, Event::Line(line.max(0) as u32));
        });
    }
    0
}

/// A call: whether lines are wanted from here on, if that changes.
fn enter_function(
    py: Python<'_>,
    engine: &mut Engine,
    thread: Address,
    frame: Address,
    code: Address,
) -> Option<bool> {
    if engine.candidates.contains_key(&code) {
        // SAFETY: the frame runs.
        let line = unsafe { ffi::PyFrame_GetLineNumber(frame as *mut ffi::PyFrameObject) };
        engine.handle(py, thread, frame, code, Event::Start(line.max(0) as u32));
        return Some(true);
    }
    let entry = engine.tracks.get_mut(&thread)?.stack.last_mut()?;
    entry.above += 1;
    (entry.above == 1).then_some(false)
}

/// A return, a yield or an exception: whether lines are wanted from here on, if that changes.
fn leave_function(
    py: Python<'_>,
    engine: &mut Engine,
    thread: Address,
    frame: Address,
    code: Address,
) -> Option<bool> {
    if engine.candidates.contains_key(&code) {
        engine.handle(py, thread, frame, code, Event::Leave);
        let entry = engine.tracks.get(&thread).and_then(|track| track.stack.last());
        return Some(entry.is_some_and(|entry| entry.above == 0));
    }
    let entry = engine.tracks.get_mut(&thread)?.stack.last_mut()?;
    entry.above = entry.above.saturating_sub(1);
    (entry.above == 0).then_some(true)
}

/// The program set a tracer or a profiler: this thread is left to it, and the trace is over.
fn yield_to_program(state: Thread) {
    state.leave();
    on_event(|_, engine, _| engine.stopped = Some(TAKEN.into()));
}

fn code_of(frame: *mut ffi::PyFrameObject) -> Address {
    // SAFETY: the frame runs; a new reference, which the frame's own outlives.
    let code = unsafe { ffi::PyFrame_GetCode(frame) };
    // SAFETY: drops the reference just taken; the frame still has its own.
    unsafe { ffi::Py_DECREF(code.cast()) };
    code as Address
}
