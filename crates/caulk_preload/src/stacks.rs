//! Stacks and code objects under a number each, written down once.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use caulk_wire::heap::{
    CODE_INDEX, Frame, MAX_CODES, MAX_FRAMES, MAX_STACKS, OTHERS, STACK_INDEX, header, stack,
};

use crate::lent;
use crate::local::Local;
use crate::maps;
use crate::probe;
use crate::python::{self, Memory, Others, Own, Raw};
use crate::slot::Segment;

/// Numbers by key: open addressing, keys other than 0, without locks.
#[repr(C)]
struct Place {
    key: AtomicU64,
    /// 0 while the record is being written, [`FAILED`] where that failed, else the number plus 1.
    number: AtomicU32,
}

const FAILED: u32 = u32::MAX;
/// Places looked at for one key. A table holds numbers in half of its places at most; the other half may fill with keys
/// that found no room elsewhere.
const PROBES: usize = 128;
/// Looks at a number that another thread is about to write.
const PATIENCE: usize = 200;

/// A table of numbers.
struct Table<const PLACES: usize>(AtomicPtr<Place>);

static STACKS: Table<{ MAX_STACKS * 2 }> = Table(AtomicPtr::new(ptr::null_mut()));
static CODES: Table<{ MAX_CODES * 2 }> = Table(AtomicPtr::new(ptr::null_mut()));

impl<const PLACES: usize> Table<PLACES> {
    const BYTES: usize = probe::places(PLACES) * size_of::<Place>();

    fn start(&self) -> bool {
        let Some(new) = maps::anonymous(Self::BYTES) else { return false };
        self.0.store(new.as_ptr().cast(), Ordering::Release);
        true
    }

    fn forget(&self, idle: bool) {
        let old = self.0.swap(ptr::null_mut(), Ordering::Relaxed);
        if let Some(old) = NonNull::new(old).filter(|_| idle) {
            // SAFETY: a forked child has one thread, and it is not in here.
            unsafe { maps::unmap(old.cast(), Self::BYTES) };
        }
    }

    /// The number of a key; `make` writes its record where it is new.
    fn number(&self, key: u64, make: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let (table, key) = (NonNull::new(self.0.load(Ordering::Acquire))?, key.max(1));
        for index in probe::probes::<PLACES>(key, PROBES) {
            // SAFETY: the table has these places, zeroed when it was mapped, and stays.
            let place = unsafe { table.add(index).as_ref() };
            let Err(found) = place.key.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) else {
                let made = make();
                place.number.store(made.map_or(FAILED, |number| number + 1), Ordering::Release);
                return made;
            };
            if found == key {
                return read(&place.number);
            }
        }
        None
    }
}

fn read(number: &AtomicU32) -> Option<u32> {
    for _ in 0..PATIENCE {
        match number.load(Ordering::Acquire) {
            0 => std::hint::spin_loop(),
            FAILED => return None,
            number => return Some(number - 1),
        }
    }
    None
}

/// Makes the tables, and in an empty slot the stack for what finds no place in them; false where there is no memory.
pub(crate) fn start(segment: Segment) -> bool {
    let has_others = || {
        let known = segment.word(header::STACKS).load(Ordering::Relaxed) > OTHERS;
        known || write(segment, &[], stack::OTHERS) == Some(OTHERS)
    };
    STACKS.start() && CODES.start() && has_others()
}

/// In a forked child: the numbers are the parent's. `idle`: nobody is looking at them here.
pub(crate) fn forget(idle: bool) {
    STACKS.forget(idle);
    CODES.forget(idle);
}

/// The number that the calling thread's samples are charged to: where its stack finds no place, that of all others.
pub(crate) fn charged(segment: Segment, own: &Local) -> u32 {
    current(segment, own).unwrap_or(OTHERS)
}

/// The number of the calling thread's stack. Of a thread without one, that of the thread that it works for.
pub(crate) fn current(segment: Segment, own: &Local) -> Option<u32> {
    let mut raw = [Raw::default(); MAX_FRAMES];
    let (count, truncated) = python::walk(&mut raw);
    if count == 0 {
        if let Some(stack) = of_leader(segment, own.leader, &mut raw) {
            return Some(stack);
        }
        if let Some(lent) = lent::to(own) {
            if lent::is_mixed(own) {
                segment.mixed();
            }
            return borrowed(segment, lent);
        }
    }
    numbered::<Own>(segment, raw.get(..count)?, flags(truncated))
}

/// The number of the stack of a thread that waits for this one, by its state.
fn of_leader(segment: Segment, state: usize, raw: &mut [Raw]) -> Option<u32> {
    if state == 0 {
        return None;
    }
    let (count, truncated) = python::walk_other(state, raw).filter(|(count, _)| *count > 0)?;
    numbered::<Others>(segment, raw.get(..count)?, flags(truncated) | stack::BORROWED)
}

fn flags(truncated: bool) -> u32 {
    if truncated { stack::TRUNCATED } else { 0 }
}

fn numbered<M: Memory>(segment: Segment, raw: &[Raw], flags: u32) -> Option<u32> {
    let mut frames = [Frame { code: 0, offset: 0 }; MAX_FRAMES];
    for (frame, raw) in frames.iter_mut().zip(raw) {
        *frame = Frame { code: code::<M>(segment, raw.code)?, offset: raw.offset };
    }
    intern(segment, frames.get(..raw.len())?, flags)
}

/// The same stack, marked as lent to another thread.
fn borrowed(segment: Segment, of: u32) -> Option<u32> {
    let key = mix(u64::from(of) ^ 0x00b0_44ed);
    STACKS.number(key, || {
        let offset = segment.word(STACK_INDEX + of as usize * 4).load(Ordering::Acquire).checked_sub(1)?;
        let at = caulk_wire::heap::ARENA + offset as usize;
        let count = (segment.word(at).load(Ordering::Relaxed) as usize).min(MAX_FRAMES);
        let mut frames = [Frame { code: 0, offset: 0 }; MAX_FRAMES];
        for (index, frame) in frames.iter_mut().take(count).enumerate() {
            let at = at + 8 + index * 8;
            let word = |at| segment.word(at).load(Ordering::Relaxed);
            *frame = Frame { code: word(at), offset: word(at + 4) };
        }
        let flags = segment.word(at + 4).load(Ordering::Relaxed) | stack::BORROWED;
        write(segment, frames.get(..count)?, flags)
    })
}

fn intern(segment: Segment, frames: &[Frame], flags: u32) -> Option<u32> {
    let mut key = u64::from(flags) + 1;
    for frame in frames {
        key = mix(key ^ (u64::from(frame.code) << 32 | u64::from(frame.offset)));
    }
    STACKS.number(key, || write(segment, frames, flags))
}

fn write(segment: Segment, frames: &[Frame], flags: u32) -> Option<u32> {
    let (offset, start) = segment.reserve(8 + frames.len() * 8)?;
    let mut at = start.cast::<u32>();
    let words = frames.iter().flat_map(|frame| [frame.code, frame.offset]);
    for word in [frames.len() as u32, flags].into_iter().chain(words) {
        // SAFETY: as many words as were reserved; arena records are aligned to 8.
        unsafe { at.write(word) };
        // SAFETY: behind the last one at most.
        at = unsafe { at.add(1) };
    }
    segment.publish(header::STACKS, STACK_INDEX, MAX_STACKS, offset)
}

/// The number of a code object. Another one at the same address has another signature.
fn code<M: Memory>(segment: Segment, address: usize) -> Option<u32> {
    let signature = python::signature::<M>(address)?;
    let key = signature.iter().fold(1, |key, part| mix(key ^ part));
    CODES.number(key, || {
        let offset = python::copy_code::<M>(segment, address)?;
        segment.publish(header::CODES, CODE_INDEX, MAX_CODES, offset)
    })
}

/// Mixes all bits (`SplitMix64`'s finaliser: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_turns_keys_away_and_finds_those_that_it_has() {
        static TABLE: Table<4096> = Table(AtomicPtr::new(ptr::null_mut()));
        assert!(TABLE.start());
        for key in 1..=2048 {
            assert_eq!(TABLE.number(mix(key), || Some(key as u32)), Some(key as u32));
        }
        let mut written = 0;
        for key in 2049..=20_000 {
            let found = TABLE.number(mix(key), || {
                written += 1;
                None
            });
            assert_eq!(found, None);
        }
        assert!(written <= probe::places(4096) - 2048, "one place each: {written}");
        for key in 1..=2048 {
            assert_eq!(TABLE.number(mix(key), || None), Some(key as u32));
        }
    }
}
