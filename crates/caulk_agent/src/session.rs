//! The agent's memory of a process: what it has seen grow, what it has said, what it may still spend.
//!
//! `caulk._bootstrap` calls in at boundaries and steps. Everything else follows from there: a reading of the bytes in
//! use, a census where the budget allows, a look at what grows, and an armed trace for the line that does it.

use std::time::Duration;

use caulk_wire::{Boundary, Note, NoteCode, Unit};
use pyo3::prelude::*;

mod asked;
mod beside;
mod cut;
mod end;
mod entry;
mod guard;
mod hook_notes;
mod last;
mod left_out;
mod looks;
mod predicted;
mod probe;
mod probes;
mod reading;
mod refused;
mod sampling;
mod trend;
mod working;

use cut::{Cut, Last};
pub(crate) use entry::register;
pub(crate) use last::look_if_asked;
use left_out::LeftOut;
use probes::Probes;
use trend::Trend;

use crate::budget::{Budget, Price};
use crate::census::{self, CollectorPaused, Tracker};
use crate::channel::Channel;
use crate::copied::Copied;
use crate::cuda;
use crate::cuda_history::History;
use crate::cuda_ledger::Ledgers;
use crate::garbage::Nursery;
use crate::heap::{AddressMap, Heap};
use crate::heap_profile::Sampler;
use crate::in_use::Meter;
use crate::instances::Instances;
use crate::opened;
use crate::profiler;
use crate::replaced::Replaced;
use crate::segments::Segments;
use crate::sharing::SharesMeter;
use crate::stopwatch::{Stopwatch, monotonic};
use crate::suspects::Suspects;

/// Epoch at which malloc is first asked to give pages back, where the user wants that; then at powers of two.
const FIRST_TRIM: u64 = 4;

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
    replaced: Replaced,
    instances: Instances,
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
    probes: Probes,
    copied_price: Price,
    copied_files_price: Price,
    cuda_price: Price,
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
    ledgers: Ledgers,
    opened: opened::Watch,
    profiler: profiler::Watch,
    segments: Segments,
    /// Allocations that a GPU had no memory for.
    refusals: u64,
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
            replaced: Replaced::default(),
            instances: Instances::default(),
            suspects: Suspects::default(),
            types: AddressMap::default(),
            seq: 0,
            last: None,
            left_out: LeftOut::default(),
            passed_over: 0,
            epochs: 0,
            census_costs: census::Costs::default(),
            probes: Probes::default(),
            copied_price: Price::new(Duration::from_millis(40)),
            copied_files_price: Price::new(Duration::from_millis(2)),
            cuda_price: Price::new(Duration::from_millis(20)),
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
            ledgers: Ledgers::default(),
            opened: opened::Watch::default(),
            profiler: profiler::Watch::default(),
            segments: Segments::default(),
            refusals: 0,
        }
    }

    /// Takes over what an earlier session of the process, or of the one that it was forked from, knows of the heap.
    fn succeed(&mut self, before: &Self, forked: bool) {
        self.mean_small = before.mean_small;
        self.census_costs = before.census_costs;
        self.shares = forked.then(SharesMeter::default);
    }

    fn boundary(&mut self, py: Python<'_>, cut: Cut) -> PyResult<()> {
        let Cut { unit, index, steps, phase, of, last, .. } = cut;
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
        self.measure_small_objects(py, reading);
        let level = self.level(reading);
        let with_census = self.wants_census(py, cut, level, reading.small_blocks);
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
            cuda_allocated_bytes: cuda.sum.allocated,
            cuda_reserved_bytes: cuda.sum.reserved,
            cuda_inactive_bytes: cuda.sum.inactive,
            cuda_retries: cuda.sum.retries,
            pinned_pool_bytes: cuda.pinned.0,
            pinned_used_bytes: cuda.pinned.1,
            census_objects: census.as_ref().map_or(0, |census| census.objects),
            private_bytes: shares.private,
            inherited_bytes: shares.inherited,
            copied_file_bytes: self.copied_files(cut),
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
        self.send_ledgers(py, &cuda, unit, seq)?;
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

    fn note(&mut self, code: NoteCode, text: &str) {
        self.channel.send(&Note { code, text: text.into() }.into());
    }
}
