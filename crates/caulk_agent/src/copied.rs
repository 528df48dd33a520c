//! The container whose elements a forked process copies by reading them.
//!
//! Its pages turn private one by one as reference counts change, while it holds no more than before. The kernel tells of
//! each page whether others map it too.

use std::time::Duration;

use caulk_wire::{ContainerLen, Contents, Holder};

use crate::census::Seen;
use crate::channel::Channel;
use crate::heap::{Address, AddressSet, Heap, Shape, type_address, visit_tracked};
use crate::holders::{self, Scope};
use crate::pages::Pages;
use crate::sharing::SharesMeter;
use crate::stopwatch::Stopwatch;
use crate::{contents, label};

/// Bytes that must have turned private before the container is looked for, and readings over which they did.
const WORTH: u64 = 2 << 20;
const READINGS: u32 = 3;
/// Shortest container that can be it, and how many of the longest are looked at.
const SHORTEST: usize = 1000;
const LOOKED_AT: usize = 24;
/// Elements of a container whose pages are asked for, and of these the fewest in private pages.
const SAMPLED: usize = 256;
const FEWEST: usize = 4;
/// From this share on everything is copied: a container that the process has made itself.
const ALL: f64 = 0.95;
/// Searches in the life of a process.
const TRIES: u8 = 2;
/// Longest walk over the heap, in CPU time, which is looked at after so many objects.
const LONGEST: Duration = Duration::from_millis(60);
const OBJECTS_PER_LOOK: u64 = 1 << 14;

/// The search, and what it has found.
#[derive(Default)]
pub(crate) struct Copied {
    tries: u8,
    done: bool,
}

/// A container that is being copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    seen: Seen,
    sampled: u32,
    private: u32,
}

impl Copied {
    /// Is it time to look for the container?
    pub(crate) fn is_due(&self, shares: Option<&SharesMeter>) -> bool {
        let (copied, readings) = shares.map_or((0, 0), SharesMeter::copied);
        !self.done && self.tries < TRIES && copied >= WORTH && readings >= READINGS
    }

    /// The container most of whose elements lie in pages that were copied; kept alive. Nothing is called, and no reference
    /// is counted but to the one that is found.
    pub(crate) fn search(&mut self, heap: &mut Heap<'_>) -> Option<Found> {
        self.tries += 1;
        let pages = Pages::open().ok()?;
        let mut best: Option<(f64, Found)> = None;
        for seen in longest(heap) {
            let elements = sample(heap, seen.address);
            let private = elements.iter().filter(|element| pages.is_private(**element)).count();
            let share = private as f64 / elements.len().max(1) as f64;
            let weight = share * seen.len as f64;
            if private < FEWEST || share > ALL || best.as_ref().is_some_and(|(most, _)| *most >= weight) {
                continue;
            }
            let (sampled, private) = (elements.len() as u32, private as u32);
            best = Some((weight, Found { seen, sampled, private }));
        }
        let (_, found) = best?;
        heap.keep([found.seen.address]);
        Some(found)
    }

    /// Tells what keeps the container, and what is in it.
    pub(crate) fn explain(
        &mut self,
        heap: &mut Heap<'_>,
        found: Found,
        id: u32,
        boundary: u32,
        channel: &mut Channel,
    ) {
        let Seen { address, shape, len } = found.seen;
        let targets = AddressSet::from_iter([address]);
        let (paths, _) = holders::find(heap, &targets, Scope::User);
        let Some(path) = paths.get(&address) else { return };
        self.done = true;
        channel.send(&Holder { id, boundary, ..label::describe(heap, path).holder }.into());
        let kind = shape.kind();
        let type_name = heap.type_name(address);
        let shallow_bytes = heap.shallow_bytes(address) as u64;
        let len = len as u64;
        channel.send(&ContainerLen { boundary, id, kind, type_name, len, shallow_bytes }.into());
        let inside = contents::look(heap, address, 0);
        let (sampled, copied) = (found.sampled, found.private);
        channel.send(&Contents { id, boundary, sampled, copied, ..inside }.into());
    }
}

/// The longest containers, also those that the collector does not track: they are met through what holds them.
fn longest(heap: &mut Heap<'_>) -> Vec<Seen> {
    let started = Stopwatch::start();
    let mut found: Vec<Seen> = Vec::new();
    let mut count = 0_u64;
    visit_tracked(heap.py, &mut |object| {
        let info = heap.type_of(object);
        match info.shape {
            Shape::List | Shape::Dict | Shape::Set | Shape::Deque => {
                let len = Heap::length_of(object, info.shape).unwrap_or(0);
                if len >= SHORTEST {
                    found.push(Seen { address: object, shape: info.shape, len });
                } else if info.shape == Shape::Dict {
                    found.extend(untracked(heap, object));
                }
            }
            Shape::Plain if info.instance => found.extend(untracked(heap, object)),
            _ => {}
        }
        count += 1;
        !count.is_multiple_of(OBJECTS_PER_LOOK) || started.work() < LONGEST
    });
    found.sort_by_key(|seen| (std::cmp::Reverse(seen.len), seen.address));
    found.dedup_by_key(|seen| seen.address);
    found.truncate(LOOKED_AT);
    found
}

/// Long dicts among the referents of an object that the collector leaves out.
fn untracked(heap: &mut Heap<'_>, object: Address) -> Vec<Seen> {
    let mut found = Vec::new();
    heap.referents(object, &mut |referent| {
        if type_address(referent) == &raw mut pyo3::ffi::PyDict_Type as Address
            && let Some(len) = Heap::length_of(referent, Shape::Dict).filter(|len| *len >= SHORTEST)
        {
            found.push(Seen { address: referent, shape: Shape::Dict, len });
        }
    });
    found
}

/// Elements of a container, evenly over it.
fn sample(heap: &mut Heap<'_>, container: Address) -> Vec<Address> {
    let mut elements = Vec::new();
    heap.referents(container, &mut |element| elements.push(element));
    let step = (elements.len() / SAMPLED).max(1);
    elements.into_iter().step_by(step).collect()
}
