//! The census: every object the collector knows, counted by type, and the length of every container.
//!
//! One pass that runs no Python code. Dicts that the collector does not track (plain rows) and numpy arrays are met as
//! referents. What grows is told by comparing with the census before; addresses are compared, never dereferenced.

use pyo3::prelude::*;

use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, visit_tracked};

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

/// What one census found. Addresses are valid until Python code runs again.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) objects: u64,
    pub(crate) types: AddressMap<Tally>,
    pub(crate) containers: Vec<Seen>,
    pub(crate) tensors: Vec<Address>,
    pub(crate) arrays: Vec<Address>,
    /// Mean size of the small objects met, in bytes, as pymalloc rounds them.
    pub(crate) mean_small: f64,
}

/// Largest request that pymalloc serves, in bytes (CPython, Objects/obmalloc.c, `SMALL_REQUEST_THRESHOLD`).
const SMALL: usize = 512;

/// Walks the heap once; `None` where this interpreter offers no safe way.
pub(crate) fn take(heap: &mut Heap<'_>) -> Option<Census> {
    let mut census = Census::default();
    let mut untracked = AddressSet::default();
    let mut small = (0_u64, 0_u64);
    let mut found: Vec<Address> = Vec::new();
    let py = heap.py;
    let complete = visit_tracked(py, &mut |object| {
        census.meet(heap, object, &mut small);
        let info = heap.type_of(object);
        if matches!(info.shape, Shape::Module | Shape::Type | Shape::Code) {
            return true;
        }
        found.clear();
        heap.referents(object, &mut |referent| found.push(referent));
        for &referent in &found {
            let info = heap.type_of(referent);
            let wanted = match info.shape {
                Shape::Array => true,
                Shape::Dict => !is_tracked(referent),
                Shape::Plain if !info.collected => {
                    let bytes = info.basic_size.next_multiple_of(16);
                    small = (small.0 + 1, small.1 + bytes.min(SMALL) as u64);
                    false
                }
                Shape::Buffer => !info.collected,
                _ => false,
            };
            if wanted && untracked.insert(referent) {
                census.meet(heap, referent, &mut small);
            }
        }
        true
    });
    census.mean_small = if small.0 == 0 { 64.0 } else { small.1 as f64 / small.0 as f64 };
    complete.then_some(census)
}

impl Census {
    fn meet(&mut self, heap: &mut Heap<'_>, object: Address, small: &mut (u64, u64)) {
        let info = heap.type_of(object);
        let bytes = heap.shallow_bytes(object);
        self.objects += 1;
        // SAFETY: `object` is alive within this pass.
        let object_type = unsafe { pyo3::ffi::Py_TYPE(object as *mut pyo3::ffi::PyObject) } as Address;
        let tally = self.types.entry(object_type).or_default();
        tally.count += 1;
        tally.bytes += bytes as u64;
        let own = info.basic_size + if info.collected { 16 } else { 0 };
        if own <= SMALL {
            *small = (small.0 + 1, small.1 + own.next_multiple_of(16) as u64);
        }
        match info.shape {
            Shape::Tensor => self.tensors.push(object),
            Shape::Array => self.arrays.push(object),
            Shape::List | Shape::Dict | Shape::Set | Shape::Deque | Shape::Buffer => {
                if let Some(len) = heap.length(object).filter(|len| *len > 0) {
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

/// Keeps the collector from running while borrowed pointers are held, and puts its state back.
pub(crate) struct CollectorPaused(bool);

impl CollectorPaused {
    pub(crate) fn new(_: Python<'_>) -> Self {
        // SAFETY: the GIL is held; returns the state before.
        Self(unsafe { pyo3::ffi::PyGC_Disable() } != 0)
    }
}

impl Drop for CollectorPaused {
    fn drop(&mut self) {
        if self.0 {
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
            // SAFETY: found alive in this census, and no Python code has run since.
            let object_type = unsafe { pyo3::ffi::Py_TYPE(seen.address as *mut pyo3::ffi::PyObject) } as Address;
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
}
