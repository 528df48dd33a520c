//! What waits for the collector: objects in cycles that nothing outside refers to, found without collecting.
//!
//! The collector's own method over a side table, as for contents: from each object's references those are taken away that
//! come from the others; what keeps none, and is reached by nothing that keeps some, would be freed (CPython,
//! Modules/gcmodule.c, `deduce_unreachable`). Only objects made since the first census are looked at: references from
//! older ones count as from outside, so that at worst garbage is missed. The walk makes nothing and calls nothing.

use std::time::Duration;

use caulk_wire::Garbage;
use pyo3::prelude::*;

mod hidden;
mod links;
mod weight;

use weight::Weight;

use crate::heap::{Address, AddressBits, AddressMap, AddressSet, Heap, loaded};
use crate::heap_profile::Sampler;
use crate::stopwatch::Stopwatch;

/// Objects that are looked at: the first of so many that are younger than the first census.
const MOST_YOUNG: usize = 1 << 17;
/// CPU time for the trial.
const TIME_LIMIT: Duration = Duration::from_millis(60);
/// Objects between two looks at the time.
const OBJECTS_PER_LOOK: usize = 1 << 12;
/// Part of the young that is garbage below which a full house is taken for the program's own.
const SMALLEST_PART: usize = 16;

/// Objects that are younger than the first census, as the last one met them.
#[derive(Default)]
pub(crate) struct Nursery {
    /// What was there in the first census.
    old: Option<AddressBits>,
    /// That census is being taken now.
    founding: bool,
    young: Vec<Address>,
    /// Young objects met, those beyond the bound included.
    met: usize,
}

impl Nursery {
    /// A census begins.
    pub(crate) fn begin(&mut self) {
        self.founding = self.old.is_none();
        self.old.get_or_insert_default();
        self.young = Vec::new();
        self.met = 0;
    }

    /// It has met an object that the collector knows.
    pub(crate) fn meet(&mut self, object: Address) {
        let Some(old) = &mut self.old else { return };
        if self.founding {
            old.insert(object);
        } else if !old.contains(object) {
            self.met += 1;
            if self.young.len() < MOST_YOUNG {
                self.young.push(object);
            }
        }
    }

    /// What a collection would free of the young, before anything is called since the census; `None` where it takes too
    /// long or there is nothing. The objects are kept alive by what it returns.
    pub(crate) fn look<'py>(&mut self, heap: &mut Heap<'py>, sampler: Option<Sampler>) -> Option<Found<'py>> {
        let young = std::mem::take(&mut self.young);
        let dead = Trial::of(heap, &young)?.dead();
        if self.met > young.len() && dead.len() < young.len() / SMALLEST_PART {
            // The program keeps what it has made: the next census founds anew.
            self.old = None;
        }
        let weight = Weight::of(heap, &dead, sampler);
        let share = self.met as f64 / young.len().max(1) as f64;
        Some(Found { kept: heap.hold(dead.iter().copied()), dead, weight, share })
    }
}

/// References to the young that do not come from the young.
struct Trial<'a, 'h, 'py> {
    heap: &'h mut Heap<'py>,
    young: &'a [Address],
    index: AddressMap<u32>,
    outside: Vec<usize>,
    started: Stopwatch,
}

impl<'a, 'h, 'py> Trial<'a, 'h, 'py> {
    fn of(heap: &'h mut Heap<'py>, young: &'a [Address]) -> Option<Self> {
        let mut index = AddressMap::default();
        index.try_reserve(young.len()).ok()?;
        index.extend(young.iter().enumerate().map(|(at, object)| (*object, at as u32)));
        let outside = young.iter().map(|object| heap.references(*object)).collect();
        let mut trial = Self { heap, young, index, outside, started: Stopwatch::start() };
        for (count, object) in young.iter().enumerate() {
            if trial.is_too_long(count) {
                return None;
            }
            let Self { heap, index, outside, .. } = &mut trial;
            heap.counted_referents(*object, &mut |referent| {
                if let Some(at) = index.get(&referent) {
                    outside[*at as usize] = outside[*at as usize].saturating_sub(1);
                }
            });
        }
        trial.spread();
        Some(trial)
    }

    fn is_too_long(&self, count: usize) -> bool {
        count.is_multiple_of(OBJECTS_PER_LOOK) && self.started.work() > TIME_LIMIT
    }

    /// What is reached from outside keeps what it refers to.
    fn spread(&mut self) {
        let Self { heap, young, index, outside, .. } = self;
        let mut stack: Vec<u32> = (0..young.len() as u32).filter(|at| outside[*at as usize] > 0).collect();
        while let Some(at) = stack.pop() {
            heap.referents(young[at as usize], &mut |referent| {
                if let Some(next) = index.get(&referent)
                    && outside[*next as usize] == 0
                {
                    outside[*next as usize] = 1;
                    stack.push(*next);
                }
            });
        }
    }

    fn dead(self) -> Vec<Address> {
        self.young
            .iter()
            .zip(&self.outside)
            .filter(|(_, left)| **left == 0)
            .map(|(object, _)| *object)
            .collect()
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
