//! What Python calls: the session's side of `caulk._agent`.

use caulk_wire::{
    BackwardSite, Bye, CodePlace, Hello, LoopSite, NoteCode, PROTOCOL, Phase, Rank, SOCKET_VARIABLE, Unit,
};
use pyo3::prelude::*;

use super::cut::Cut;
use super::guard::{SESSION, disarm, guarded};
use super::{Session, last};
use crate::stopwatch::monotonic;
use crate::{board, census, clock, exhausted, frames, heap, passes, trace};

/// Connects to the supervisor and says hello; false where there is none.
#[pyfunction]
fn start(py: Python<'_>, settings: &str, argv: Vec<String>, rank: Option<u32>, worker: Option<u32>) -> bool {
    // Panics are caught where Python calls in; the default hook would print into the program's standard error. It is
    // this library's own: its copy of the standard library serves nobody else.
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(path) = std::env::var(SOCKET_VARIABLE) else { return false };
    let version = py.version_info();
    let mut session = Session::new(path);
    session.trims = settings.split(';').any(|setting| setting == "trim=1");
    guarded(|before| session.succeed(before, before.shares.is_some()));
    let executable: Option<String> = crate::heap::loaded(py, "sys")
        .and_then(|sys| crate::heap::member(&sys, "executable")?.extract().ok());
    let hello = Hello {
        protocol: PROTOCOL,
        pid: std::process::id(),
        // SAFETY: always succeeds.
        parent: unsafe { libc::getppid() }.unsigned_abs(),
        time_ns: monotonic().as_nanos() as u64,
        python: format!("{}.{}.{}", version.major, version.minor, version.patch),
        executable: executable.unwrap_or_default(),
        argv,
        rank,
        worker,
        allocator: session.meter.allocator_name().into(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    session.channel.send(&hello.into());
    let connected = !session.channel.is_closed();
    // Tried out now: later the heap's addresses may be held, while no Python code may run.
    frames::usable(py);
    session.begin_sampling(py);
    SESSION.put(session);
    connected
}

/// Cuts a boundary: `unit` 0 epoch, 1 steps, 2 seconds; `level` 1 asks for a census where the budget allows; `of` is the
/// process whose boundary it is, for one that works for another.
#[pyfunction]
#[pyo3(signature = (unit, index, steps, phase, level, of = 0))]
fn boundary(
    py: Python<'_>,
    unit: u32,
    index: u64,
    steps: u64,
    phase: u32,
    level: u32,
    of: u32,
) -> PyResult<()> {
    let unit = Unit::ALL.get(unit as usize).copied().unwrap_or_default();
    let phase = Phase::ALL.get(phase as usize).copied().unwrap_or_default();
    let cut = Cut { unit, index, steps, phase, of, with_census: level > 0, last: None };
    // Only what the program itself must see comes back: Ctrl-C and the like while a Python function was called.
    guarded(|session| session.boundary(py, cut)).unwrap_or(Ok(()))
}

/// How far another process is, if it has told: one more than the number of the last epoch and of the last step at which
/// it cut a boundary, and its optimizer steps then.
#[pyfunction]
fn progress_of(pid: u32) -> Option<(u64, u64, u64)> {
    let progress = board::entry_of(pid)?.progress();
    Some((progress.epoch, progress.step, progress.steps))
}

/// An optimizer step went by: an armed trace that has seen enough is taken down.
#[pyfunction]
fn step(py: Python<'_>, steps: u64) -> PyResult<()> {
    if trace::is_armed() {
        guarded(|session| session.suspects.finish_trace_if_enough(py, &mut session.channel));
    }
    last::stepped(py, steps)
}

/// The process has this rank in a distributed job.
#[pyfunction]
#[pyo3(name = "rank")]
fn has_rank(rank: u32) {
    guarded(|session| session.channel.send(&Rank { rank }.into()));
}

/// A loop of the program was recognised.
#[pyfunction]
#[pyo3(name = "loop")]
fn loop_site(unit: u32, file: String, line: u32, function: String, variable: String, source: String) {
    let unit = Unit::ALL.get(unit as usize).copied().unwrap_or_default();
    guarded(|session| {
        session.channel.send(&LoopSite { unit, file, line, function, variable, source }.into());
    });
}

/// A line of the program starts backward passes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one call from Python; the fields of one message")]
fn backward_site(
    file: String,
    line: u32,
    function: String,
    count: u64,
    retain_graph: bool,
    create_graph: bool,
    stale: u64,
    checked: u64,
) {
    guarded(|session| {
        let site = BackwardSite {
            file,
            line,
            function,
            count,
            retain_graph,
            create_graph,
            stale_gradients: stale,
            checked,
        };
        session.channel.send(&site.into());
    });
}

/// The program has made a segment of shared memory.
#[pyfunction]
fn made_segment(py: Python<'_>, name: &str) {
    let place = frames::user_frame(py).map(|frames::Place { file, line, function }| CodePlace {
        file,
        line,
        function,
    });
    guarded(|session| session.segments.made(name, place.unwrap_or_default()));
}

/// The process ends in an orderly way.
#[pyfunction]
fn bye(py: Python<'_>, steps: u64, epochs: u64) -> PyResult<()> {
    let looked = guarded(|session| session.look_once_more(py)).unwrap_or(Ok(()));
    guarded(|session| {
        session.suspects.finish_trace(py, &mut session.channel);
        session.suspects.finish_peak(py, &mut session.channel);
        if session.channel.dropped() > 0 {
            let text = format!(
                "{} of the agent's messages were dropped because caulk could not keep up: what they said is missing here",
                session.channel.dropped()
            );
            session.note(NoteCode::MessagesDropped, &text);
        }
        session.say_what_was_left_out();
        if let Some(error) = exhausted::uncaught(py) {
            session.channel.send(&error.into());
        }
        if exhausted::for_want_of_memory(py) {
            session.note(
                NoteCode::MemoryError,
                "an error for want of memory ended the program: nobody caught it",
            );
        }
        let bye = Bye {
            steps,
            epochs,
            cost_ns: session.budget.taken().as_nanos() as u64,
            longest_pause_ns: session.budget.longest().as_nanos() as u64,
        };
        session.channel.send(&bye.into());
    });
    looked
}

/// Caulk has failed somewhere: whatever is armed is taken off, and nothing is armed again.
#[pyfunction]
fn stop(py: Python<'_>) {
    guarded(|session| session.end(py));
    disarm(py);
}

/// In the child of a fork: a process of its own, that has said nothing yet.
#[pyfunction]
fn after_fork(py: Python<'_>) {
    SESSION.release();
    census::resume_collector_after_fork();
    heap::write_no_more();
    trace::after_fork(py);
    clock::after_fork();
    passes::after_fork();
    guarded(|session| {
        session.channel.after_fork();
        let channel = std::mem::take(&mut session.channel);
        let mut child = Session { channel, ..Session::new(String::new()) };
        child.succeed(session, true);
        *session = child;
    });
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(start, module)?,
        wrap_pyfunction!(boundary, module)?,
        wrap_pyfunction!(progress_of, module)?,
        wrap_pyfunction!(step, module)?,
        wrap_pyfunction!(has_rank, module)?,
        wrap_pyfunction!(loop_site, module)?,
        wrap_pyfunction!(backward_site, module)?,
        wrap_pyfunction!(made_segment, module)?,
        wrap_pyfunction!(bye, module)?,
        wrap_pyfunction!(stop, module)?,
        wrap_pyfunction!(after_fork, module)?,
    ] {
        module.add_function(function)?;
    }
    super::hook_notes::register(module)?;
    super::refused::register(module)?;
    super::asked::register(module)
}
