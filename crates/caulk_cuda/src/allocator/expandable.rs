//! Expandable segments: one range of addresses for each pool, with memory mapped behind the part that is needed.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::blocks::{Block, State};
use super::options::{LARGE_SEGMENT, SMALL_SEGMENT};
use super::pools::{PoolKey, Pools};

/// Addresses that a segment reserves: more than any device has memory. torch takes a little more than its own device has.
const ADDRESSES: u64 = 1 << 44;

/// The segment of each pool.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// First address, and parts without memory by address.
    of: FxHashMap<PoolKey, (u64, BTreeSet<(u64, u32)>)>,
}

/// Bytes that are mapped at once.
const fn page(large: bool) -> u64 {
    if large { LARGE_SEGMENT } else { SMALL_SEGMENT }
}

impl Ranges {
    /// Where memory must be mapped for a block of this size, and how much; free memory in front of it is used first.
    pub(super) fn place(&mut self, pools: &mut Pools, key: PoolKey, size: u64) -> Option<(u32, u64)> {
        let before = |pools: &Pools, block: Block| {
            let before = block.previous.map(|before| pools.block(before));
            before.filter(|before| before.state == State::Free).map_or(0, |before| before.size)
        };
        let (_, unmapped) = self.of.entry(key).or_insert_with(|| range(pools, key));
        let fits = |index: &u32| before(pools, pools.block(*index)) + pools.block(*index).size >= size;
        let index = unmapped.iter().map(|(_, index)| *index).find(fits)?;
        let block = pools.block(index);
        let missing = size - before(pools, block);
        Some((index, missing.next_multiple_of(page(block.large)).min(block.size)))
    }

    /// Maps the first bytes of a part; returns the free block that they are of, which is of no pool.
    pub(super) fn map(&mut self, pools: &mut Pools, index: u32, bytes: u64) -> u32 {
        self.forget(pools, index);
        if pools.block(index).size > bytes {
            let rest = pools.blocks.split(index, bytes);
            self.keep(pools, rest);
        }
        let free = pools.release(index);
        pools.withdraw(free);
        free
    }

    /// Takes the memory from whole pages of free blocks; returns how much.
    pub(super) fn unmap_free(&mut self, pools: &mut Pools) -> u64 {
        let free = pools.free(|block| block.expandable);
        free.into_iter().map(|index| self.unmap_pages(pools, index)).sum()
    }

    fn unmap_pages(&mut self, pools: &mut Pools, index: u32) -> u64 {
        let block = pools.block(index);
        let page = page(block.large);
        let first = self.of.get(&block.pool()).map_or(0, |(first, _)| *first);
        let from = (block.address - first).next_multiple_of(page) + first;
        let to = (block.address + block.size - first) / page * page + first;
        if from >= to {
            return 0;
        }
        pools.withdraw(index);
        let mut middle = index;
        if from > block.address {
            middle = pools.blocks.split(index, from - block.address);
            pools.offer(index);
        }
        if pools.block(middle).size > to - from {
            let tail = pools.blocks.split(middle, to - from);
            pools.offer(tail);
        }
        self.join(pools, middle);
        to - from
    }

    /// Joins a part without memory with those beside it.
    fn join(&mut self, pools: &mut Pools, index: u32) {
        let block = pools.block(index);
        let is_unmapped = |index: &u32| pools.block(*index).state == State::Unmapped;
        let (previous, next) = (block.previous.filter(is_unmapped), block.next.filter(is_unmapped));
        if let Some(next) = next {
            self.forget(pools, next);
            pools.blocks.merge(index, next);
        }
        if let Some(previous) = previous {
            self.forget(pools, previous);
            pools.blocks.merge(previous, index);
        }
        self.keep(pools, previous.unwrap_or(index));
    }

    fn keep(&mut self, pools: &mut Pools, index: u32) {
        let block = pools.blocks.get_mut(index);
        block.state = State::Unmapped;
        if let Some((_, unmapped)) = self.of.get_mut(&block.pool()) {
            unmapped.insert((block.address, index));
        }
    }

    fn forget(&mut self, pools: &Pools, index: u32) {
        let block = pools.block(index);
        if let Some((_, unmapped)) = self.of.get_mut(&block.pool()) {
            unmapped.remove(&(block.address, index));
        }
    }
}

/// Addresses for a pool that has none.
fn range(pools: &mut Pools, key: PoolKey) -> (u64, BTreeSet<(u64, u32)>) {
    let (stream, large) = key;
    let state = State::Unmapped;
    let all = Block { size: ADDRESSES, stream, large, state, expandable: true, ..Block::default() };
    let index = pools.blocks.segment(all);
    let first = pools.block(index).address;
    (first, BTreeSet::from([(first, index)]))
}
