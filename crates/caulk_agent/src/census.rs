//! The census: every object the collector knows, counted by type, and the length of every container.
//!
//! One pass that runs no Python code. Dicts that the collector does not track (plain rows) and numpy arrays are met as
//! referents. What grows is told by comparing with the census before; addresses are compared, never dereferenced.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, TypeInfo, type_address, visit_tracked};

/// A container met in a census.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) address: Address,
    pub(crate) shape: Shape,
    pub(crate) len: usize,
}

/// Count and bytes of one type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// Largest request that pymalloc serves, in bytes (CPython, Objects/obmalloc.c, `SMALL_REQUEST_THRESHOLD`).
const SMALL: usize = 512;
/// One object in so many is looked at for the mean size.
const SAMPLED: u32 = 16;

/// What one census found. Addresses are valid until Python code runs again.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) objects: u64,
    pub(crate) types: AddressMap<Tally>,
    pub(crate) containers: Vec<Seen>,
    pub(crate) tensors: Vec<Address>,
    /// Numpy arrays held by containers and instances; one may be listed more than once.
    pub(crate) arrays: Vec<Address>,
    /// Those of the addresses asked about that are alive, with their types.
    pub(crate) alive: AddressMap<Address>,
}

/// Walks the heap once; `None` where this interpreter offers no safe way. `asked` are addresses of an older census.
pub(crate) fn take(heap: &mut Heap<'_>, asked: &AddressSet) -> Option<Census> {
    let mut census = Census::default();
    let mut tallies: Vec<(Address, TypeInfo, Tally)> = Vec::new();
    let mut index: AddressMap<u32> = AddressMap::default();
    let mut untracked = AddressSet::default();
    let mut found: Vec<Address> = Vec::new();
    let py = heap.py;
    let (plain_dict, ndarray) = (&raw mut pyo3::ffi::PyDict_Type as Address, heap.ndarray());
    let complete = visit_tracked(py, &mut |object| {
        let object_type = type_address(object);
        let at = *index.entry(object_type).or_insert_with(|| {
            tallies.push((object_type, heap.type_of(object), Tally::default()));
            (tallies.len() - 1) as u32
        });
        let (_, info, tally) = &mut tallies[at as usize];
        tally.count += 1;
        tally.bytes += heap.shallow_bytes_of(object, *info) as u64;
        if !asked.is_empty() && asked.contains(&object) {
            census.alive.insert(object, object_type);
        }
        census.meet(object, *info);
        // Rows and attributes whose dicts hold only plain values are not tracked: they are met through their owners.
        let owns_dicts = match info.shape {
            Shape::Dict | Shape::List | Shape::Deque => true,
            Shape::Plain => info.instance,
            _ => false,
        };
        if owns_dicts {
            found.clear();
            heap.referents_of(object, *info, &mut |referent| {
                let referent_type = type_address(referent);
                if referent_type == plain_dict {
                    found.push(referent);
                } else if referent_type == ndarray {
                    census.arrays.push(referent);
                }
            });
            for &dict in &found {
                if !is_tracked(dict) && untracked.insert(dict) {
                    let info = heap.type_of(dict);
                    census.meet(dict, info);
                }
            }
        }
        true
    });
    census.objects = tallies.iter().map(|(_, _, tally)| tally.count).sum();
    census.types = tallies.into_iter().map(|(address, _, tally)| (address, tally)).collect();
    complete.then_some(census)
}

/// Mean size of the objects that pymalloc serves, in bytes as it rounds them, from a sample of the heap.
pub(crate) fn mean_small_object(heap: &mut Heap<'_>) -> f64 {
    let (mut count, mut bytes, mut turn) = (0_u64, 0_u64, 0_u32);
    let mut found: Vec<Address> = Vec::new();
    let py = heap.py;
    visit_tracked(py, &mut |object| {
        turn += 1;
        if turn.is_multiple_of(SAMPLED) {
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

impl Census {
    fn meet(&mut self, object: Address, info: TypeInfo) {
        match info.shape {
            Shape::Tensor => self.tensors.push(object),
            Shape::List | Shape::Dict | Shape::Set | Shape::Deque | Shape::Buffer => {
                if let Some(len) = Heap::length_of(object, info.shape).filter(|len| *len > 0) {
                    self.containers.push(Seen { address: object, shape: info.shape, len });
                }
            }
            _ => {}
        }
    }
}

fn is_tracked(object: Address) -> bool {
    // SAFETY: `object` is alive; reads a header bit.
    unsafe { pyo3::ffi::PyObject_GC_IsTracked(object as *mut pyo3::ffi::PyObject) != 0 }
}

/// Set while the collector is off on caulk's account: a thread that forks meanwhile takes the state along.
static PAUSED: AtomicBool = AtomicBool::new(false);

/// In a forked child: the collector goes on.
pub(crate) fn resume_collector_after_fork() {
    if PAUSED.swap(false, Ordering::Relaxed) {
        // SAFETY: called from Python, with the GIL held.
        unsafe { pyo3::ffi::PyGC_Enable() };
    }
}

/// Keeps the collector from running while borrowed pointers are held, and puts its state back.
pub(crate) struct CollectorPaused(bool);

impl CollectorPaused {
    pub(crate) fn new(_: Python<'_>) -> Self {
        // SAFETY: the GIL is held; returns the state before.
        let enabled = unsafe { pyo3::ffi::PyGC_Disable() } != 0;
        PAUSED.fetch_or(enabled, Ordering::Relaxed);
        Self(enabled)
    }
}

impl Drop for CollectorPaused {
    fn drop(&mut self) {
        if self.0 {
            PAUSED.store(false, Ordering::Relaxed);
            // SAFETY: only made and dropped with the GIL held.
            unsafe { pyo3::ffi::PyGC_Enable() };
        }
    }
}

/// How one container has moved over the censuses.
#[derive(Debug, Clone, Copy)]
struct Track {
    object_type: Address,
    /// Lengths in the last censuses, newest first; 0 before it was met.
    history: [u32; HISTORY],
    first_len: u32,
    /// Censuses in which it was longer than before, out of the last eight, newest in the lowest bit.
    grew: u8,
    seen: u8,
}

/// Compares each census with the one before.
#[derive(Default)]
pub(crate) struct Tracker {
    tracks: AddressMap<Track>,
}

/// A container that grew in at least two of its last three censuses and never shrank in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grown {
    pub(crate) seen: Seen,
    pub(crate) gained: usize,
    /// Lengths in the last censuses, newest first; 0 before it was met.
    pub(crate) history: [u32; HISTORY],
}

/// Lengths kept for every container, so that a candidate's series begins before it became one.
pub(crate) const HISTORY: usize = 4;

/// How far back a growing container may have been seen: growth in two of three intervals makes a candidate.
const WINDOW: u8 = 0b111;

impl Track {
    fn after(before: Option<&Self>, object_type: Address, len: u32) -> Self {
        match before {
            // A shorter container starts anew: it is emptied or trimmed, or another one at the same address.
            Some(track) if len >= track.history[0] => {
                let mut history = [len; HISTORY];
                history[1..].copy_from_slice(&track.history[..HISTORY - 1]);
                let grew = (track.grew << 1) | u8::from(len > track.history[0]);
                Self { history, grew, seen: track.seen.saturating_add(1), ..*track }
            }
            _ => {
                let mut history = [0; HISTORY];
                history[0] = len;
                Self { object_type, history, first_len: len, grew: 0, seen: 1 }
            }
        }
    }
}

impl Tracker {
    /// Takes the next census in, and returns what grows, fastest first.
    pub(crate) fn update(&mut self, census: &Census) -> Vec<Grown> {
        let mut next: AddressMap<Track> = AddressMap::default();
        next.reserve(census.containers.len());
        let mut grown = Vec::new();
        for seen in &census.containers {
            let object_type = type_address(seen.address);
            let len = u32::try_from(seen.len).unwrap_or(u32::MAX);
            let before = self.tracks.get(&seen.address).filter(|track| track.object_type == object_type);
            let track = Track::after(before, object_type, len);
            if track.seen >= 3 && (track.grew & WINDOW).count_ones() >= 2 {
                let gained = (len - track.first_len) as usize;
                grown.push(Grown { seen: *seen, gained, history: track.history });
            }
            next.insert(seen.address, track);
        }
        self.tracks = next;
        grown.sort_by_key(|grown| std::cmp::Reverse(grown.gained));
        grown
    }

    /// Was there a container at this address in the last census?
    pub(crate) fn knows(&self, address: Address) -> bool {
        self.tracks.contains_key(&address)
    }

    /// Is this a container that was longer in the last census than in the one before?
    pub(crate) fn lengthened(&self, address: Address) -> bool {
        self.tracks.get(&address).is_some_and(|track| track.seen >= 2 && track.history[0] > track.history[1])
    }
}
