//! Mappings: memory that native code takes from the kernel itself, and may give back in parts.
//!
//! What the allocator maps is not seen here, as the C library calls itself directly. Another allocator would be, and all
//! that it hands out counted twice: then mappings are not sampled.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::live::{Cell, Record};
use crate::local::local;
use crate::{governor, real, sampler, state};

/// Mappings that are kept at most.
const PLACES: usize = 1024;
const PAGE: usize = 4096;

const EMPTY: usize = 0;
/// Being filled, or taken out: then with the address, which is that of a page.
const TAKEN: usize = 1;

/// A sampled mapping: what is known of it, and where it lies.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    known: Cell,
}

static TABLE: [Place; PLACES] =
    [const { Place { start: AtomicUsize::new(EMPTY), end: AtomicUsize::new(0), known: Cell::new() } };
        PLACES];
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

/// Memory was mapped.
pub(crate) fn mapped(start: usize, length: usize) {
    // SAFETY: this thread's own.
    let quiet = unsafe { local().as_ref() }.quiet > 0;
    if is_watched() && !quiet && sampler::due(length) {
        sampler::event(length, None, |record, _| insert(range(start, length), record));
    }
}

/// A mapping has grown in its place or in a new one: what it gained is an allocation of its own, whether what it had was
/// sampled or not. `known`: it was memory to work with.
pub(crate) fn grown(start: usize, old: usize, new: usize, known: bool) {
    let (_, old_end) = range(start, old);
    let (_, end) = range(start, new);
    if is_watched() && old > 0 && old_end < end && (known || is_private(old_end)) {
        mapped(old_end, end - old_end);
    }
}

fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed)
}

/// Does this page, new and known to nobody yet, belong to one process and to no file? Only such pages may be freed so,
/// and a new one has nothing to lose.
fn is_private(page: usize) -> bool {
    // SAFETY: this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: a page that was just mapped.
    let freed = unsafe { libc::syscall(libc::SYS_madvise, page, PAGE, libc::MADV_FREE) } == 0;
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    freed
}

/// Takes out what is known of a range that may be about to go; `None` where that is nothing.
pub(crate) fn take_out(start: usize, length: usize) -> Option<Taken> {
    match USED.load(Ordering::Relaxed) {
        0 => None,
        used => governor::counted(|| search(range(start, length), used)),
    }
}

/// Looks through the places that have been in use.
fn search(range: (usize, usize), used: usize) -> Option<Taken> {
    let mut taken = Taken { range, places: [0; PLACES / 64] };
    for (index, place) in TABLE.iter().enumerate().take(used) {
        let (start, end) = (place.start.load(Ordering::Acquire), place.end.load(Ordering::Relaxed));
        let apart = start & TAKEN != 0 || start == EMPTY || end <= range.0 || range.1 <= start;
        let take =
            |start| place.start.compare_exchange(start, start | TAKEN, Ordering::AcqRel, Ordering::Relaxed);
        // Two threads that unmap the same range may meet here.
        if !apart
            && take(start).is_ok()
            && let Some(places) = taken.places.get_mut(index / 64)
        {
            *places |= 1 << (index % 64);
        }
    }
    taken.places.iter().any(|places| *places > 0).then_some(taken)
}

/// Mappings that nobody else sees until it is known what becomes of a range in them.
pub(crate) struct Taken {
    range: (usize, usize),
    /// A bit for each place in the table.
    places: [u64; PLACES / 64],
}

impl Taken {
    fn places(&self) -> impl Iterator<Item = &'static Place> {
        let is_taken =
            |index: usize| self.places.get(index / 64).is_some_and(|places| places >> (index % 64) & 1 == 1);
        TABLE.iter().enumerate().filter(move |(index, _)| is_taken(*index)).map(|(_, place)| place)
    }

    /// The system has refused: they are what they were.
    pub(crate) fn stay(self) {
        for place in self.places() {
            place.start.fetch_and(!TAKEN, Ordering::Release);
        }
    }

    /// The range is gone.
    pub(crate) fn go(self) {
        if let Some(segment) = state::active() {
            self.settle(None, |record| segment.give_back(&record));
        }
    }

    /// The range begins at another address now, and is so long at most.
    pub(crate) fn move_to(self, start: usize, length: usize) {
        if let Some(segment) = state::active() {
            self.settle(Some(range(start, length)), |record| segment.give_back(&record));
        }
    }

    /// What is left of a mapping on either side of the range stays known, and what has moved; `gone` gets the rest.
    fn settle(self, moved: Option<(usize, usize)>, mut gone: impl FnMut(Record)) {
        let (from, to) = self.range;
        for place in self.places() {
            let (start, end) =
                (place.start.load(Ordering::Relaxed) & !TAKEN, place.end.load(Ordering::Relaxed));
            let mut rest = place.known.record();
            place.start.store(EMPTY, Ordering::Release);
            let inside = moved.map(|(first, last)| {
                let at = |address: usize| (first + (address - from)).min(last);
                (at(start.max(from)), at(end.min(to)))
            });
            let share = |part: usize| part as f64 / (end - start) as f64;
            let whole = rest;
            let parts = [Some((start, from)), inside, Some((to, end))];
            for part in parts.into_iter().flatten().filter(|(start, end)| start < end) {
                let kept = rest.split(whole, share(part.1 - part.0));
                if !insert(part, kept) {
                    gone(kept);
                }
            }
            gone(rest);
        }
    }
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
        place.known.fill(record);
        USED.fetch_max(index + 1, Ordering::Relaxed);
        place.start.store(start, Ordering::Release);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: Record = Record { weight: 1000, blocks: 1, stack: 7, variance: 100 };

    /// Bytes and blocks that go with a range.
    fn cut_out((from, to): (usize, usize)) -> (u64, u32) {
        let mut sum = (0, 0);
        if let Some(taken) = take_out(from, to - from) {
            taken.settle(None, |record| sum = (sum.0 + record.weight, sum.1 + record.blocks));
        }
        sum
    }

    /// One test: the table is one for the process.
    #[test]
    fn what_is_left_of_a_mapping_stays_known() {
        let at = |page: usize| 0x7000_0000_0000 + page * PAGE;
        assert!(take_out(at(0), at(1)).is_none());
        assert!(insert((at(0), at(10)), RECORD));
        assert_eq!(cut_out((at(20), at(30))), (0, 0), "beside it");
        assert_eq!(cut_out((at(4), at(6))), (200, 0), "out of its middle");
        assert_eq!(cut_out((at(0), at(3))), (300, 0), "its beginning");
        assert_eq!(cut_out((at(3), at(20))), (500, 1), "all the rest");
        assert_eq!(cut_out((at(0), at(20))), (0, 0));

        assert!(insert((at(0), at(10)), RECORD));
        let taken = take_out(at(2), 4 * PAGE).expect("it is known");
        assert!(take_out(at(0), 10 * PAGE).is_none(), "somebody is at it");
        taken.stay();
        take_out(at(2), 4 * PAGE).expect("it is known").settle(Some((at(50), at(53))), |record| {
            assert_eq!((record.weight, record.blocks), (100, 0), "one page less");
        });
        assert_eq!(cut_out((at(50), at(60))), (300, 0), "what moved");
        assert_eq!(cut_out((at(0), at(50))), (600, 1), "both sides");

        for page in 0..PLACES {
            assert!(insert((at(page), at(page + 1)), RECORD));
        }
        assert!(!insert((at(PLACES), at(PLACES + 1)), RECORD), "full");
        assert_eq!(cut_out((at(0), at(PLACES))), (1000 * PLACES as u64, PLACES as u32));
        assert_eq!(range(at(1), 1), (at(1), at(2)));
        assert_eq!(range(at(1), 0), (at(1), at(1)));
    }
}
