//! Free blocks by pool: the best fit is taken, and what becomes free is joined with its neighbours.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::blocks::{Block, Blocks, State};

/// Where a block comes from: the stream, and whether it is of the pool of large blocks.
pub(super) type PoolKey = (u64, bool);

/// Free blocks of one pool, by size and then by place.
#[derive(Debug, Default)]
struct Pool {
    free: BTreeSet<(u64, u64, u32)>,
    /// Requests so far: the clock by which blocks age.
    calls: u64,
}

/// All blocks, and the free ones of each pool.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pub(super) blocks: Blocks,
    pools: FxHashMap<PoolKey, Pool>,
}

impl Pools {
    pub(super) fn block(&self, index: u32) -> Block {
        self.blocks.get(index)
    }

    /// The smallest free block of at least `size` bytes that `wanted` takes; it is of no pool after that. A block that can
    /// be extended counts with the addresses behind it, so that it stays free for larger ones.
    pub(super) fn best_fit(&mut self, key: PoolKey, size: u64, wanted: impl Fn(u64) -> bool) -> Option<u32> {
        let pool = self.pools.entry(key).or_default();
        pool.calls += 1;
        let extended = |index: u32| {
            let block = self.blocks.get(index);
            let behind = block.next.map(|next| self.blocks.get(next));
            block.size + behind.filter(|next| next.state == State::Unmapped).map_or(0, |next| next.size)
        };
        let mut fitting = pool.free.range((size, 0, 0)..).copied();
        let mut found = fitting.next().filter(|(found, ..)| wanted(*found))?;
        for other in fitting {
            if !self.blocks.get(found.2).expandable || extended(other.2) >= extended(found.2) {
                break;
            }
            found = other;
        }
        pool.free.remove(&found);
        Some(found.2)
    }

    /// Free blocks of one pool that fill a segment alone, of at least so many bytes, smallest first.
    pub(super) fn whole_of(&self, key: PoolKey, least: u64) -> Vec<u32> {
        let free = self.pools.get(&key).into_iter().flat_map(|pool| pool.free.range((least, 0, 0)..));
        free.map(|(_, _, index)| *index).filter(|index| self.block(*index).is_whole()).collect()
    }

    /// All free blocks that are as asked for, in the order in which they were made.
    pub(super) fn free(&self, wanted: impl Fn(&Block) -> bool) -> Vec<u32> {
        let free = self.pools.values().flat_map(|pool| &pool.free).map(|(_, _, index)| *index);
        let mut found: Vec<u32> = free.filter(|index| wanted(&self.block(*index))).collect();
        found.sort_unstable();
        found
    }

    /// Size of the largest free block.
    pub(super) fn largest(&self) -> u64 {
        self.pools.values().filter_map(|pool| pool.free.last()).map(|(size, ..)| *size).max().unwrap_or(0)
    }

    /// Requests to its pool since a block became free.
    pub(super) fn age(&self, index: u32) -> u64 {
        let block = self.block(index);
        self.pools.get(&block.pool()).map_or(0, |pool| pool.calls - block.since)
    }

    /// A block becomes free and one with its free neighbours; returns that one.
    pub(super) fn release(&mut self, index: u32) -> u32 {
        let mut merged = index;
        let is_free = |pools: &Self, index: &u32| pools.block(*index).state == State::Free;
        self.blocks.get_mut(index).state = State::Free;
        if let Some(next) = self.block(index).next.filter(|next| is_free(self, next)) {
            self.withdraw(next);
            self.blocks.merge(index, next);
        }
        if let Some(previous) = self.block(index).previous.filter(|previous| is_free(self, previous)) {
            self.withdraw(previous);
            self.blocks.merge(previous, index);
            merged = previous;
        }
        self.offer(merged);
        merged
    }

    /// A free block is there to be taken.
    pub(super) fn offer(&mut self, index: u32) {
        let block = self.blocks.get_mut(index);
        block.state = State::Free;
        let pool = self.pools.entry(block.pool()).or_default();
        block.since = pool.calls;
        pool.free.insert((block.size, block.address, index));
    }

    /// A free block is no longer there to be taken.
    pub(super) fn withdraw(&mut self, index: u32) {
        let block = self.block(index);
        if let Some(pool) = self.pools.get_mut(&block.pool()) {
            pool.free.remove(&(block.size, block.address, index));
        }
    }
}
