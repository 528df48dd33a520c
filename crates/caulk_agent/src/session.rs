//! The agent's memory of a process: what it has seen grow, what it has said, what it may still spend.
//!
//! `caulk._bootstrap` calls in at boundaries and steps. Everything else follows from there: a reading of the bytes in
//! use, a census where the budget allows, a look at what grows, and an armed trace for the line that does it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use caulk_wire::{
    BackwardSite, Boundary, Bye, Hello, LoopSite, Note, PROTOCOL, Phase, SOCKET_VARIABLE, TypeCount, Types,
    Unit,
};
use pyo3::prelude::*;

use crate::budget::{Budget, monotonic, thread_time};
use crate::census::{self, Census, CollectorPaused, Tracker};
use crate::channel::Channel;
use crate::exclusive::Exclusive;
use crate::graphs::Graphs;
use crate::heap::{Address, AddressMap, Heap};
use crate::in_use::{Meter, Reading};
use crate::replaced::Replaced;
use crate::suspects::Suspects;
use crate::torch::Torch;
use crate::{cuda, frames, trace};

static SESSION: Exclusive<Session> = Exclusive::new();

/// Runs `action` on the session. A panic in it ends the session, not the program: nothing of it reaches Python.
fn guarded<R>(action: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let result = catch_unwind(AssertUnwindSafe(|| SESSION.with(action)));
    result.unwrap_or_else(|_| {
        SESSION.clear();
        Python::attach(|py| {
            drop(trace::disarm(py));
            drop(trace::disarm_peak(py));
        });
        None
    })
}

/// CPU time that a census of an unknown heap is taken to cost: of a process with torch, and per block of pymalloc.
const TYPICAL_CENSUS: Duration = Duration::from_millis(40);
const CENSUS_PER_BLOCK: Duration = Duration::from_nanos(60);
/// Part of the budget that censuses at steps and seconds leave for the epochs.
const RESERVE: Duration = Duration::from_millis(250);
/// Types reported per census: the largest, and as many of the fastest growing.
const TYPE_ROWS: usize = 16;

/// Boundaries at which a census is always taken: something must be there to compare with.
const FIRST: u32 = 3;
/// Steps that take so many times as long as a census are looked at as epochs are.
const SLOW: u32 = 4;
/// Growth since the last census, in bytes, that makes the next one worth its cost.
const WORTH: u64 = 128 << 10;
/// Steps or seconds in a row at which memory must have risen before a census is taken there.
const RISES: u32 = 2;
/// Time between two censuses at steps or seconds, in times of what one costs.
const REST: u32 = 10;
/// ... but for the first few: three make a candidate, and two more a series.
const FIRST_LOOKS: u32 = 5;
/// Boundaries by seconds at the beginning of a program, while it imports.
const IMPORTS: u32 = 12;
/// An epoch without growth is looked at all the same once in so many.
const SELDOM: u32 = 4;

/// How memory has moved over the boundaries of one unit: censuses are taken where growth is suspected.
#[derive(Debug, Default, Clone, Copy)]
struct Trend {
    boundaries: u32,
    rises: u32,
    last: u64,
    /// Level at the last census.
    looked: u64,
    since: u32,
    /// When the last boundary and the last census were.
    at: Duration,
    looked_at: Duration,
    /// Censuses so far.
    looks: u32,
}

impl Trend {
    /// Takes in the next boundary; is a census worth its cost?
    fn take(&mut self, unit: Unit, level: u64, cost: Duration) -> bool {
        let now = monotonic();
        // A census at each of these would be a small part of the time between them.
        let slow = self.boundaries > 0 && now.saturating_sub(self.at) > cost * SLOW;
        self.at = now;
        self.boundaries += 1;
        self.since += 1;
        self.rises = if level > self.last + (WORTH >> 2) && self.last > 0 { self.rises + 1 } else { 0 };
        self.last = level;
        let regular = self.boundaries <= FIRST || level > self.looked + WORTH || self.since >= SELDOM;
        // Within an epoch much is made and freed again: only what rises and rises is looked into.
        let worth = if unit == Unit::Epoch || slow { regular } else { self.rises >= RISES };
        // Finer boundaries must not use up what the epochs need.
        let rested = unit == Unit::Epoch
            || self.looks < FIRST_LOOKS
            || now.saturating_sub(self.looked_at) > cost * REST;
        // Imports make memory rise second by second.
        let imported = unit != Unit::Seconds || self.boundaries > IMPORTS;
        let worth = worth && imported;
        if worth && rested {
            self.looked = level;
            self.looked_at = now;
            self.looks += 1;
            self.since = 0;
        }
        worth && rested
    }
}

/// What one process has told so far.
struct Session {
    channel: Channel,
    meter: Meter,
    budget: Budget,
    tracker: Tracker,
    /// Unit that the tracker's censuses were taken at.
    tracked: Unit,
    graphs: Graphs,
    replaced: Replaced,
    suspects: Suspects,
    types: AddressMap<u64>,
    seq: u32,
    epochs: u64,
    census_cost: Option<Duration>,
    /// Boundaries at which the last censuses were taken, newest first.
    censuses: Vec<u32>,
    mean_small: Option<f64>,
    /// How memory has moved from boundary to boundary, by unit.
    trends: [Trend; 3],
    in_use: u64,
    no_census: bool,
}

impl Session {
    fn new(path: String) -> Self {
        Self {
            channel: Channel::new(path),
            meter: Meter::new(),
            budget: Budget::default(),
            tracker: Tracker::default(),
            tracked: Unit::Seconds,
            graphs: Graphs::default(),
            replaced: Replaced::default(),
            suspects: Suspects::default(),
            types: AddressMap::default(),
            seq: 0,
            epochs: 0,
            census_cost: None,
            censuses: Vec::new(),
            mean_small: None,
            trends: [Trend::default(); 3],
            in_use: 0,
            no_census: false,
        }
    }

    fn boundary(
        &mut self,
        py: Python<'_>,
        unit: Unit,
        index: u64,
        steps: u64,
        phase: Phase,
        with_census: bool,
    ) -> PyResult<()> {
        if self.channel.is_closed() {
            // Nobody listens any more: nothing is worth its cost.
            self.suspects.finish_trace(py, &mut self.channel);
            self.suspects.finish_peak(py, &mut self.channel);
            return Ok(());
        }
        self.budget.begin();
        let started = thread_time();
        let reading = self.meter.read(py, &self.budget);
        let (cuda_allocated_bytes, cuda_reserved_bytes) = cuda::memory(py)?;
        if unit == Unit::Epoch {
            self.epochs += 1;
        }
        if self.mean_small.is_none() {
            // Once, before the first figures: a mean that changed later would look like growth.
            let _paused = CollectorPaused::new(py);
            let worth = self.budget.allows(predicted_cost(reading.small_blocks), Duration::ZERO);
            self.mean_small = Some(if worth { census::mean_small_object(&mut Heap::new(py)) } else { 64.0 });
        }
        let level = self.level(reading);
        // Time may cut a boundary on one thread while another runs a backward pass without the GIL: tensors that it is
        // letting go of must not be touched then. Programs with torch have steps to be looked at.
        let beside = unit == Unit::Seconds && crate::heap::loaded(py, "torch").is_some();
        let with_census = with_census
            && !beside
            && unit <= self.tracked
            && self.trends[unit as usize].take(unit, level, self.census_cost.unwrap_or(TYPICAL_CENSUS));
        if with_census {
            self.track(unit);
        }
        if unit <= self.tracked || self.suspects.trace_is_overdue() {
            self.suspects.finish_trace(py, &mut self.channel);
        }
        if unit == Unit::Epoch {
            self.suspects.finish_peak(py, &mut self.channel);
        }
        let seq = self.seq;
        self.seq += 1;
        let _paused = CollectorPaused::new(py);
        let mut heap = Heap::new(py);
        let reserve = if unit == Unit::Epoch { Duration::ZERO } else { RESERVE };
        let census = self.census(&mut heap, with_census, reserve, reading.small_blocks);
        let mut boundary = Boundary {
            seq,
            time_ns: monotonic().as_nanos() as u64,
            unit,
            index,
            steps,
            phase,
            cuda_allocated_bytes,
            cuda_reserved_bytes,
            census_objects: census.as_ref().map_or(0, |census| census.objects),
            ..self.figures(reading)
        };
        self.in_use = level;
        boundary.cost_ns = thread_time().saturating_sub(started).as_nanos() as u64;
        self.channel.send(&boundary.into());
        if let Some(census) = census {
            self.compare(&mut heap, &census, seq);
        }
        if unit == Unit::Epoch && self.epochs > 2 {
            self.suspects.watch_peak(py, seq, self.in_use, reading.headroom());
        }
        self.budget.spend();
        Ok(())
    }

    /// Censuses by seconds, steps and epochs are compared each with their own kind, the coarsest phase that the program
    /// has: within an epoch many lists grow and are freed.
    fn track(&mut self, unit: Unit) {
        if unit < self.tracked {
            self.tracked = unit;
            self.tracker = Tracker::default();
            self.censuses.clear();
        }
    }

    /// Bytes in use on the heap.
    fn level(&self, reading: Reading) -> u64 {
        reading.malloc + (reading.small_blocks as f64 * self.mean_small.unwrap_or(64.0)) as u64
    }

    fn figures(&self, reading: Reading) -> Boundary {
        let small = reading.small_blocks as f64 * self.mean_small.unwrap_or(64.0);
        Boundary {
            malloc_bytes: reading.malloc,
            malloc_free_bytes: reading.malloc_free,
            small_blocks: reading.small_blocks,
            small_bytes: small as u64,
            shm_bytes: reading.shm,
            rss_bytes: reading.rss,
            ..Boundary::default()
        }
    }

    fn census(
        &mut self,
        heap: &mut Heap<'_>,
        wanted: bool,
        reserve: Duration,
        blocks: u64,
    ) -> Option<Census> {
        let predicted = predicted_cost(blocks);
        if !wanted || self.no_census || !self.budget.allows(self.census_cost.unwrap_or(predicted), reserve) {
            return None;
        }
        let started = thread_time();
        let census = census::take(heap, &self.suspects.owners());
        self.census_cost = Some(thread_time().saturating_sub(started));
        let Some(census) = census else {
            self.no_census = true;
            self.note(
                "census-unavailable",
                "this interpreter's heap cannot be walked safely: no containers are named",
            );
            return None;
        };
        Some(census)
    }

    fn compare(&mut self, heap: &mut Heap<'_>, census: &Census, seq: u32) {
        // Reading a tensor's attribute runs Python code where a mode is active (`torch.set_default_device`): off, until
        // the census's addresses are done with.
        let _overrides_off = Torch::new(heap.py);
        self.censuses.insert(0, seq);
        self.censuses.truncate(census::HISTORY);
        self.send_types(heap, census, seq);
        let renewed = self.replaced.look(heap, census, &self.tracker, &self.suspects, self.in_use, seq);
        let grown = self.tracker.update(census);
        self.suspects.meet_containers(heap, census, &grown, &self.censuses, &mut self.channel);
        self.suspects.confirm_owners(&census.alive);
        self.suspects.follow_names(heap, seq, &mut self.channel);
        self.suspects.meet_renewed(renewed, seq, &mut self.channel);
        let graphs = self.graphs.look(heap, census, &self.tracker, &self.suspects);
        self.suspects.meet_graphs(graphs, seq, &mut self.channel);
        self.suspects.explain(heap, seq, self.epochs, &self.budget, &mut self.channel);
        self.suspects.arm(heap, &mut self.channel);
    }

    fn send_types(&mut self, heap: &Heap<'_>, census: &Census, boundary: u32) {
        let mut rows: Vec<(Address, u64, u64, u64)> = census
            .types
            .iter()
            .map(|(address, tally)| {
                let before = self.types.get(address).copied().unwrap_or(0);
                (*address, tally.count, tally.bytes, tally.bytes.saturating_sub(before))
            })
            .collect();
        self.types = census.types.iter().map(|(address, tally)| (*address, tally.bytes)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.2));
        let growing = rows.split_off(TYPE_ROWS.min(rows.len()));
        let mut growing: Vec<_> = growing.into_iter().filter(|row| row.3 > 0).collect();
        growing.sort_by_key(|row| std::cmp::Reverse(row.3));
        rows.extend(growing.into_iter().take(TYPE_ROWS));
        let named = |(address, count, bytes, _)| TypeCount { name: heap.name_of_type(address), count, bytes };
        self.channel.send(&Types { boundary, rows: rows.into_iter().map(named).collect() }.into());
    }

    fn note(&mut self, code: &str, text: &str) {
        self.channel.send(&Note { code: code.into(), text: text.into() }.into());
    }
}

/// What a first census is taken to cost, by the number of pymalloc's blocks.
fn predicted_cost(blocks: u64) -> Duration {
    CENSUS_PER_BLOCK * u32::try_from(blocks).unwrap_or(u32::MAX)
}

/// Connects to the supervisor and says hello; false where there is none.
#[pyfunction]
fn start(py: Python<'_>, settings: &str, argv: Vec<String>, rank: Option<u32>, worker: Option<u32>) -> bool {
    let _ = settings;
    // Panics are caught where Python calls in; the default hook would print into the program's standard error. It is
    // this library's own: its copy of the standard library serves nobody else.
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(path) = std::env::var(SOCKET_VARIABLE) else { return false };
    let version = py.version_info();
    let mut session = Session::new(path);
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
    frames::rehearse(py);
    SESSION.put(session);
    connected
}

/// Cuts a boundary: `unit` 0 epoch, 1 steps, 2 seconds; `level` 1 asks for a census where the budget allows.
#[pyfunction]
fn boundary(py: Python<'_>, unit: u32, index: u64, steps: u64, phase: u32, level: u32) -> PyResult<()> {
    let unit = Unit::ALL.get(unit as usize).copied().unwrap_or_default();
    let phase = Phase::ALL.get(phase as usize).copied().unwrap_or_default();
    // Only what the program itself must see comes back: Ctrl-C while a Python function was called.
    guarded(|session| session.boundary(py, unit, index, steps, phase, level > 0)).unwrap_or(Ok(()))
}

/// An optimizer step went by: an armed trace that has seen enough is taken down.
#[pyfunction]
fn step(py: Python<'_>, steps: u64) {
    let _ = steps;
    if trace::is_armed() {
        guarded(|session| session.suspects.finish_trace_if_enough(py, &mut session.channel));
    }
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

/// One line for the report.
#[pyfunction]
fn note(code: &str, text: &str) {
    guarded(|session| session.note(code, text));
}

/// The process ends in an orderly way.
#[pyfunction]
fn bye(py: Python<'_>, steps: u64, epochs: u64) {
    guarded(|session| {
        session.suspects.finish_trace(py, &mut session.channel);
        session.suspects.finish_peak(py, &mut session.channel);
        if session.channel.dropped() > 0 {
            let text = format!(
                "{} messages were dropped because the supervisor did not read",
                session.channel.dropped()
            );
            session.note("messages-dropped", &text);
        }
        let bye = Bye {
            steps,
            epochs,
            cost_ns: session.budget.spent().as_nanos() as u64,
            longest_pause_ns: session.budget.longest().as_nanos() as u64,
        };
        session.channel.send(&bye.into());
    });
}

/// In the child of a fork: a process of its own, that has said nothing yet.
#[pyfunction]
fn after_fork(py: Python<'_>) {
    SESSION.release();
    census::resume_collector_after_fork();
    trace::after_fork(py);
    guarded(|session| {
        session.channel.after_fork();
        let channel = std::mem::take(&mut session.channel);
        *session = Session { channel, ..Session::new(String::new()) };
    });
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(start, module)?,
        wrap_pyfunction!(boundary, module)?,
        wrap_pyfunction!(step, module)?,
        wrap_pyfunction!(loop_site, module)?,
        wrap_pyfunction!(backward_site, module)?,
        wrap_pyfunction!(note, module)?,
        wrap_pyfunction!(bye, module)?,
        wrap_pyfunction!(after_fork, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
