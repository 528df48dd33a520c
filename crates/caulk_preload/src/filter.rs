//! Tells nearly every free at a glance that its block was not sampled.

use std::sync::atomic::{AtomicU8, Ordering};

const BITS: u32 = 16;
/// A count that stays: too many to tell.
const STUCK: u8 = u8::MAX;

static COUNTS: [AtomicU8; 1 << BITS] = [const { AtomicU8::new(0) }; 1 << BITS];

fn count(address: usize) -> &'static AtomicU8 {
    // Fibonacci hashing: the top bits are well mixed. Blocks are aligned to 16.
    let hash = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
    &COUNTS[hash as usize & ((1 << BITS) - 1)]
}

/// May the block at this address be one that is known here?
pub(crate) fn may_know(address: usize) -> bool {
    count(address).load(Ordering::Relaxed) != 0
}

/// A block is known from now on.
pub(crate) fn enter(address: usize) {
    let more = |count: u8| (count != STUCK).then(|| count + 1);
    _ = count(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
}

/// It is not any more.
pub(crate) fn leave(address: usize) {
    let less = |count: u8| (count != STUCK && count > 0).then(|| count - 1);
    _ = count(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_and_go() {
        let address = 0x7f12_3456_7890;
        let before = count(address).load(Ordering::Relaxed);
        enter(address);
        assert!(may_know(address));
        leave(address);
        assert_eq!(count(address).load(Ordering::Relaxed), before);
        for _ in 0..300 {
            enter(address + 16);
        }
        for _ in 0..400 {
            leave(address + 16);
        }
        assert!(may_know(address + 16), "a full count stays");
    }
}
