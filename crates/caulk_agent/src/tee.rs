//! Iterators of `itertools.tee`: what one of them has read and another has not waits in blocks that refer to each other
//! (CPython, Modules/itertoolsmodule.c: 57 elements a block).

use crate::heap::{Address, Heap, type_address};

/// Blocks that are counted: an iterator that lags behind by more has been found long before.
const MOST_BLOCKS: usize = 1 << 12;

/// Elements in the blocks from the one that the iterator reads next; those that it has read of this one count too.
pub(crate) fn waiting(heap: &mut Heap<'_>, iterator: Address) -> u64 {
    let mut block = None;
    heap.referents(iterator, &mut |referent| block = block.or(Some(referent)));
    let mut elements = 0;
    for _ in 0..MOST_BLOCKS {
        let Some(current) = block.take() else { break };
        let block_type = type_address(current);
        heap.referents(current, &mut |referent| {
            if type_address(referent) == block_type {
                block = Some(referent);
            } else {
                elements += 1;
            }
        });
    }
    elements
}
