//! Sampled blocks that were not given back: a table by address, without locks.
//!
//! An address is in it at most once: it is taken out before the allocator can hand it out again.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::{maps, probe};

/// Places in the table: 32 bytes each.
const PLACES: usize = 1 << 16;
/// Blocks that are kept at most: beyond that looking becomes long. Samples become rarer before ([`is_short_of_room`]).
const MOST: usize = PLACES / 4 * 3;
/// Places looked at for one address.
const PROBES: usize = 256;

const EMPTY: usize = 0;
/// Being filled.
const TAKEN: usize = 1;
/// Was one.
const GONE: usize = 2;

/// What is known of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Bytes that the sample stands for.
    pub(crate) weight: u64,
    /// Blocks that it stands for.
    pub(crate) blocks: u32,
    pub(crate) stack: u32,
    /// In squared KiB.
    pub(crate) variance: u64,
}

impl Record {
    /// Takes a part off, a share of what `whole` was: the parts' sum is the whole. The block goes with the first part.
    pub(crate) fn split(&mut self, whole: Self, share: f64) -> Self {
        let of = |number: u64, left: u64| ((number as f64 * share) as u64).min(left);
        let weight = of(whole.weight, self.weight);
        let variance = of(whole.variance, self.variance);
        let part = Self { weight, variance, ..*self };
        *self = Self { weight: self.weight - weight, blocks: 0, variance: self.variance - variance, ..*self };
        part
    }
}

/// A record in a table that all threads look at. Whoever fills it says by the place's address when it is whole.
#[repr(C)]
pub(crate) struct Cell {
    weight: AtomicU64,
    stack: AtomicU32,
    blocks: AtomicU32,
    variance: AtomicU64,
}

impl Cell {
    pub(crate) const fn new() -> Self {
        Self {
            weight: AtomicU64::new(0),
            stack: AtomicU32::new(0),
            blocks: AtomicU32::new(0),
            variance: AtomicU64::new(0),
        }
    }

    pub(crate) fn record(&self) -> Record {
        Record {
            weight: self.weight.load(Ordering::Relaxed),
            blocks: self.blocks.load(Ordering::Relaxed),
            stack: self.stack.load(Ordering::Relaxed),
            variance: self.variance.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn fill(&self, record: Record) {
        self.weight.store(record.weight, Ordering::Relaxed);
        self.stack.store(record.stack, Ordering::Relaxed);
        self.blocks.store(record.blocks, Ordering::Relaxed);
        self.variance.store(record.variance, Ordering::Relaxed);
    }
}

#[repr(C)]
struct Place {
    address: AtomicUsize,
    known: Cell,
}

static TABLE: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
static LIVE: AtomicUsize = AtomicUsize::new(0);

const BYTES: usize = probe::places(PLACES) * size_of::<Place>();

/// Starts with an empty table; false where there is no memory for one.
pub(crate) fn start() -> bool {
    let Some(new) = maps::anonymous(BYTES) else { return false };
    TABLE.store(new.as_ptr().cast(), Ordering::Release);
    LIVE.store(0, Ordering::Relaxed);
    true
}

/// In a forked child: what is in the table is the parent's. `idle`: nobody is looking at it here.
pub(crate) fn forget(idle: bool) {
    let old = TABLE.swap(ptr::null_mut(), Ordering::Relaxed);
    if let Some(old) = NonNull::new(old).filter(|_| idle) {
        // SAFETY: a forked child has one thread, and it is not in here.
        unsafe { maps::unmap(old.cast(), BYTES) };
    }
}

fn places(address: usize) -> impl Iterator<Item = &'static Place> {
    let table = NonNull::new(TABLE.load(Ordering::Acquire));
    let key = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    // SAFETY: the table has these places, zeroed when it was mapped, and stays.
    let place = |table: NonNull<Place>, index| unsafe { table.add(index).as_ref() };
    table
        .into_iter()
        .flat_map(move |table| probe::probes::<PLACES>(key, PROBES).map(move |index| place(table, index)))
}

/// Does what is left of the table stand for fewer bytes, at this interval, than half of it did at the first one?
pub(crate) fn is_short_of_room(first: u64, interval: u64) -> bool {
    let left = MOST.saturating_sub(LIVE.load(Ordering::Relaxed)) as u64;
    left.saturating_mul(interval) < (MOST as u64 / 2).saturating_mul(first)
}

/// Notes a block; false where there is no room for it.
pub(crate) fn insert(address: usize, record: Record) -> bool {
    if LIVE.load(Ordering::Relaxed) >= MOST {
        return false;
    }
    for place in places(address) {
        let found = place.address.load(Ordering::Relaxed);
        if found != EMPTY && found != GONE {
            continue;
        }
        let won = place.address.compare_exchange(found, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        if won.is_err() {
            continue;
        }
        place.known.fill(record);
        place.address.store(address, Ordering::Release);
        LIVE.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    false
}

/// What is known of a block that stays; `None` where it is not known.
pub(crate) fn find(address: usize) -> Option<Record> {
    let ends = |place: &&Place| [EMPTY, address].contains(&place.address.load(Ordering::Acquire));
    let place = places(address).find(ends)?;
    let record = place.known.record();
    // Still the same one, now that it was read.
    (place.address.load(Ordering::Acquire) == address).then_some(record)
}

/// Takes a block out; `None` where it is not known.
pub(crate) fn remove(address: usize) -> Option<Record> {
    for place in places(address) {
        let found = place.address.load(Ordering::Acquire);
        if found == EMPTY {
            return None;
        }
        if found != address {
            continue;
        }
        let record = place.known.record();
        // A program that frees a block twice may meet itself here.
        place.address.compare_exchange(address, GONE, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        LIVE.fetch_sub(1, Ordering::Relaxed);
        return Some(record);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::slot::Segment;

    /// One test: the table is one for the process.
    #[test]
    fn blocks_are_found_again_until_it_is_full() {
        assert!(start());
        let record = |stack: u32| Record { weight: 7, blocks: 1, stack, variance: 3 };
        let address = |index: usize| 0x7000_0000_0000 + index * 4096;
        let half = MOST / 2;
        assert!((0..half).all(|index| insert(address(index), record(index as u32))));
        assert!(!is_short_of_room(1024, 1024));
        assert!(insert(address(half), record(half as u32)));
        assert!(is_short_of_room(1024, 1024) && !is_short_of_room(1024, 2048));
        assert!((half + 1..MOST).all(|index| insert(address(index), record(index as u32))));
        assert!(!insert(address(MOST), record(0)), "full");
        assert!(is_short_of_room(1024, 1 << 40));
        let memory = tempfile::tempfile().expect("a file");
        memory.set_len(caulk_wire::heap::SLOT_BYTES as u64).expect("room");
        let segment = Segment::map(memory.as_raw_fd(), 0).expect("mapped");
        segment.set_interval(1024);
        crate::governor::keep_room(segment);
        assert_eq!(segment.interval(), 2048, "samples become rarer");
        segment.set_interval(crate::governor::RAREST * crate::environment::beginning());
        crate::governor::keep_room(segment);
        assert_eq!(
            segment.interval(),
            crate::governor::RAREST * crate::environment::beginning(),
            "but not for ever"
        );
        for index in 0..MOST {
            assert_eq!(find(address(index)), Some(record(index as u32)));
            assert_eq!(remove(address(index)), Some(record(index as u32)));
            assert_eq!(find(address(index)), None);
            assert_eq!(remove(address(index)), None);
        }
        assert!(!is_short_of_room(1024, 1024));
        // Places of what has gone are used again.
        for round in 0..20 {
            assert!((0..MOST).all(|index| insert(address(index + round), record(1))));
            assert!((0..MOST).all(|index| remove(address(index + round)).is_some()));
        }
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for index in 0..20_000 {
                        let address = address(thread * 20_000 + index);
                        assert!(insert(address, record(thread as u32)));
                        assert_eq!(remove(address), Some(record(thread as u32)));
                    }
                });
            }
        });
        assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    }
}
