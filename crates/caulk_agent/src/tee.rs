//! Iterators of `itertools.tee`: what one of them has read and another has not waits in blocks that refer to each other
//! (CPython, Modules/itertoolsmodule.c: 57 elements a block).

use crate::heap::{Address, Heap, type_address};

/// Blocks that are counted.
const MOST_BLOCKS: usize = 1 << 12;

/// Elements in the blocks from the one that the iterator reads next; those that it has read of this one count too. `None` if
/// there are too many blocks to be counted.
pub(crate) fn waiting(heap: &mut Heap<'_>, iterator: Address) -> Option<u64> {
    let block_type = heap.tee_block()?;
    // An iterator refers to its block and, from CPython 3.12 on, to its type.
    let (mut next, _) = parts(heap, iterator, block_type);
    let mut elements = 0;
    for _ in 0..MOST_BLOCKS {
        let Some(block) = next else { return Some(elements) };
        let count;
        (next, count) = parts(heap, block, block_type);
        // A block refers to the iterator that all read from, too.
        elements += count.saturating_sub(1);
    }
    None
}

/// The block that an object refers to, and the number of what else it refers to, but for its type.
fn parts(heap: &mut Heap<'_>, object: Address, block_type: Address) -> (Option<Address>, u64) {
    let (mut block, mut others) = (None, 0);
    let own_type = type_address(object);
    heap.referents(object, &mut |referent| {
        if type_address(referent) == block_type {
            block = Some(referent);
        } else if referent != own_type {
            others += 1;
        }
    });
    (block, others)
}
