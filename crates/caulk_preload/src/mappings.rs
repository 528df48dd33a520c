//! Mappings: memory that native code takes from the kernel itself, and may give back in parts.
//!
//! What the allocator maps is not seen here, as the C library calls itself directly. Another allocator would be, and all
//! that it hands out counted twice: then mappings are not sampled.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::live::Record;
use crate::local::local;
use crate::{real, sampler, segment};

/// Mappings that are kept at most.
const PLACES: usize = 1024;
const PAGE: usize = 4096;

const EMPTY: usize = 0;
/// Being filled or taken out.
const TAKEN: usize = 1;

/// A sampled mapping: what is known of it, and where it lies.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    weight: AtomicU64,
    stack: AtomicU32,
    blocks: AtomicU32,
    variance: AtomicU64,
}

static TABLE: [Place; PLACES] = [const {
    Place {
        start: AtomicUsize::new(EMPTY),
        end: AtomicUsize::new(0),
        weight: AtomicU64::new(0),
        stack: AtomicU32::new(0),
        blocks: AtomicU32::new(0),
        variance: AtomicU64::new(0),
    }
}; PLACES];
/// Places that have been in use, from the first one on.
static USED: AtomicUsize = AtomicUsize::new(0);

static WATCHED: AtomicBool = AtomicBool::new(false);

/// Samples mappings from now on, if these can be told from the allocator's.
pub(crate) fn watch() {
    WATCHED.store(real::is_libc(), Ordering::Relaxed);
}

/// Is what is mapped so memory to work with? Reservations and stacks of threads are not, nor are files.
pub(crate) fn is_memory(protection: c_int, flags: c_int) -> bool {
    const NOT: c_int = libc::MAP_NORESERVE | libc::MAP_STACK;
    protection & libc::PROT_WRITE != 0 && flags & libc::MAP_ANONYMOUS != 0 && flags & NOT == 0
}

/// Memory was mapped; `first` is the stack that is to blame for it where it is known.
pub(crate) fn mapped(start: usize, length: usize, first: Option<u32>) {
    // SAFETY: this thread's own.
    let quiet = unsafe { local().as_ref() }.quiet > 0;
    if WATCHED.load(Ordering::Relaxed) && !quiet && sampler::due(length) {
        sampler::event(length, first, |record, _| insert(range(start, length), record));
    }
}

/// A range is about to be given back. The stack that a mapping in it was charged to.
pub(crate) fn unmapped(start: usize, length: usize) -> Option<u32> {
    let (mut stack, segment) = (None, segment::active().filter(|_| any())?);
    cut(range(start, length), |record| {
        stack = Some(record.stack);
        segment.give_back(&record);
    });
    stack
}

/// Whole pages, as the kernel maps them.
fn range(start: usize, length: usize) -> (usize, usize) {
    (start, start.saturating_add(length.checked_next_multiple_of(PAGE).unwrap_or(length)))
}

/// In a forked child: what is in the table is the parent's.
pub(crate) fn forget() {
    for place in &TABLE {
        place.start.store(EMPTY, Ordering::Relaxed);
    }
    USED.store(0, Ordering::Relaxed);
}

/// Notes a mapping; false where there is no room for it.
fn insert((start, end): (usize, usize), record: Record) -> bool {
    for (index, place) in TABLE.iter().enumerate() {
        let won = place.start.compare_exchange(EMPTY, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        if won.is_err() {
            continue;
        }
        place.end.store(end, Ordering::Relaxed);
        place.weight.store(record.weight, Ordering::Relaxed);
        place.stack.store(record.stack, Ordering::Relaxed);
        place.blocks.store(record.blocks, Ordering::Relaxed);
        place.variance.store(record.variance, Ordering::Relaxed);
        USED.fetch_max(index + 1, Ordering::Relaxed);
        place.start.store(start, Ordering::Release);
        return true;
    }
    false
}

/// Is any mapping known?
fn any() -> bool {
    USED.load(Ordering::Relaxed) > 0
}

/// Takes out what lies in a range. What is left of a mapping on either side stays known; `gone` gets the rest.
fn cut((from, to): (usize, usize), mut gone: impl FnMut(Record)) {
    for place in &TABLE[..USED.load(Ordering::Relaxed).min(PLACES)] {
        let (start, end) = (place.start.load(Ordering::Acquire), place.end.load(Ordering::Relaxed));
        let apart = start == EMPTY || start == TAKEN || end <= from || to <= start;
        // Two threads that unmap the same range may meet here.
        if apart || place.start.compare_exchange(start, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            continue;
        }
        let mut rest = Record {
            weight: place.weight.load(Ordering::Relaxed),
            blocks: place.blocks.load(Ordering::Relaxed),
            stack: place.stack.load(Ordering::Relaxed),
            variance: place.variance.load(Ordering::Relaxed),
        };
        place.start.store(EMPTY, Ordering::Release);
        let share = |part: usize| part as f64 / (end - start) as f64;
        let whole = rest;
        for side in [(start, from), (to, end)].into_iter().filter(|(start, end)| start < end) {
            let kept = rest.split(whole, share(side.1 - side.0));
            if !insert(side, kept) {
                gone(kept);
            }
        }
        gone(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: Record = Record { weight: 1000, blocks: 1, stack: 7, variance: 100 };

    fn cut_out(range: (usize, usize)) -> (u64, u32) {
        let mut sum = (0, 0);
        cut(range, |record| sum = (sum.0 + record.weight, sum.1 + record.blocks));
        sum
    }

    /// One test: the table is one for the process.
    #[test]
    fn what_is_left_of_a_mapping_stays_known() {
        let at = |page: usize| 0x7000_0000_0000 + page * PAGE;
        assert!(!any());
        assert!(insert((at(0), at(10)), RECORD));
        assert_eq!(cut_out((at(20), at(30))), (0, 0), "beside it");
        assert_eq!(cut_out((at(4), at(6))), (200, 0), "out of its middle");
        assert_eq!(cut_out((at(0), at(3))), (300, 0), "its beginning");
        assert_eq!(cut_out((at(3), at(20))), (500, 1), "all the rest");
        assert_eq!(cut_out((at(0), at(20))), (0, 0));
        for page in 0..PLACES {
            assert!(insert((at(page), at(page + 1)), RECORD));
        }
        assert!(!insert((at(PLACES), at(PLACES + 1)), RECORD), "full");
        assert_eq!(cut_out((at(0), at(PLACES))), (1000 * PLACES as u64, PLACES as u32));
        assert_eq!(range(at(1), 1), (at(1), at(2)));
        assert_eq!(range(at(1), 0), (at(1), at(1)));
    }
}
