//! The agent's memory of a process: what it has seen grow, what it has said, what it may still spend.
//!
//! `caulk._bootstrap` calls in at boundaries and steps. Everything else follows from there: a reading of the bytes in
//! use, a census where the budget allows, a look at what grows, and an armed trace for the line that does it.

use std::time::Duration;

use caulk_wire::heap::Refusal;
use caulk_wire::{Boundary, Note, Phase, Trim, TypeCount, Types, Unit};
use pyo3::prelude::*;

mod asked;
mod entry;
mod last;
mod trend;
mod working;

pub(crate) use entry::register;
pub(crate) use last::look_if_asked;
use trend::Trend;

use crate::budget::{Budget, LONGEST_PAUSE, Price, RESERVE};
use crate::census::{self, Census, CollectorPaused, Failure, Tally, Tracker};
use crate::channel::Channel;
use crate::copied::Copied;
use crate::cuda;
use crate::cuda_history::{History, Recorded};
use crate::garbage::Nursery;
use crate::graphs::Graphs;
use crate::heap::{Address, AddressMap, Heap};
use crate::heap_profile::{self, Sampler};
use crate::holders::Scope;
use crate::in_use::{self, Meter, Reading};
use crate::lasting;
use crate::opened;
use crate::profiler;
use crate::replaced::Replaced;
use crate::segments::Segments;
use crate::sharing::SharesMeter;
use crate::stopwatch::{Stopwatch, monotonic};
use crate::suspects::Suspects;
use crate::torch::Torch;

/// CPU time that a census of an unknown heap is taken to cost: of a process with torch, and per block of pymalloc.
const TYPICAL_CENSUS: Duration = Duration::from_millis(40);
const CENSUS_PER_BLOCK: Duration = Duration::from_nanos(60);
/// Epoch at which malloc is first asked to give pages back, where the user wants that; then at powers of two.
const FIRST_TRIM: u64 = 4;
/// Types reported per census: the largest, and as many of the fastest growing.
const TYPE_ROWS: usize = 16;

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

impl Cut {
    /// What must be left of the budget for more important boundaries.
    fn reserve(self) -> Duration {
        if self.unit == Unit::Epoch { Duration::ZERO } else { RESERVE }
    }
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
    /// Boundaries that no reading was taken at.
    passed_over: u32,
    epochs: u64,
    /// What the last census cost, and how many blocks of pymalloc there were.
    census_cost: Option<(Duration, u64)>,
    prices: Prices,
    /// When the session began, and when the last census was taken.
    began: Duration,
    looked_at: Option<Duration>,
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
            passed_over: 0,
            epochs: 0,
            census_cost: None,
            prices: Prices::default(),
            began: monotonic(),
            looked_at: None,
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
        self.census_cost = before.census_cost;
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
        let mut reading = self.meter.read(py, unit, &mut self.budget);
        reading.fresh &= last != Some(Last::AtExit);
        let own = self.sampler.map_or(0, Sampler::shared_bytes);
        reading.shm = reading.shm.saturating_sub(own);
        if self.meter.has_lost_sums() {
            let text = "what malloc has handed out is read less often from now on: something in the program allocates past \
                        the heap sampler and gives back through it, so that its own count does not tell";
            self.note("sums-lost", text);
        }
        let cuda = cuda::memory(py)?;
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
        // Programs with torch are likely to have steps, which are better to be looked at, and have not made one yet.
        let early = unit == Unit::Seconds && crate::heap::loaded(py, "torch").is_some();
        self.budget.hold(if early { RESERVE } else { Duration::ZERO });
        let sparing = early || of != 0;
        let cost = self.census_cost.map_or(TYPICAL_CENSUS, |_| self.census_price(reading.small_blocks));
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
        if let Some(sampler) = self.sampler {
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
            Some(census) if unit > self.tracked => self.compare_known(&mut heap, census, seq),
            Some(census) => self.compare(&mut heap, census, seq, paused.was_enabled()),
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
                    self.note("gpu-lines", text);
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
            Some(true) => self.note("profiler-on", kept),
            Some(false) => self.note("profiler-off", "torch's profiler is off again"),
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
                self.note("heap-not-loaded", text);
            }
            return;
        };
        self.sampler = Some(sampler);
        self.counts_arenas = refusal == Refusal::None;
        if heap_profile::has_debug_pymalloc() {
            let text = "small Python objects are not in the heap profile: Python checks each of them (`PYTHONMALLOC=debug`, \
                        `-X dev`), in ways that allow nobody else between";
            self.note("heap-without-small-objects", text);
        }
        if let Some(reason) = why_no_lines(refusal) {
            let text = format!("memory that native code allocates is not told by line: {reason}");
            self.note("heap-without-stacks", &text);
        }
    }

    /// Tells of what is armed, and takes it off.
    fn disarm(&mut self, py: Python<'_>) {
        self.suspects.finish_trace(py, &mut self.channel);
        self.suspects.finish_peak(py, &mut self.channel);
    }

    /// Nothing is looked into any more.
    fn end(&mut self, py: Python<'_>) {
        self.disarm(py);
        self.no_census = true;
    }

    /// What a census is taken to cost: as much as the last one, by the size of the heap.
    fn census_price(&self, blocks: u64) -> Duration {
        match self.census_cost {
            Some((cost, before)) => cost.mul_f64(blocks as f64 / before.max(1) as f64),
            None => predicted_cost(blocks),
        }
    }

    fn census(&mut self, heap: &mut Heap<'_>, wanted: bool, cut: Cut, blocks: u64) -> Option<Census> {
        if !wanted || self.no_census {
            return None;
        }
        let price = self.census_price(blocks);
        if cut.last.is_none() && !self.budget.allows(price, cut.reserve()) {
            // What was dear once, on a crowded machine say, need not be now: a heap that was never looked at again would
            // hide what grows in it.
            if !self.budget.fits(price) {
                self.census_cost = Some((price * 7 / 8, blocks));
            }
            return None;
        }
        let started = Stopwatch::start();
        let census = census::take(heap, &self.suspects.owners(), &mut self.nursery);
        self.census_cost = Some((started.work(), blocks));
        self.looked_at = Some(monotonic());
        census.map_err(|failure| self.without_census(failure)).ok()
    }

    fn without_census(&mut self, failure: Failure) {
        let (code, text) = match failure {
            Failure::Unavailable => (
                "census-unavailable",
                "this interpreter's objects cannot be looked through safely, so that no container is named; run the \
                 program with CPython 3.10 to 3.14, as python.org, conda or Debian build it",
            ),
            Failure::TooLong => (
                "census-too-long",
                "the program holds too many objects to be looked through in the time of a pause, so that containers \
                 that grow may not be named; they are compared again when the objects are fewer",
            ),
            Failure::NoMemory => (
                "census-without-memory",
                "there was no memory left for comparing what the program holds: no more containers are named",
            ),
        };
        if failure == Failure::TooLong && !std::mem::replace(&mut self.too_long, true) {
            return;
        }
        let first = !std::mem::replace(&mut self.said_no_census, true);
        if first {
            self.note(code, text);
        }
        self.no_census |= failure != Failure::TooLong;
    }

    fn compare(&mut self, heap: &mut Heap<'_>, census: Census, seq: u32, collects: bool) {
        self.censuses.insert(0, seq);
        self.censuses.truncate(census::MOST_CENSUSES);
        // First of all: what is kept alive from here on would seem to be in use.
        let (nursery, sampler) = (&mut self.nursery, self.sampler);
        let paths = self.prices.paths.expected();
        let waiting = self.suspects.waiting(paths, !self.budget.affords(paths, RESERVE));
        let garbage = nursery.pay(&self.budget, waiting, |nursery| nursery.look(heap, sampler)).flatten();
        // The census's addresses are good until something is called. What is looked into is kept alive before that: any
        // call may let another thread run, which lets go of what it held.
        let tensors = heap.hold(census.tensors.iter().copied().filter(|_| !self.shares_many(&census)));
        let mut fresh = self.replaced.meet(heap, &census, &self.tracker, &self.suspects, self.in_use, seq);
        let types = self.largest_types(heap, &census);
        self.suspects.confirm_owners(heap, &census.alive);
        let grown = match self.tracker.update(&census) {
            Ok(grown) => grown,
            Err(error) => return self.without_census(error.into()),
        };
        self.suspects.meet_containers(heap, &census, &grown, &self.censuses, &mut self.channel);
        drop(census);
        // Reading a tensor's attribute runs Python code where a mode is active (`torch.set_default_device`): off.
        let _overrides_off = Torch::new(heap.py);
        if let Some(garbage) = garbage {
            self.channel.send(&garbage.told(heap, seq, collects).into());
        }
        self.send_types(heap, types, seq);
        let Self { budget, prices, suspects, channel, sampler, .. } = self;
        // Once for each thing that grows, however long the pause is: without a name it is worth nothing.
        let sparing = !budget.affords(prices.paths.expected(), RESERVE);
        if suspects.has_unexplained(Scope::User, sparing) {
            prices.paths.pay_at_last(budget, || suspects.explain(heap, Scope::User, seq, channel));
        }
        let sparing = !budget.affords(prices.everywhere.expected(), RESERVE);
        if suspects.has_unexplained(Scope::All, sparing) {
            let search = || suspects.explain(heap, Scope::All, seq, channel);
            prices.everywhere.pay_at_last(budget, search);
        }
        let (lasting, elders) = (std::mem::take(&mut fresh.lasting), std::mem::take(&mut fresh.elders));
        prices.names.pay(budget, || suspects.follow_names(heap, seq, *sampler, channel));
        suspects.watch_exit(heap.py, seq, channel);
        if !lasting.is_empty() {
            // Where nothing of the program's is known to grow, this is what the pause was made for.
            let known = suspects.follows_users();
            let tracker = &self.tracker;
            let look = || lasting::look(heap, lasting, elders, suspects, tracker);
            let look = if known {
                prices.lasting.pay(budget, look)
            } else {
                prices.lasting.pay_at_last(budget, look)
            };
            let look = look.unwrap_or_default();
            self.replaced.remember(&look.picked);
            suspects.meet_lasting(look.kept, seq, channel);
        }
        let renewed = prices.replaced.pay(budget, || self.replaced.look(heap, fresh, suspects, seq));
        suspects.meet_renewed(renewed.unwrap_or_default(), seq, channel);
        let graphs =
            prices.graphs.pay(budget, || self.graphs.look(heap, &tensors, &self.tracker, suspects, *sampler));
        suspects.meet_graphs(graphs.unwrap_or_default(), seq, channel);
        // Nothing but the program itself may seem to hold what is looked into next.
        drop(tensors);
        suspects.look(heap, seq, self.epochs, budget, *sampler, channel);
        let sparing = !budget.affords(prices.arming.expected(), RESERVE);
        prices.arming.pay_at_last(budget, || suspects.arm(heap, sparing, channel));
    }

    /// The largest types and as many of the fastest growing, kept alive.
    fn largest_types(&mut self, heap: &mut Heap<'_>, census: &Census) -> Vec<(Address, Tally)> {
        let before = std::mem::take(&mut self.types);
        self.types = census.types.iter().map(|(address, tally)| (*address, tally.bytes)).collect();
        let gained = |(address, tally): &(Address, Tally)| {
            tally.bytes.saturating_sub(before.get(address).copied().unwrap_or(0))
        };
        let mut rows: Vec<(Address, Tally)> =
            census.types.iter().map(|(address, tally)| (*address, *tally)).collect();
        rows.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.bytes));
        let mut growing = rows.split_off(TYPE_ROWS.min(rows.len()));
        growing.retain(|row| gained(row) > 0);
        growing.sort_by_key(|row| std::cmp::Reverse(gained(row)));
        rows.extend(growing.into_iter().take(TYPE_ROWS));
        heap.keep(rows.iter().map(|(address, _)| *address));
        rows
    }

    fn send_types(&mut self, heap: &Heap<'_>, rows: Vec<(Address, Tally)>, boundary: u32) {
        let named = |(address, tally): (Address, Tally)| TypeCount {
            name: heap.name_of_type(address),
            count: tally.count,
            bytes: tally.bytes,
        };
        self.channel.send(&Types { boundary, rows: rows.into_iter().map(named).collect() }.into());
    }

    fn note(&mut self, code: &str, text: &str) {
        self.channel.send(&Note { code: code.into(), text: text.into() }.into());
    }
}

/// What a first census is taken to cost, by the number of pymalloc's blocks. A guess that could not be paid would never be put
/// right, and a census that takes too long gives itself up.
fn predicted_cost(blocks: u64) -> Duration {
    (CENSUS_PER_BLOCK * u32::try_from(blocks).unwrap_or(u32::MAX)).min(LONGEST_PAUSE / 2)
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
