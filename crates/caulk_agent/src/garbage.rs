//! What waits for the collector: objects in cycles that nothing outside refers to, found without collecting.
//!
//! The collector's own method over a side table, as for contents: from each object's references those are taken away that
//! come from the others; what keeps none, and is reached by nothing that keeps some, would be freed (CPython,
//! Modules/gcmodule.c, `deduce_unreachable`). Only objects made since the first census are looked at (of
//! many, those made since they were met last), and what these alone refer to: references from older ones count as from
//! outside, so that at worst garbage is missed. The walk makes nothing and calls nothing.

use std::time::Duration;

use caulk_wire::Garbage;
use pyo3::prelude::*;

mod hidden;
mod links;
mod trial;
mod weight;

use trial::Trial;
use weight::Weight;

use crate::budget::Budget;
use crate::heap::{Address, AddressSet, AddressTypes, Heap, loaded, type_address};
use crate::heap_profile::Sampler;
use crate::stopwatch::Stopwatch;

/// Young objects that are looked at, the first of all; what these alone refer to comes on top.
const MOST_YOUNG: usize = 1 << 17;
/// Young objects beyond which those that live are taken for the program's own from then on: some 20 ms.
const AGAIN: usize = 1 << 15;

/// What an object of the young is taken to cost before any was looked at.
const EACH: Duration = Duration::from_nanos(700);
/// Objects whose cost says what others will.
const ENOUGH: u32 = 1 << 10;

/// Objects that are younger than the first census, or than the one in which so many were met, as the last one met them.
pub(crate) struct Nursery {
    /// What was there in the first census, and what was alive when there were many young.
    old: Option<AddressTypes>,
    /// That census is being taken now.
    founding: bool,
    young: Vec<Address>,
    /// Met, and to be looked up soon.
    ahead: Ahead,
    /// Young objects met, those beyond the bound included.
    met: usize,
    /// What each cost lately.
    each: Duration,
    /// They were gone through at the last census.
    had_turn: bool,
}

impl Default for Nursery {
    fn default() -> Self {
        Self {
            old: None,
            founding: false,
            young: Vec::new(),
            ahead: Ahead::default(),
            met: 0,
            each: EACH,
            had_turn: false,
        }
    }
}

/// Objects that were met last: their places in the table of the old ones are fetched while others are met.
#[derive(Default)]
struct Ahead {
    met: [(Address, Address); AHEAD],
    next: usize,
}

/// As many as are fetched at a time ([`crate::heap::Lookahead`]).
const AHEAD: usize = 16;

impl Ahead {
    /// Takes in the next, and hands back the one that was met so many before.
    fn put(&mut self, met: (Address, Address)) -> (Address, Address) {
        let due = std::mem::replace(&mut self.met[self.next], met);
        self.next = (self.next + 1) % AHEAD;
        due
    }
}

impl Nursery {
    /// A census begins.
    pub(crate) fn begin(&mut self) {
        self.founding = self.old.is_none();
        self.old.get_or_insert_default();
        self.young = Vec::new();
        self.ahead = Ahead::default();
        self.met = 0;
    }

    /// It has met an object that the collector knows.
    pub(crate) fn meet(&mut self, object: Address, object_type: Address) {
        if let Some(old) = &self.old {
            old.fetch(object);
        }
        let (object, object_type) = self.ahead.put((object, object_type));
        self.look_up(object, object_type);
    }

    /// It has met all of them.
    pub(crate) fn met_all(&mut self) {
        for (object, object_type) in std::mem::take(&mut self.ahead).met {
            self.look_up(object, object_type);
        }
    }

    /// Those that are young.
    pub(crate) fn young(&self) -> &[Address] {
        &self.young
    }

    fn look_up(&mut self, object: Address, object_type: Address) {
        let Some(old) = self.old.as_mut().filter(|_| object != 0) else { return };
        if self.founding {
            old.insert(object, object_type);
        } else if !old.contains(object, object_type) {
            self.met += 1;
            if self.young.len() < MOST_YOUNG {
                self.young.push(object);
            }
        }
    }

    /// Does work that goes through the young where the budget allows it beside what is more urgent and comes after it, and
    /// then not twice in a row: there are more of them each time that a program leaks.
    pub(crate) fn pay<R>(
        &mut self,
        budget: &Budget,
        urgent: Duration,
        work: impl FnOnce(&mut Self) -> R,
    ) -> Option<R> {
        let count = self.young.len() as u32;
        if std::mem::take(&mut self.had_turn) && !urgent.is_zero() {
            return None;
        }
        if !budget.allows(self.each * count + urgent, Duration::ZERO) {
            if !budget.allows(self.each * count, Duration::ZERO) {
                // What was dear once is tried again in the end.
                self.each = self.each * 7 / 8;
            }
            return None;
        }
        let started = Stopwatch::start();
        let result = work(self);
        self.had_turn = true;
        if count >= ENOUGH {
            self.each = (started.work() / count).max(self.each * 3 / 4);
        }
        Some(result)
    }

    /// What a collection would free of the young, before anything is called since the census; `None` where it takes too
    /// long or there is nothing. The objects are kept alive by what it returns.
    pub(crate) fn look<'py>(&mut self, heap: &mut Heap<'py>, sampler: Option<Sampler>) -> Option<Found<'py>> {
        let young = std::mem::take(&mut self.young);
        let dead = Trial::dead(heap, &young);
        if young.len() > AGAIN {
            self.grow_old(&young, dead.as_deref().unwrap_or_default());
        }
        let dead = dead?;
        let weight = Weight::of(heap, &dead, sampler);
        let share = self.met as f64 / young.len().max(1) as f64;
        Some(Found { kept: heap.hold(dead.iter().copied()), dead, weight, share })
    }

    /// The program keeps what it has made: what is not garbage counts as old. All of it is there still.
    fn grow_old(&mut self, young: &[Address], dead: &[Address]) {
        let Some(old) = &mut self.old else { return };
        let dead: AddressSet = dead.iter().copied().collect();
        for object in young.iter().filter(|object| !dead.contains(object)) {
            old.insert(*object, type_address(*object));
        }
    }
}

/// Garbage, kept alive while it is looked into.
pub(crate) struct Found<'py> {
    dead: Vec<Address>,
    weight: Weight,
    /// Young objects for each one that was looked at.
    share: f64,
    #[expect(dead_code, reason = "keeps alive what the addresses stand for")]
    kept: Vec<Bound<'py, PyAny>>,
}

impl<'py> Found<'py> {
    /// What is told of it; `enabled` is the collector's state outside of caulk.
    pub(crate) fn told(&self, heap: &mut Heap<'py>, boundary: u32, enabled: bool) -> Garbage {
        let among: AddressSet = self.dead.iter().copied().collect();
        let tensor_bytes = self.weight.storages(heap);
        let whole = |part: u64| (part as f64 * self.share) as u64;
        let (frozen, threshold) = collector(heap.py);
        Garbage {
            boundary,
            objects: whole(self.dead.len() as u64),
            bytes: whole(self.weight.objects + self.weight.hidden + tensor_bytes),
            tensor_bytes: whole(tensor_bytes),
            truncated: self.share > 1.0,
            enabled,
            frozen,
            threshold,
            types: self.weight.types(heap),
            links: links::of(heap, &self.dead, &among),
            places: links::places(heap, &self.dead),
        }
    }
}

/// Objects that are frozen, and objects made until the youngest are looked at.
fn collector(py: Python<'_>) -> (u64, u64) {
    let Some(gc) = loaded(py, "gc") else { return (0, 0) };
    let frozen = gc.call_method0("get_freeze_count").and_then(|count| count.extract());
    let threshold = gc.call_method0("get_threshold").and_then(|all| all.get_item(0)?.extract());
    (frozen.unwrap_or(0), threshold.unwrap_or(0))
}
