//! The agent's memory of a process: what it has seen grow, what it has said, what it may still spend.
//!
//! `caulk._bootstrap` calls in at boundaries and steps. Everything else follows from there: a reading of the bytes in
//! use, a census where the budget allows, a look at what grows, and an armed trace for the line that does it.

use std::time::Duration;

use caulk_wire::heap::Refusal;
use caulk_wire::{Boundary, Note, NoteCode, Phase, Trim, Unit};
use pyo3::prelude::*;

mod asked;
mod entry;
mod guard;
mod last;
mod left_out;
mod looks;
mod predicted;
mod trend;
mod working;

pub(crate) use entry::register;
pub(crate) use last::look_if_asked;
use left_out::LeftOut;
use trend::Trend;

use crate::budget::{Budget, Price, RESERVE};
use crate::census::{self, CollectorPaused, Depth, Tracker};
use crate::channel::Channel;
use crate::copied::Copied;
use crate::cuda;
use crate::cuda_history::{History, Recorded};
use crate::garbage::Nursery;
use crate::graphs::Graphs;
use crate::heap::{AddressMap, Heap};
use crate::heap_profile::{self, Sampler};
use crate::in_use::{self, Meter, Reading};
use crate::opened;
use crate::profiler;
use crate::replaced::Replaced;
use crate::segments::Segments;
use crate::sharing::SharesMeter;
use crate::stopwatch::{Stopwatch, monotonic};
use crate::suspects::Suspects;

/// CPU time that a census of a process with torch is taken to cost before there was one.
const TYPICAL_CENSUS: Duration = Duration::from_millis(40);
/// Epoch at which malloc is first asked to give pages back, where the user wants that; then at powers of two.
const FIRST_TRIM: u64 = 4;

/// What the parts of a comparison are taken to cost.
struct Prices {
    paths: Price,
    everywhere: Price,
    names: Price,
    replaced: Price,
    graphs: Price,
    lasting: Price,
    copied: Price,
    arming: Price,
    cuda: Price,
}

impl Default for Prices {
    fn default() -> Self {
        let milliseconds = |number| Price::new(Duration::from_millis(number));
        Self {
            paths: milliseconds(20),
            everywhere: milliseconds(60),
            names: milliseconds(2),
            replaced: milliseconds(5),
            graphs: milliseconds(10),
            lasting: milliseconds(15),
            copied: milliseconds(40),
            arming: milliseconds(8),
            cuda: milliseconds(20),
        }
    }
}

/// A boundary to be cut.
#[derive(Clone, Copy)]
struct Cut {
    unit: Unit,
    index: u64,
    steps: u64,
    phase: Phase,
    /// Process whose boundary this is, where it is taken over; 0 for the process's own.
    of: u32,
    with_census: bool,
    /// Is the census to be taken whatever it costs?
    last: Option<Last>,
}

/// Why this boundary may be the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The program may be ended at any moment.
    Near,
    /// It ends in an orderly way, and has let go of much: its memory is that of no step.
    AtExit,
}

/// What one process has told so far.
struct Session {
    channel: Channel,
    /// The heap sampler, where it is loaded.
    sampler: Option<Sampler>,
    /// It counts what pymalloc maps.
    counts_arenas: bool,
    meter: Meter,
    /// For a process that was forked: what it still shares.
    shares: Option<SharesMeter>,
    copied: Copied,
    budget: Budget,
    tracker: Tracker,
    /// Unit that the tracker's censuses were taken at.
    tracked: Unit,
    nursery: Nursery,
    graphs: Graphs,
    replaced: Replaced,
    suspects: Suspects,
    types: AddressMap<u64>,
    seq: u32,
    /// The boundary that was cut last, and when.
    last: Option<(Cut, Duration)>,
    left_out: LeftOut,
    /// Boundaries that no reading was taken at.
    passed_over: u32,
    epochs: u64,
    census_costs: census::Costs,
    prices: Prices,
    /// When the session began.
    began: Duration,
    /// Boundaries at which the last censuses were taken, newest first.
    censuses: Vec<u32>,
    mean_small: Option<f64>,
    /// How memory has moved from boundary to boundary, by unit.
    trends: [Trend; 3],
    in_use: u64,
    no_census: bool,
    said_no_census: bool,
    /// A census took too long: how fast the machine is, is known since then.
    too_long: bool,
    /// The user wants malloc to be asked for what it can give back.
    trims: bool,
    cuda_history: History,
    opened: opened::Watch,
    profiler: profiler::Watch,
    segments: Segments,
}

impl Session {
    fn new(path: String) -> Self {
        Self {
            channel: Channel::new(path),
            sampler: None,
            counts_arenas: false,
            meter: Meter::new(),
            shares: None,
            copied: Copied::default(),
            budget: Budget::default(),
            tracker: Tracker::default(),
            tracked: Unit::Seconds,
            nursery: Nursery::default(),
            graphs: Graphs::default(),
            replaced: Replaced::default(),
            suspects: Suspects::default(),
            types: AddressMap::default(),
            seq: 0,
            last: None,
            left_out: LeftOut::default(),
            passed_over: 0,
            epochs: 0,
            census_costs: census::Costs::default(),
            prices: Prices::default(),
            began: monotonic(),
            censuses: Vec::new(),
            mean_small: None,
            trends: [Trend::default(); 3],
            in_use: 0,
            no_census: false,
            said_no_census: false,
            too_long: false,
            trims: false,
            cuda_history: History::default(),
            opened: opened::Watch::default(),
            profiler: profiler::Watch::default(),
            segments: Segments::default(),
        }
    }

    /// Takes over what an earlier session of the process, or of the one that it was forked from, knows of the heap.
    fn succeed(&mut self, before: &Self, forked: bool) {
        self.mean_small = before.mean_small;
        self.census_costs = before.census_costs;
        self.shares = forked.then(SharesMeter::default);
    }

    fn boundary(&mut self, py: Python<'_>, cut: Cut) -> PyResult<()> {
        let Cut { unit, index, steps, phase, of, with_census, last } = cut;
        if self.channel.is_closed() {
            // Nobody listens any more: nothing is worth its cost.
            self.disarm(py);
            return Ok(());
        }
        self.budget.begin();
        self.last = Some((cut, monotonic()));
        self.join_the_board(cut);
        if of != 0 && self.is_passed_over() {
            self.budget.spend();
            return Ok(());
        }
        let started = Stopwatch::start();
        let reading = self.read(py, cut);
        let cuda = cuda::memory(py)?;
        if unit == Unit::Epoch {
            self.epochs += 1;
            self.left_out.epochs += 1;
            self.left_out.read += u32::from(reading.fresh);
        }
        if self.mean_small.is_none() {
            // Once, before the first figures: a mean that changed later would look like growth.
            let _paused = CollectorPaused::new(py);
            let cost = predicted::predicted_cost(Depth::Changed, reading.small_blocks);
            let worth = self.budget.allows(cost, Duration::ZERO);
            self.mean_small = Some(if worth { census::mean_small_object(&mut Heap::new(py)) } else { 64.0 });
        }
        let level = self.level(reading);
        // Programs with torch are likely to have steps, which are better to be looked at, and have not made one yet.
        let early = unit == Unit::Seconds && crate::heap::loaded(py, "torch").is_some();
        self.budget.hold(if early { RESERVE } else { Duration::ZERO });
        let sparing = early || of != 0;
        let expected = self.census_costs.expected(self.tracker.depth(), reading.small_blocks);
        let cost = expected.unwrap_or(TYPICAL_CENSUS);
        let with_census = last.is_some()
            || with_census
                && unit <= self.tracked
                && self.trends[unit as usize].take(unit, level, cost, crate::heap::modules(py), sparing);
        self.claim_credit();
        if with_census && last.is_none() {
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
        if let Some(sampler) = self.sampler.filter(|_| last != Some(Last::AtExit)) {
            sampler.snapshot(seq);
        }
        let shares = self.shares(cut, reading);
        let paused = CollectorPaused::new(py);
        let mut heap = Heap::new(py);
        let census = self.census(&mut heap, with_census, cut, reading.small_blocks);
        let mut boundary = Boundary {
            seq,
            time_ns: monotonic().as_nanos() as u64,
            unit,
            index,
            steps,
            phase,
            cuda_allocated_bytes: cuda.allocated,
            cuda_reserved_bytes: cuda.reserved,
            cuda_inactive_bytes: cuda.inactive,
            cuda_retries: cuda.retries,
            census_objects: census.as_ref().map_or(0, |census| census.objects),
            private_bytes: shares.private,
            inherited_bytes: shares.inherited,
            segment_bytes: self.segments.bytes(),
            of,
            ..self.figures(reading)
        };
        self.in_use = level;
        boundary.cost_ns = started.elapsed().as_nanos() as u64;
        self.channel.send(&boundary.into());
        match census {
            Some(census) if unit > self.tracked => self.compare_known(&mut heap, census, seq, last),
            Some(census) => self.compare(&mut heap, census, seq, paused.was_enabled()),
            None if unit == Unit::Epoch => self.suspects.count_again(&mut heap, seq, &mut self.channel),
            None => {}
        }
        self.look_at_the_profiler(py, unit);
        if unit <= self.tracked {
            self.look_beside_the_heap(py, unit, reading, &cuda, seq)?;
        }
        if self.trims && unit == Unit::Epoch && index >= FIRST_TRIM && index.is_power_of_two() {
            self.trim(seq);
        }
        self.look_for_copied(&mut heap, seq);
        if unit == Unit::Epoch && self.epochs > 2 && of == 0 {
            self.suspects.watch_peak(py, seq, self.in_use, reading.headroom());
        }
        self.budget.spend();
        Ok(())
    }

    /// A reading of the memory in use.
    fn read(&mut self, py: Python<'_>, cut: Cut) -> Reading {
        let mut reading = self.meter.read(py, cut.unit, &mut self.budget);
        reading.fresh &= cut.last != Some(Last::AtExit);
        let own = self.sampler.map_or(0, Sampler::shared_bytes);
        reading.shm = reading.shm.saturating_sub(own);
        if self.meter.has_lost_sums() {
            let text = "what malloc has handed out is read less often from now on: something in the program allocates past \
                        the heap sampler and gives back through it, so that its own count does not tell";
            self.note(NoteCode::SumsLost, text);
        }
        reading
    }

    /// What grows that is no object: a GPU's memory, files and threads.
    fn look_beside_the_heap(
        &mut self,
        py: Python<'_>,
        unit: Unit,
        reading: Reading,
        cuda: &cuda::Cuda,
        seq: u32,
    ) -> PyResult<()> {
        if self.cuda_history.is_due(unit, cuda) {
            let Self { prices, budget, cuda_history, channel, .. } = self;
            match prices.cuda.pay(budget, || cuda_history.proceed(py, seq, cuda)).transpose()?.flatten() {
                Some(Recorded::Made(made)) => channel.send(&made.into()),
                Some(Recorded::TooMany) => {
                    let text = "the lines that make what stays on the GPU are not told: so many blocks are there that \
                                looking through them would hold the program up";
                    self.note(NoteCode::GpuLines, text);
                }
                None => {}
            }
        }
        if let Some(opened) = self.opened.look(py, reading, &self.segments, seq) {
            self.channel.send(&opened.into());
        }
        Ok(())
    }

    fn look_at_the_profiler(&mut self, py: Python<'_>, unit: Unit) {
        let kept = "torch's profiler is on all the time: it keeps every event until it is stopped";
        // Torch tells of the thread that asks, and seconds pass on any.
        if unit == Unit::Seconds && self.tracked != Unit::Seconds {
            return;
        }
        match self.profiler.look(py, unit <= self.tracked) {
            Some(true) => self.note(NoteCode::ProfilerOn, kept),
            Some(false) => self.note(NoteCode::ProfilerOff, "torch's profiler is off again"),
            None => {}
        }
    }

    /// Censuses by seconds, steps and epochs are compared each with their own kind, the coarsest phase that the program
    /// has: within an epoch many lists grow and are freed.
    fn track(&mut self, unit: Unit) {
        if unit < self.tracked {
            self.track_anew(unit);
        }
    }

    fn track_anew(&mut self, unit: Unit) {
        self.tracked = unit;
        self.tracker = Tracker::default();
        self.censuses.clear();
    }

    /// Bytes in use on the heap.
    fn level(&self, reading: Reading) -> u64 {
        reading.malloc.used + (reading.small_blocks as f64 * self.mean_small.unwrap_or(64.0)) as u64
    }

    fn figures(&self, reading: Reading) -> Boundary {
        let small = reading.small_blocks as f64 * self.mean_small.unwrap_or(64.0);
        let arenas = self.sampler.filter(|_| self.counts_arenas).map(Sampler::arena_bytes);
        Boundary {
            malloc_bytes: if reading.fresh { reading.malloc.used } else { 0 },
            malloc_free_bytes: reading.malloc.free,
            malloc_heap_bytes: reading.malloc.heap,
            malloc_top_bytes: reading.malloc.top,
            small_blocks: reading.small_blocks,
            small_bytes: small as u64,
            arena_bytes: arenas.unwrap_or(0),
            mapped_bytes: arenas.map_or(0, |arenas| reading.mapped().saturating_sub(arenas)),
            shm_bytes: reading.shm,
            rss_bytes: reading.rss,
            file_bytes: reading.file,
            threads: reading.threads,
            fds: reading.fds,
            ..Boundary::default()
        }
    }

    /// Lets malloc give back what it can, as the user has asked for, and tells what came of it.
    fn trim(&mut self, boundary: u32) {
        let started = Stopwatch::start();
        if let Some((before_bytes, after_bytes)) = in_use::trim() {
            let cost_ns = started.elapsed().as_nanos() as u64;
            self.channel.send(&Trim { boundary, before_bytes, after_bytes, cost_ns }.into());
        }
    }

    /// Lets the heap sampler begin, where it is loaded.
    fn begin_sampling(&mut self, py: Python<'_>) {
        let Some((sampler, refusal)) = Sampler::begin(py) else {
            if heap_profile::was_left_out() {
                let text = "memory that native code allocates is not told by line: the heap sampler was not loaded, as in \
                            programs that run with more rights than their user (setuid, capabilities of a file)";
                self.note(NoteCode::HeapNotLoaded, text);
            }
            return;
        };
        self.sampler = Some(sampler);
        self.counts_arenas = refusal == Refusal::None;
        if heap_profile::has_debug_pymalloc() {
            let text = "small Python objects are not in the heap profile: Python checks each of them (`PYTHONMALLOC=debug`, \
                        `-X dev`), in ways that allow nobody else between";
            self.note(NoteCode::HeapWithoutSmallObjects, text);
        }
        if let Some(reason) = why_no_lines(refusal) {
            let text = format!("memory that native code allocates is not told by line: {reason}");
            self.note(NoteCode::HeapWithoutStacks, &text);
        }
    }

    /// Tells of what is armed, and takes it off.
    fn disarm(&mut self, py: Python<'_>) {
        self.suspects.finish_trace(py, &mut self.channel);
        self.suspects.finish_peak(py, &mut self.channel);
    }

    /// Says what was left out because of its price.
    fn say_what_was_left_out(&mut self) {
        let known = self.meter.knows();
        if let Some(text) = self.left_out.readings(self.meter.cost()).filter(|_| known) {
            self.note(NoteCode::ReadingsLeftOut, &text);
        }
        let cost = self.census_costs.last().unwrap_or_default();
        if let Some(text) =
            self.left_out.censuses(cost).filter(|_| self.suspects.is_empty() && !self.too_long)
        {
            self.note(NoteCode::CensusesLeftOut, &text);
        }
    }

    /// Nothing is looked into any more.
    fn end(&mut self, py: Python<'_>) {
        self.disarm(py);
        self.no_census = true;
    }

    fn note(&mut self, code: NoteCode, text: &str) {
        self.channel.send(&Note { code, text: text.into() }.into());
    }
}

fn why_no_lines(refusal: Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::None => return None,
        Refusal::NoPython | Refusal::UnknownVersion => "the frames of this version of Python are not known",
        Refusal::SelfCheck => "the frames of this build of Python are not where its version has them",
        Refusal::NotFirst => {
            "another allocator is preloaded before caulk's sampler; leave LD_PRELOAD to `caulk run`, which keeps what \
             is in it"
        }
        Refusal::FreeThreaded => "this build of Python runs without a global interpreter lock",
    })
}
