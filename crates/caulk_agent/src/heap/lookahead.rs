//! Objects a few steps ahead of those that are looked at: a heap lies scattered, and waiting for each of its objects in turn
//! is most of what a walk costs.

use super::Address;

/// How many are fetched at a time: more than the misses that a core waits for at once (about ten) gain nothing.
const AHEAD: usize = 16;

/// Has objects fetched while others are looked at: each is handed back when as many others have been put in after it.
#[derive(Default)]
pub(crate) struct Lookahead {
    fetched: [Address; AHEAD],
    next: usize,
}

impl Lookahead {
    /// Begins to fetch `object`; what was put in a while ago is there by now.
    pub(crate) fn put(&mut self, object: Address) -> Option<Address> {
        prefetch(object);
        let due = std::mem::replace(&mut self.fetched[self.next], object);
        self.next = (self.next + 1) % AHEAD;
        (due != 0).then_some(due)
    }

    /// Those that are left, the oldest first.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = Address> + use<> {
        let Self { mut fetched, next } = std::mem::take(self);
        fetched.rotate_left(next);
        fetched.into_iter().filter(|object| *object != 0)
    }
}

/// Tells the processor that this place will be read. A hint: an address may be anything.
pub(super) fn prefetch(address: Address) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads nothing that the program could see, and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address as *const i8);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_come_back_in_their_order() {
        for count in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 5 * AHEAD + 3] {
            let mut ahead = Lookahead::default();
            let mut back: Vec<Address> = (1..=count).filter_map(|object| ahead.put(object)).collect();
            back.extend(ahead.rest());
            assert_eq!(back, (1..=count).collect::<Vec<_>>());
            assert_eq!(ahead.rest().count(), 0);
        }
    }
}
