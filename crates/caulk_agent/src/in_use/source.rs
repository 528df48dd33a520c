//! Where the bytes that malloc has handed out are read: from the sampler, which counts block by block, or from the
//! allocator, which has to look through all that is free.

use std::ffi::c_void;

use super::find;

/// `caulk_heap_in_use` of the sampler: bytes with their blocks' heads, blocks, bytes of those with a mapping of their own.
type Read = unsafe extern "C" fn(*mut [u64; 3]) -> bool;

/// Free blocks that threads keep for themselves, and what malloc keeps of each arena: so far the two may be apart.
const APART: u64 = 64 << 20;
/// ... and by one part in so many of all that is handed out.
const PART: u64 = 16;

/// Who is asked at a boundary.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// The sampler: a few loads.
    Sums(Sums),
    /// The allocator, at its price.
    Allocator,
}

/// The sampler's sums.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    read: Read,
    /// How much more malloc said than they did when both were read first.
    apart: Option<i64>,
}

/// What they say, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// Handed out.
    pub(super) used: u64,
    /// Blocks of it.
    pub(super) blocks: u64,
    /// ... of which mapped singly.
    pub(super) singly: u64,
}

impl Source {
    /// The sampler, where it is loaded and counts.
    pub(super) fn find() -> Self {
        let Some(found) = find(c"caulk_heap_in_use") else { return Self::Allocator };
        // SAFETY: the type of the sampler's function.
        let read = unsafe { std::mem::transmute::<*mut c_void, Read>(found) };
        let sums = Sums { read, apart: None };
        if sums.read().is_some() { Self::Sums(sums) } else { Self::Allocator }
    }

    /// What malloc has handed out, where that is counted.
    pub(super) fn counted(self) -> Option<Counted> {
        match self {
            Self::Sums(sums) => sums.read(),
            Self::Allocator => None,
        }
    }

    /// Compares the sums with what malloc itself says at the same moment, and leaves it to the allocator from now on where
    /// they have come apart: something allocates past the sampler and gives back through it, or the other way round.
    /// Returns whether they have.
    pub(super) fn check(&mut self, used: u64) -> bool {
        let Self::Sums(sums) = self else { return false };
        let Some(counted) = sums.read() else { return false };
        let apart = used.cast_signed() - counted.used.cast_signed();
        let before = *sums.apart.get_or_insert(apart);
        let is_off = apart.abs_diff(before) > APART + used / PART;
        if is_off {
            *self = Self::Allocator;
        }
        is_off
    }
}

impl Sums {
    fn read(self) -> Option<Counted> {
        let mut sums = [0; 3];
        // SAFETY: the sampler's function, with room for its answer.
        let is_counted = unsafe { (self.read)(&raw mut sums) };
        let [used, blocks, singly] = sums;
        is_counted.then_some(Counted { used, blocks, singly })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn a_gigabyte(out: *mut [u64; 3]) -> bool {
        // SAFETY: room for three numbers.
        unsafe { out.write([1 << 30, 7, 1 << 20]) };
        true
    }

    #[test]
    fn sums_that_have_come_apart_from_what_malloc_says_are_not_believed() {
        let mut source = Source::Sums(Sums { read: a_gigabyte, apart: None });
        let said = |megabytes: u64| (1 << 30) + (megabytes << 20);
        assert!(!source.check(said(10)) && !source.check(said(100)) && !source.check(said(0)));
        assert_eq!(source.counted().map(|counted| counted.used), Some(1 << 30));
        assert!(source.check(said(200)), "by much more than what threads keep");
        assert!(source.counted().is_none() && !source.check(said(200)), "once");
    }
}
