//! A model of torch's caching allocator: which segments it takes from the driver for a sequence of allocations.
//!
//! It decides as `c10/cuda/CUDACachingAllocator.cpp` does: sizes are rounded, blocks of two pools are split and merged, the
//! best fit is taken, and the driver is asked for a segment only if nothing fits. What needs a device (events of other
//! streams, private pools of CUDA graphs) it does not know: a freed block is free at once.

mod blocks;
mod expandable;
mod options;
mod pools;

use blocks::{Block, State};
use expandable::Ranges;
pub use options::AllocatorOptions;
use options::{LARGE_SEGMENT, MIN_BLOCK, SMALL};
use pools::{PoolKey, Pools};

/// An allocation that is alive in an [`Allocator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(u32);

/// The limit does not leave room for an allocation, even after all free segments were given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory")]
pub struct OutOfMemory;

/// The allocator of one device. All sizes are bytes.
#[derive(Debug, Default)]
pub struct Allocator {
    options: AllocatorOptions,
    pools: Pools,
    ranges: Ranges,
    requested: u64,
    allocated: u64,
    reserved: u64,
    peak_requested: u64,
    peak_allocated: u64,
    peak_reserved: u64,
}

impl Allocator {
    /// An empty allocator with these settings.
    pub fn new(options: AllocatorOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// In blocks that are in use, after rounding: `torch.cuda.memory_allocated`.
    pub const fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Taken from the driver: `torch.cuda.memory_reserved`.
    pub const fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The most that was requested at once, before rounding: `requested_bytes.all.peak` of `torch.cuda.memory_stats`.
    pub const fn peak_requested(&self) -> u64 {
        self.peak_requested
    }

    /// The most that was allocated at once.
    pub const fn peak_allocated(&self) -> u64 {
        self.peak_allocated
    }

    /// The most that was reserved at once.
    pub const fn peak_reserved(&self) -> u64 {
        self.peak_reserved
    }

    /// The peaks begin again: `torch.cuda.reset_peak_memory_stats`.
    pub const fn reset_peaks(&mut self) {
        self.peak_requested = self.requested;
        self.peak_allocated = self.allocated;
        self.peak_reserved = self.reserved;
    }

    /// The largest block that is free.
    pub fn largest_free(&self) -> u64 {
        self.pools.largest()
    }

    /// Allocates `size` bytes for a stream.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the limit leaves no room for it.
    pub fn allocate(&mut self, size: u64, stream: u64) -> Result<Handle, OutOfMemory> {
        let requested = size;
        let size = self.options.rounded(requested);
        let key = (stream, size > SMALL);
        let index = match self.best_fit(key, size) {
            Some(index) => index,
            None => self.ask_driver(key, size)?,
        };
        self.split(index, size);
        let block = self.pools.blocks.get_mut(index);
        block.state = State::Live;
        block.requested = requested;
        self.requested += requested;
        self.peak_requested = self.peak_requested.max(self.requested);
        self.allocated += block.size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        Ok(Handle(index))
    }

    /// Frees an allocation.
    pub fn free(&mut self, Handle(index): Handle) {
        let block = self.pools.block(index);
        self.requested -= block.requested;
        self.allocated -= block.size;
        self.pools.release(index);
    }

    /// Gives all free segments back to the driver: `torch.cuda.empty_cache`.
    pub fn empty_cache(&mut self) {
        for index in self.pools.free(Block::is_whole) {
            self.give_back(index);
        }
        self.reserved -= self.ranges.unmap_free(&mut self.pools);
    }

    /// The smallest free block that is large enough, unless `max_split_size_mb` keeps it for others.
    fn best_fit(&mut self, key: PoolKey, size: u64) -> Option<u32> {
        let limit = self.options.max_split;
        let wanted = |found: u64| {
            let kept_for_larger = size < limit && found >= limit;
            let wasteful = size >= limit && found >= size.saturating_add(LARGE_SEGMENT);
            !kept_for_larger && !wasteful
        };
        let expandable = self.options.expandable;
        self.pools.best_fit(key, size, |found| expandable || wanted(found))
    }

    /// A new segment, or a longer one; free ones are given back first if the limit asks for it.
    fn ask_driver(&mut self, key: PoolKey, size: u64) -> Result<u32, OutOfMemory> {
        self.collect_old();
        if let Some(index) = self.take(key, size) {
            return Ok(index);
        }
        self.release_oversized(key, size);
        if let Some(index) = self.take(key, size) {
            return Ok(index);
        }
        self.empty_cache();
        self.take(key, size).ok_or(OutOfMemory)
    }

    /// A block of new memory, of no pool; `None` where the limit is in the way.
    fn take(&mut self, key: PoolKey, size: u64) -> Option<u32> {
        if self.options.expandable {
            let (index, bytes) = self.ranges.place(&mut self.pools, key, size)?;
            self.reserve(bytes)?;
            return Some(self.ranges.map(&mut self.pools, index, bytes));
        }
        let size = AllocatorOptions::segment(size);
        self.reserve(size)?;
        let (stream, large) = key;
        Some(self.pools.blocks.segment(Block { size, stream, large, ..Block::default() }))
    }

    fn reserve(&mut self, more: u64) -> Option<()> {
        let reserved = self.reserved + more;
        if self.options.limit.is_some_and(|limit| reserved > limit) {
            return None;
        }
        self.reserved = reserved;
        self.peak_reserved = self.peak_reserved.max(reserved);
        Some(())
    }

    /// Leaves the rest of a block free if it is worth keeping.
    fn split(&mut self, index: u32, size: u64) {
        let block = self.pools.block(index);
        let rest = block.size - size;
        let worth = if !block.large || self.options.expandable {
            rest >= MIN_BLOCK
        } else {
            size < self.options.max_split && rest > SMALL
        };
        if worth {
            let rest = self.pools.blocks.split(index, size);
            self.pools.offer(rest);
        }
    }

    fn give_back(&mut self, index: u32) {
        self.pools.withdraw(index);
        self.reserved -= self.pools.block(index).size;
        self.pools.blocks.remove(index);
    }

    /// With `garbage_collection_threshold` and a limit: gives back segments that have been free for longer than the average.
    fn collect_old(&mut self) {
        let Some((limit, threshold)) = self.options.limit.zip(self.options.gc_threshold) else { return };
        let wanted = (limit as f64 * threshold) as u64;
        let whole = self.pools.free(|block| block.large && block.is_whole());
        let mut left: Vec<(u64, u32)> =
            whole.into_iter().map(|index| (self.pools.age(index), index)).collect();
        while self.reserved > wanted && !left.is_empty() {
            let average = left.iter().map(|(age, _)| age).sum::<u64>() as f64 / left.len() as f64;
            let (old, young): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(age, _)| *age as f64 >= average);
            for (_, index) in old {
                if self.reserved > wanted {
                    self.give_back(index);
                }
            }
            left = young;
        }
    }

    /// With `max_split_size_mb`: gives back the smallest free segment that is large enough, or the largest until there is
    /// enough.
    fn release_oversized(&mut self, key: PoolKey, size: u64) {
        let limit = self.options.max_split;
        if limit == u64::MAX {
            return;
        }
        if let Some(index) = self.pools.whole_of(key, size.max(limit)).first() {
            return self.give_back(*index);
        }
        let mut given = 0;
        for index in self.pools.whole_of(key, limit).into_iter().rev() {
            if given >= size {
                break;
            }
            given += self.pools.block(index).size;
            self.give_back(index);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const MB: u64 = 1 << 20;

    fn reserved(options: AllocatorOptions, allocations: &[u64]) -> u64 {
        let mut allocator = Allocator::new(options);
        for size in allocations {
            allocator.allocate(*size, 0).unwrap();
        }
        allocator.reserved()
    }

    fn check(allocations: &[u64], expected: u64) {
        assert_eq!(reserved(AllocatorOptions::default(), allocations), expected, "{allocations:?}");
    }

    #[test]
    fn segments_are_of_three_sizes() {
        check(&[1], 2 * MB);
        check(&[MB], 2 * MB);
        check(&[MB, MB], 2 * MB);
        check(&[MB + 1], 20 * MB);
        check(&[8 * MB, 8 * MB], 20 * MB);
        check(&[10 * MB], 10 * MB);
        check(&[11 * MB + 1], 12 * MB);
    }

    #[test]
    fn what_is_freed_is_split_merged_and_used_again() {
        let mut allocator = Allocator::new(AllocatorOptions::default());
        let large = allocator.allocate(40 * MB, 0).unwrap();
        allocator.free(large);
        let parts: Vec<Handle> = (0..4).map(|_| allocator.allocate(10 * MB, 0).unwrap()).collect();
        assert_eq!(
            (allocator.reserved(), allocator.allocated(), allocator.largest_free()),
            (40 * MB, 40 * MB, 0)
        );
        for part in [2, 0, 1, 3] {
            allocator.free(parts[part]);
        }
        assert_eq!((allocator.allocated(), allocator.largest_free()), (0, 40 * MB));
        allocator.allocate(MB, 7).unwrap();
        assert_eq!(allocator.reserved(), 42 * MB, "another stream has separate pools");
        allocator.empty_cache();
        assert_eq!((allocator.reserved(), allocator.peak_reserved()), (2 * MB, 42 * MB));
    }

    #[test]
    fn the_limit_has_free_segments_given_back_before_it_refuses() {
        let options = AllocatorOptions { limit: Some(100 * MB), ..AllocatorOptions::default() };
        let mut allocator = Allocator::new(options);
        let first = allocator.allocate(60 * MB, 0).unwrap();
        assert_eq!(allocator.allocate(60 * MB, 0), Err(OutOfMemory));
        allocator.free(first);
        allocator.allocate(80 * MB, 0).unwrap();
        assert_eq!(allocator.reserved(), 80 * MB);
    }

    /// Buffers that grow by a step each time, with something small that stays between them.
    fn growing(options: AllocatorOptions) -> Allocator {
        let mut allocator = Allocator::new(options);
        for step in 0..40 {
            let big = allocator.allocate((16 + 2 * step) * MB, 0).unwrap();
            allocator.allocate(2 * MB, 0).unwrap();
            allocator.free(big);
        }
        allocator
    }

    #[test]
    fn expandable_segments_need_less() {
        let plain = growing(AllocatorOptions::default());
        let expandable = growing(AllocatorOptions { expandable: true, ..AllocatorOptions::default() });
        assert!(
            plain.reserved() > 4 * expandable.reserved(),
            "{} {}",
            plain.reserved(),
            expandable.reserved()
        );
        assert_eq!(plain.peak_allocated(), expandable.peak_allocated());
        assert!(expandable.reserved() >= expandable.peak_allocated());
    }

    #[test]
    fn a_block_above_the_limit_for_splits_is_kept_whole() {
        let options = AllocatorOptions { max_split: 64 * MB, ..AllocatorOptions::default() };
        let mut allocator = Allocator::new(options);
        let large = allocator.allocate(100 * MB, 0).unwrap();
        allocator.free(large);
        allocator.allocate(30 * MB, 0).unwrap();
        assert_eq!(allocator.reserved(), 130 * MB, "the large block is not cut");
        allocator.allocate(96 * MB, 0).unwrap();
        assert_eq!(allocator.reserved(), 130 * MB, "and serves what is nearly as large");
    }

    #[test]
    fn old_segments_are_given_back_from_the_threshold_on() {
        let options = AllocatorOptions {
            limit: Some(200 * MB),
            gc_threshold: Some(0.5),
            ..AllocatorOptions::default()
        };
        let mut allocator = Allocator::new(options);
        let first = allocator.allocate(90 * MB, 0).unwrap();
        let second = allocator.allocate(20 * MB, 0).unwrap();
        allocator.free(first);
        allocator.free(second);
        allocator.allocate(95 * MB, 0).unwrap();
        assert!(allocator.reserved() <= 116 * MB, "{}", allocator.reserved());
    }

    #[test]
    fn any_sequence_keeps_its_books() {
        for expandable in [false, true] {
            for limit in [None, Some(300 * MB)] {
                let mut allocator =
                    Allocator::new(AllocatorOptions { expandable, limit, ..AllocatorOptions::default() });
                let (mut live, mut seed) = (Vec::new(), 1_u64);
                for _ in 0..800 {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let random = seed >> 33;
                    if live.is_empty() || random % 5 < 3 {
                        live.extend(allocator.allocate(1 + (random << (random % 5)) % (24 * MB), 0));
                    } else {
                        allocator.free(live.swap_remove(random as usize % live.len()));
                    }
                    assert!(allocator.allocated() <= allocator.reserved());
                    assert!(limit.is_none_or(|limit| allocator.reserved() <= limit));
                    assert_eq!(allocator.pools.blocks.bytes(State::Live), allocator.allocated());
                    assert_eq!(
                        allocator.pools.blocks.bytes(State::Live) + allocator.pools.blocks.bytes(State::Free),
                        allocator.reserved()
                    );
                }
                for each in live {
                    allocator.free(each);
                }
                allocator.empty_cache();
                assert_eq!((allocator.allocated(), allocator.reserved()), (0, 0));
            }
        }
    }
}
