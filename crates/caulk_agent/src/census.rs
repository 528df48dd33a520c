//! The census: every object the collector knows, counted by type, and the length of every container.
//!
//! One pass that runs no Python code. Dicts that the collector does not track (plain rows), byte arrays, which it never
//! does, and numpy arrays are met as referents, and as locals of the user's functions. What grows is told by comparing with the census before; addresses are compared, never dereferenced.
//!
//! To look at every reference is most of the cost, so only some censuses do. The others take the lengths of what the collector
//! tracks, and look behind what is new, what has another length, and what held such referents before ([`Depth`]).
//!
//! Bounded in what it keeps and in time, whatever the program holds: of too many containers the shortest are left out,
//! of a container with millions of elements most are not looked at.

use std::time::Duration;

mod depth;
mod found;
mod pause;
mod tracker;

pub(crate) use depth::{Costs, Depth};
pub(crate) use found::{Census, Failure, Seen, Tally};
pub(crate) use pause::{CollectorPaused, resume_collector_after_fork};
pub(crate) use tracker::{Grown, HISTORY, MOST_CENSUSES, Tracker};

use depth::Owners;

use crate::frames;
use crate::garbage::Nursery;
use crate::heap::{
    Address, AddressMap, AddressSet, Heap, Lookahead, Shape, TypeInfo, type_address, visit_tracked,
};
use crate::stopwatch::{self, Stopwatch};

/// Largest request that pymalloc serves, in bytes (CPython, Objects/obmalloc.c, `SMALL_REQUEST_THRESHOLD`).
const SMALL: usize = 512;
/// One object in so many is looked at for the mean size, with what it refers to: some 10,000 in all with torch, which tells
/// the mean to 1 %.
const SAMPLED: u32 = 64;
/// Containers that are compared from census to census: some 10 MB of the agent's own, and 6 more while two censuses are
/// compared.
const MOST_CONTAINERS: usize = 1 << 18;
/// Tensors, arrays and untracked dicts that are noted, each.
const MOST_NOTED: usize = 1 << 18;
/// Shortest byte array that is noted, in bytes: programs hold very many small ones.
const SHORTEST_BYTES: usize = 4096;
/// Elements of containers that are looked at, over all containers.
const MOST_ELEMENTS: usize = 1 << 22;
/// A census that takes longer than this, in CPU time of the thread, is given up, where a program asks for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Types that are at hand without being looked up, and by what their addresses differ at least.
const LATELY: usize = 256;
const LATELY_STRIDE: usize = 32;
/// Objects between two looks at the time.
const OBJECTS_PER_LOOK: u64 = 1 << 14;

/// Walks the heap once, for a `tracker` that knows the census before. `asked` are addresses of an older census. Nothing is
/// made or called meanwhile.
pub(crate) fn take(
    heap: &mut Heap<'_>,
    asked: &AddressSet,
    nursery: &mut Nursery,
    tracker: &mut Tracker,
    depth: Depth,
) -> Result<Census, Failure> {
    let mut owners = tracker.owners_for(depth);
    let locals = untracked_locals(heap);
    nursery.begin();
    let mut walk = Walk::new(heap, asked, Some(nursery), &mut owners, depth.longest())?;
    let done = walk.run(locals);
    // One that is given up tells it as well: a heap that is never walked whole may be on a slow machine, too.
    stopwatch::learn(depth.typical(walk.looks()), walk.started.elapsed());
    done?;
    if depth == Depth::Changed {
        walk.look_into_changed(tracker);
    }
    let census = walk.finish();
    tracker.set_owners(depth, owners);
    Ok(census)
}

/// A census for somebody who waits for it: so much CPU time of the thread at most.
pub(crate) fn take_for_user(heap: &mut Heap<'_>) -> Result<Census, Failure> {
    let (asked, mut owners) = (AddressSet::default(), Owners::of_all());
    let locals = untracked_locals(heap);
    let mut walk = Walk::new(heap, &asked, None, &mut owners, PATIENCE)?;
    walk.run(locals)?;
    Ok(walk.finish())
}

/// What only running functions refer to is no object's referent. Kept alive: reading locals calls.
fn untracked_locals(heap: &mut Heap<'_>) -> Vec<Address> {
    let mut locals = frames::user_locals(heap.py);
    locals.retain(|local| is_untracked(local.as_ptr() as Address));
    let addresses: Vec<Address> = locals.iter().map(|local| local.as_ptr() as Address).collect();
    heap.keep(addresses.iter().copied());
    addresses
}

/// A census that is being taken.
struct Walk<'a, 'py> {
    heap: &'a mut Heap<'py>,
    asked: &'a AddressSet,
    nursery: Option<&'a mut Nursery>,
    owners: &'a mut Owners,
    census: Census,
    tallies: Vec<(Address, TypeInfo, Tally)>,
    index: AddressMap<u32>,
    /// Types that were looked up lately.
    lately: Vec<(Address, u32)>,
    untracked: AddressSet,
    /// Untracked containers that the object at hand refers to.
    referents: Vec<Address>,
    ahead: Lookahead,
    /// Elements of containers that may still be looked at.
    elements: usize,
    /// Shortest container that is noted.
    shortest: usize,
    started: Stopwatch,
    longest: Duration,
    too_long: bool,
}

impl<'a, 'py> Walk<'a, 'py> {
    fn new(
        heap: &'a mut Heap<'py>,
        asked: &'a AddressSet,
        nursery: Option<&'a mut Nursery>,
        owners: &'a mut Owners,
        longest: Duration,
    ) -> Result<Self, Failure> {
        let mut census = Census::default();
        // Address space alone until it is used.
        census.containers.try_reserve_exact(MOST_CONTAINERS)?;
        Ok(Self {
            heap,
            asked,
            nursery,
            owners,
            census,
            tallies: Vec::new(),
            index: AddressMap::default(),
            lately: vec![(0, 0); LATELY],
            untracked: AddressSet::default(),
            referents: Vec::new(),
            ahead: Lookahead::default(),
            elements: MOST_ELEMENTS,
            shortest: 1,
            started: Stopwatch::start(),
            longest,
            too_long: false,
        })
    }

    /// Goes through all that the collector tracks, and these locals.
    fn run(&mut self, locals: Vec<Address>) -> Result<(), Failure> {
        for local in locals {
            self.meet_untracked(local);
        }
        let py = self.heap.py;
        let complete = visit_tracked(py, &mut |object| self.visit(object));
        if let Some(nursery) = &mut self.nursery {
            nursery.met_all();
        }
        match (self.too_long, complete) {
            (true, _) => Err(Failure::TooLong),
            (false, true) => Ok(()),
            (false, false) => Err(Failure::Unavailable),
        }
    }

    /// Counts an object; false where the census is given up.
    fn visit(&mut self, object: Address) -> bool {
        let object_type = type_address(object);
        let at = self.tally_of(object, object_type);
        let (_, info, tally) = &mut self.tallies[at];
        let info = *info;
        tally.count += 1;
        tally.bytes += self.heap.shallow_bytes_of(object, info) as u64;
        self.census.objects += 1;
        if let Some(nursery) = &mut self.nursery {
            nursery.meet(object, object_type);
        }
        if !self.asked.is_empty() && self.asked.contains(&object) {
            self.census.alive.insert(object, object_type);
        }
        self.meet(object, info);
        if may_own_untracked(info) && self.owners.are_asked(object, object_type) {
            self.look_into(object, info);
        }
        self.too_long =
            self.census.objects.is_multiple_of(OBJECTS_PER_LOOK) && self.started.work() > self.longest;
        !self.too_long
    }

    fn tally_of(&mut self, object: Address, object_type: Address) -> usize {
        let place = object_type / LATELY_STRIDE % LATELY;
        if self.lately[place].0 != object_type {
            let at = *self.index.entry(object_type).or_insert_with(|| {
                self.tallies.push((object_type, self.heap.type_of(object), Tally::default()));
                (self.tallies.len() - 1) as u32
            });
            self.lately[place] = (object_type, at);
        }
        self.lately[place].1 as usize
    }

    /// Rows and attributes whose dicts hold only plain values are not tracked, nor are byte arrays: they are met through
    /// their owners.
    fn look_into(&mut self, object: Address, info: TypeInfo) {
        if self.elements == 0 {
            return;
        }
        let mut untracked = std::mem::take(&mut self.referents);
        let (elements, arrays) = (&mut self.elements, &mut self.census.arrays);
        let arrays_before = arrays.len();
        let ndarray = self.heap.ndarray();
        let mut meet = |referent| {
            if is_untracked(referent) {
                untracked.push(referent);
            } else if type_address(referent) == ndarray && arrays.len() < MOST_NOTED {
                arrays.push(referent);
            }
        };
        self.heap.referents_of(object, info, &mut |referent| {
            *elements = elements.saturating_sub(1);
            if let Some(due) = self.ahead.put(referent) {
                meet(due);
            }
        });
        self.ahead.rest().for_each(meet);
        if !untracked.is_empty() || arrays.len() > arrays_before {
            self.owners.add(object, type_address(object));
        }
        for container in untracked.drain(..) {
            self.meet_untracked(container);
        }
        self.referents = untracked;
    }

    /// Looks into what is not as the census before had it: containers that are new or have another length, and young
    /// instances.
    fn look_into_changed(&mut self, tracker: &Tracker) {
        self.census.containers.sort_unstable_by_key(|seen| seen.address);
        let mut changed = tracker.changed(&self.census.containers);
        let young = self.nursery.iter().flat_map(|nursery| nursery.young()).copied();
        let heap = &mut *self.heap;
        changed.extend(young.filter(|object| heap.type_of(*object).shape == Shape::Plain));
        for object in changed {
            let info = self.heap.type_of(object);
            if may_own_untracked(info) && !self.owners.are_asked(object, type_address(object)) {
                self.look_into(object, info);
            }
        }
    }

    /// Each once, however many refer to it.
    fn meet_untracked(&mut self, container: Address) {
        if self.untracked.len() < MOST_NOTED && self.untracked.insert(container) {
            let info = self.heap.type_of(container);
            self.meet(container, info);
        }
    }

    fn meet(&mut self, object: Address, info: TypeInfo) {
        match info.shape {
            Shape::Tensor if self.census.tensors.len() < MOST_NOTED => self.census.tensors.push(object),
            Shape::List
            | Shape::Dict
            | Shape::Set
            | Shape::Deque
            | Shape::SimpleQueue
            | Shape::Buffer
            | Shape::Items => {
                let len = Heap::length_of(object, info.shape).unwrap_or(0);
                if len >= self.shortest {
                    self.note(Seen { address: object, shape: info.shape, len });
                }
            }
            _ => {}
        }
    }

    /// Notes a container; where there are too many, the shorter ones are left out from now on.
    fn note(&mut self, seen: Seen) {
        let containers = &mut self.census.containers;
        while containers.len() >= MOST_CONTAINERS {
            self.shortest *= 2;
            containers.retain(|seen| seen.len >= self.shortest);
        }
        if seen.len >= self.shortest {
            containers.push(seen);
        }
    }

    /// Objects and references that were looked at.
    fn looks(&self) -> u64 {
        self.census.objects + (MOST_ELEMENTS - self.elements) as u64
    }

    fn finish(mut self) -> Census {
        self.census.containers.sort_unstable_by_key(|seen| seen.address);
        let types = self.tallies.into_iter().map(|(address, _, tally)| (address, tally)).collect();
        Census { types, ..self.census }
    }
}

/// May such an object refer to what the collector does not track, and a census is to meet?
fn may_own_untracked(info: TypeInfo) -> bool {
    match info.shape {
        Shape::Dict | Shape::List | Shape::Deque | Shape::TeeBlock => true,
        Shape::Plain => info.instance,
        _ => false,
    }
}

/// Mean size of the objects that pymalloc serves, in bytes as it rounds them, from a sample of the heap.
pub(crate) fn mean_small_object(heap: &mut Heap<'_>) -> f64 {
    let (mut count, mut bytes, mut turn) = (0_u64, 0_u64, 0_u32);
    let mut found: Vec<Address> = Vec::new();
    let py = heap.py;
    visit_tracked(py, &mut |object| {
        turn += 1;
        if turn.is_multiple_of(SAMPLED) && count < MOST_ELEMENTS as u64 {
            found.clear();
            found.push(object);
            heap.referents(object, &mut |referent| found.push(referent));
            for &object in &found {
                let info = heap.type_of(object);
                let own = info.basic_size + if info.collected { 16 } else { 0 };
                if own <= SMALL && info.shape != Shape::Type {
                    count += 1;
                    bytes += own.next_multiple_of(16) as u64;
                }
            }
        }
        true
    });
    if count == 0 { 64.0 } else { bytes as f64 / count as f64 }
}

/// A dict that the collector does not track, or a byte array worth noting?
fn is_untracked(object: Address) -> bool {
    let object_type = type_address(object);
    if object_type == &raw mut pyo3::ffi::PyByteArray_Type as Address {
        return Heap::length_of(object, Shape::Buffer).is_some_and(|length| length >= SHORTEST_BYTES);
    }
    // SAFETY: `object` is alive; reads a header bit.
    object_type == &raw mut pyo3::ffi::PyDict_Type as Address
        && unsafe { pyo3::ffi::PyObject_GC_IsTracked(object as *mut pyo3::ffi::PyObject) == 0 }
}
