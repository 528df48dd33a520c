//! The armed trace: for a bounded time, which line makes a chosen container grow?
//!
//! Functions whose code mentions the container are watched line by line and its length is compared, so that whatever
//! grows it is caught: a method, an item assignment, `+=`, a slice, a C function that is handed the container, a name
//! bound to a longer value. On 3.12 and later through `sys.monitoring`, before through a native profile function that
//! switches a native trace function on in these functions only. Never over a tracer or profiler of the program's; every
//! failure ends it, with one reason; afterwards nothing is left behind.

use std::sync::Once;
use std::sync::atomic::Ordering;

use pyo3::prelude::*;

mod armed;
mod candidates;
mod codes;
mod engine;
mod monitoring;
mod peak;
mod python;
mod seen;
mod source;
mod tool;
mod tracer;
mod watch;

pub(crate) use python::register;
pub(crate) use seen::{Hit, Limits, PeakHit, Progress};
pub(crate) use watch::{Target, Watch};

use crate::symbols;
use armed::{DEAF, Mechanism, STATE, State, this_thread};
use engine::Engine;
use peak::Peak;
use tool::Tool;

/// Functions of the user that a peak watch looks at.
const PEAK_CANDIDATES: usize = 2000;

/// Arms a trace for these watches; answers with the number of functions that are watched.
///
/// # Errors
/// A sentence fragment that says why it was not armed.
pub(crate) fn arm(py: Python<'_>, watches: Vec<Watch>, limits: &Limits) -> Result<usize, String> {
    ready()?;
    let candidates = candidates::find(py, &watches, limits.max_candidates);
    let engine = Engine::new(py, watches, *limits, candidates);
    if engine.is_empty() {
        return Err("what grows cannot be watched without running the program's own code".into());
    }
    install(py, engine)
}

/// Watches the bytes in use, as `in_use` reads them, for a level above `threshold`; answers with the number of functions
/// that are watched.
///
/// # Errors
/// A sentence fragment that says why it was not armed.
pub(crate) fn arm_peak(py: Python<'_>, threshold: u64, in_use: fn() -> u64) -> Result<usize, String> {
    ready()?;
    let candidates = candidates::of_user(py, PEAK_CANDIDATES);
    install(py, Engine::for_peak(py, Peak::new(threshold, in_use), candidates))
}

/// What was seen so far; also reaches threads that were started since.
pub(crate) fn poll(py: Python<'_>) -> Progress {
    let dropped = STATE.with(|state| {
        if let (Some(engine), Some(mechanism)) = (&mut state.engine, &state.mechanism) {
            match mechanism {
                Mechanism::Monitoring(tool) => tool.check(py, engine),
                Mechanism::Tracer => tracer::reach_new_threads(py, engine),
            }
        }
        state.engine.as_mut().map(|engine| engine.take_dropped(py))
    });
    drop(dropped);
    let progress = STATE.with(|state| state.engine.as_ref().map(|engine| engine.progress(py)));
    progress.flatten().unwrap_or_default()
}

/// Is a trace or a peak watch armed?
pub(crate) fn is_armed() -> bool {
    STATE.with(|state| state.engine.is_some()).unwrap_or(true)
}

/// Ends the trace and drops everything that it referred to.
pub(crate) fn disarm(py: Python<'_>) -> Vec<Hit> {
    remove(py).map_or_else(Vec::new, |mut engine| {
        if engine.stopped.is_none() {
            engine.look_once_more(py, this_thread());
        }
        engine.hits()
    })
}

/// Ends a peak watch; `None` where the threshold was not reached.
pub(crate) fn disarm_peak(py: Python<'_>) -> Option<PeakHit> {
    remove(py)?.take_peak()
}

/// In a forked child: takes off what the parent had armed.
pub(crate) fn after_fork(py: Python<'_>) {
    STATE.release();
    drop(remove(py));
    DEAF.store(false, Ordering::Relaxed);
}

fn ready() -> Result<(), String> {
    prepare();
    if symbols::minor().is_none() {
        return Err("this interpreter is not one that caulk can trace".into());
    }
    if DEAF.load(Ordering::Relaxed) {
        return Err("an earlier trace failed".into());
    }
    if is_armed() {
        return Err("a trace is armed already".into());
    }
    Ok(())
}

/// Has forked children ignore what they inherit until `after_fork` is called.
fn prepare() {
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        DEAF.store(true, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to an atomic, and this library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

fn install(py: Python<'_>, mut engine: Engine) -> Result<usize, String> {
    let count = engine.candidates.len();
    if count == 0 {
        return Err("no function mentions what grows".into());
    }
    engine.enter_running(py);
    let codes: Vec<_> = engine.candidates.values().map(|candidate| candidate.code.clone_ref(py)).collect();
    let busy = || "the trace is in use by another thread".to_owned();
    STATE.with(|state| state.engine = Some(engine)).ok_or_else(busy)?;
    let mechanism = if symbols::minor() >= Some(12) {
        Tool::install(py, codes).map(Mechanism::Monitoring)
    } else {
        tracer::install(py).map(|()| Mechanism::Tracer)
    };
    match mechanism {
        Ok(mechanism) => {
            STATE.with(|state| state.mechanism = Some(mechanism)).ok_or_else(busy)?;
            Ok(count)
        }
        Err(reason) => {
            drop(remove(py));
            Err(reason)
        }
    }
}

/// Takes the mechanism off, then the engine out.
fn remove(py: Python<'_>) -> Option<Engine> {
    let mechanism = take(py, |state| state.mechanism.take());
    match mechanism {
        Some(Mechanism::Monitoring(tool)) => tool.remove(py),
        Some(Mechanism::Tracer) => tracer::remove(py),
        None => {}
    }
    take(py, |state| state.engine.take())
}

/// Takes something out of the state; waits, without the GIL, for an event that another thread is handling.
fn take<T: Send>(py: Python<'_>, part: impl Fn(&mut State) -> Option<T> + Sync) -> Option<T> {
    for _ in 0..1000 {
        let taken = STATE.with(|state| (true, part(state)));
        match taken {
            Some((_, part)) => return part,
            None => py.detach(|| std::thread::sleep(std::time::Duration::from_millis(1))),
        }
    }
    DEAF.store(true, Ordering::Relaxed);
    None
}
