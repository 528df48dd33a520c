//! Tells nearly every free at a glance that its block was not sampled.
//!
//! A free looks at one bit of 8 KiB, which stay in the processor's nearest cache beside whatever the program works on. How many
//! blocks a bit stands for is counted elsewhere, where only blocks that are sampled lead.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const SLOTS: usize = 1 << 16;
/// A count that stays: too many to tell.
const STUCK: u8 = u8::MAX;

static KNOWN: [AtomicU64; SLOTS / 64] = [const { AtomicU64::new(0) }; SLOTS / 64];
static COUNTS: [AtomicU8; SLOTS] = [const { AtomicU8::new(0) }; SLOTS];

#[inline]
fn slot(address: usize) -> usize {
    // Fibonacci hashing: the top bits are well mixed. Blocks are aligned to 16.
    ((address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize
}

/// Where a slot's bit lies, and which it is.
#[inline]
fn bit(slot: usize) -> (&'static AtomicU64, u64) {
    (&KNOWN[slot / 64 % KNOWN.len()], 1 << (slot % 64))
}

/// May the block at this address be one that is known here?
#[inline]
pub(crate) fn may_know(address: usize) -> bool {
    let (word, bit) = bit(slot(address));
    word.load(Ordering::Relaxed) & bit != 0
}

/// A block is known from now on.
pub(crate) fn enter(address: usize) {
    let slot = slot(address);
    let more = |count: u8| (count != STUCK).then(|| count + 1);
    _ = COUNTS[slot].fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
    let (word, bit) = bit(slot);
    word.fetch_or(bit, Ordering::SeqCst);
}

/// It is not any more.
pub(crate) fn leave(address: usize) {
    let slot = slot(address);
    let less = |count: u8| (count != STUCK && count > 0).then(|| count - 1);
    if COUNTS[slot].fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1) {
        let (word, bit) = bit(slot);
        word.fetch_and(!bit, Ordering::SeqCst);
        // Another block may have entered between the two. Were it freed before this mends the bit, its record would be stale
        // until its address is sampled or freed again. Were it gone after the count is read, a bit would be left that says too
        // much, until the next block of the slot leaves.
        if COUNTS[slot].load(Ordering::SeqCst) > 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_and_go() {
        let address = 0x7f12_3456_7890;
        assert!(!may_know(address));
        enter(address);
        enter(address);
        leave(address);
        assert!(may_know(address), "one of two is left");
        leave(address);
        assert!(!may_know(address));
        leave(address);
        enter(address);
        assert!(may_know(address), "nothing leaves that had not entered");
        leave(address);
        for _ in 0..300 {
            enter(address + 16);
        }
        for _ in 0..400 {
            leave(address + 16);
        }
        assert!(may_know(address + 16), "a full count stays");
    }

    #[test]
    fn whoever_has_entered_is_seen_whatever_others_do() {
        // Two blocks of one slot, in two threads.
        let other = (1..1 << 24).map(|n| 0x1000 + 16 * n).find(|address| slot(*address) == slot(0x1000));
        std::thread::scope(|scope| {
            for address in [0x1000].into_iter().chain(other) {
                scope.spawn(move || {
                    for _ in 0..100_000 {
                        enter(address);
                        leave(address);
                    }
                });
            }
        });
        enter(0x1000);
        assert!(may_know(0x1000));
        leave(0x1000);
        assert!(!may_know(0x1000), "a bit that was left is mended by the next block");
    }
}
