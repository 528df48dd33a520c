//! Censuses: where they are paid for, and what is made of them.

use std::time::Duration;

use caulk_wire::{NoteCode, TypeCount, Types, Unit};
use pyo3::prelude::*;

use super::Session;
use super::cut::Cut;
use super::predicted::predicted_cost;
use super::probe::{Held, Scene};
use crate::budget::{LONGEST_PAUSE, RESERVE};
use crate::census::{self, Census, Depth, Failure, Tally};
use crate::heap::{Address, Heap};
use crate::instances::Instances;
use crate::stopwatch::{Stopwatch, monotonic};
use crate::torch::Torch;

/// CPU time that a census of a process with torch is taken to cost before there was one.
const TYPICAL_CENSUS: Duration = Duration::from_millis(40);
/// Longest pause for a census at the end of an epoch.
const LONGEST_CENSUS: Duration = LONGEST_PAUSE.saturating_mul(2);
/// Censuses that steps leave to the epochs ...
const KEPT_CENSUSES: u32 = 4;
/// ... unless none has come for so long.
const EPOCHS_COME: Duration = Duration::from_secs(30);
/// Censuses that are taken whatever the pause, at ends of epochs: three make a candidate, and two more a series.
const FIRST_CENSUSES: usize = 5;
/// Types reported per census: the largest, and as many of the fastest growing.
const TYPE_ROWS: usize = 16;

impl Session {
    /// What must be left of the budget for more important boundaries: where the heap is so large that few censuses can be
    /// paid for, most of them are for the ends of epochs.
    pub(super) fn reserve(&self, unit: Unit) -> Duration {
        if unit == Unit::Epoch {
            return Duration::ZERO;
        }
        let comes = self.epochs > 1 || monotonic().saturating_sub(self.began) < EPOCHS_COME;
        let census = self.census_costs.last().unwrap_or_default().min(LONGEST_PAUSE);
        if comes { RESERVE.max(census * KEPT_CENSUSES) } else { RESERVE }
    }

    /// Censuses by seconds, steps and epochs are compared each with their own kind, the coarsest phase that the program
    /// has: within an epoch many lists grow and are freed.
    pub(super) fn track(&mut self, unit: Unit) {
        if unit < self.tracked {
            self.track_anew(unit);
        }
    }

    pub(super) fn track_anew(&mut self, unit: Unit) {
        self.tracked = unit;
        self.tracker = census::Tracker::default();
        self.instances = Instances::default();
        self.censuses.clear();
    }

    /// Is a census worth its cost at this boundary?
    pub(super) fn wants_census(&mut self, py: Python<'_>, cut: Cut, level: u64, blocks: u64) -> bool {
        let Cut { unit, of, with_census, last, .. } = cut;
        // Programs with torch are likely to have steps, which are better to be looked at, and have not made one yet.
        let early = unit == Unit::Seconds && crate::heap::loaded(py, "torch").is_some();
        self.budget.hold(if early { RESERVE } else { Duration::ZERO });
        let sparing = early || of != 0;
        let expected = self.census_costs.expected(self.tracker.depth(), blocks);
        let cost = expected.unwrap_or(TYPICAL_CENSUS);
        let trend = &mut self.trends[unit as usize];
        last.is_some()
            || with_census
                && unit <= self.tracked
                && trend.take(unit, level, cost, crate::heap::modules(py), sparing)
    }

    /// What a census is taken to cost.
    fn census_price(&self, depth: Depth, blocks: u64) -> Duration {
        self.census_costs.expected(depth, blocks).unwrap_or_else(|| predicted_cost(depth, blocks))
    }

    /// How much of the heap is looked at now; `None` where any look is too dear.
    fn census_depth(&mut self, unit: Unit, blocks: u64) -> Option<Depth> {
        let (wanted, reserve) = (self.tracker.depth(), self.reserve(unit));
        // An epoch can bear a longer pause than a step, but for nothing that can be had for less.
        let fits = |depth, price| {
            let is_least = unit == Unit::Epoch && depth == Depth::Changed;
            self.budget.fits(price) || (is_least && price <= LONGEST_CENSUS)
        };
        let may = [wanted, Depth::Changed].into_iter().find(|depth| {
            let price = self.census_price(*depth, blocks);
            fits(*depth, price) && self.budget.affords(price, reserve)
        });
        // Of a heap so large that any look is a long pause, the first ones show what grows.
        let first = unit == Unit::Epoch && self.censuses.len() < FIRST_CENSUSES;
        let price = self.census_price(Depth::Changed, blocks);
        let may = may.or((first && self.budget.affords(price, reserve)).then_some(Depth::Changed));
        // What was dear once, on a crowded machine say, need not be now: a heap that was never looked at again would hide
        // what grows in it.
        let price = self.census_price(wanted, blocks);
        if may != Some(wanted) && !fits(wanted, price) {
            self.census_costs.learn(wanted, price * 7 / 8, blocks);
        }
        may
    }

    pub(super) fn census(
        &mut self,
        heap: &mut Heap<'_>,
        wanted: bool,
        cut: Cut,
        blocks: u64,
    ) -> Option<Census> {
        if !wanted || self.no_census {
            return None;
        }
        let depth = match cut.last {
            Some(_) => Some(Depth::Changed),
            None => self.census_depth(cut.unit, blocks),
        };
        let at_epoch = u32::from(cut.unit == Unit::Epoch);
        let Some(depth) = depth else {
            self.trends[cut.unit as usize].put_off();
            self.left_out.refused += at_epoch;
            return None;
        };
        self.left_out.compared += at_epoch;
        let started = Stopwatch::start();
        let asked = self.suspects.owners();
        let census = census::take(heap, &asked, &mut self.nursery, &mut self.tracker, depth);
        self.census_costs.learn(depth, started.work(), blocks);
        census.map_err(|failure| self.without_census(failure)).ok()
    }

    fn without_census(&mut self, failure: Failure) {
        let (code, text) = match failure {
            Failure::Unavailable => (
                NoteCode::CensusUnavailable,
                "this interpreter's objects cannot be looked through safely, so that no container is named; run the \
                 program with CPython 3.10 to 3.14, as python.org, conda or Debian build it",
            ),
            Failure::TooLong => (
                NoteCode::CensusTooLong,
                "the program holds too many objects to be looked through in the time of a pause, so that containers \
                 that grow may not be named; they are compared again when the objects are fewer",
            ),
            Failure::NoMemory => (
                NoteCode::CensusWithoutMemory,
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

    /// Compares a census with those before, and has the probes look at what grows.
    pub(super) fn compare(&mut self, heap: &mut Heap<'_>, census: Census, seq: u32, collects: bool) {
        self.censuses.insert(0, seq);
        self.censuses.truncate(census::MOST_CENSUSES);
        let instances = self.instances.meet(heap, &census, self.nursery.young(), self.in_use);
        // Before anything is kept alive: that would seem to be in use.
        let (nursery, sampler) = (&mut self.nursery, self.sampler);
        let reserved = self.probes.reserved(&self.suspects, &self.budget);
        let garbage = nursery.pay(&self.budget, reserved, |nursery| nursery.look(heap, sampler)).flatten();
        // The census's addresses are good until something is called. What is looked into is kept alive before that: any
        // call may let another thread run, which lets go of what it held.
        let tensors = heap.hold(census.tensors.iter().copied().filter(|_| !self.shares_many(&census)));
        let fresh = self.replaced.meet(heap, &census, &self.tracker, &self.suspects, self.in_use, seq);
        let instances: Vec<_> = instances.into_iter().map(|picked| picked.hold(heap)).collect();
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
        let held = Held { tensors, fresh, instances };
        let Self { suspects, replaced, channel, tracker, budget, epochs, .. } = self;
        let mut scene =
            Scene { heap, suspects, replaced, channel, tracker, budget, sampler, seq, epochs: *epochs, held };
        self.probes.look(&mut scene);
    }

    /// The largest types and as many of the fastest growing, kept alive.
    pub(super) fn largest_types(&mut self, heap: &mut Heap<'_>, census: &Census) -> Vec<(Address, Tally)> {
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

    pub(super) fn send_types(&mut self, heap: &Heap<'_>, rows: Vec<(Address, Tally)>, boundary: u32) {
        let named = |(address, tally): (Address, Tally)| TypeCount {
            name: heap.name_of_type(address),
            count: tally.count,
            bytes: tally.bytes,
        };
        self.channel.send(&Types { boundary, rows: rows.into_iter().map(named).collect() }.into());
    }
}
