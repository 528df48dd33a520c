//! What the sampler has seen of the heap, by stack.

use crate::codec::records;

/// Stands for a boundary in what a process held when it ended, without a word of its agent.
pub const AT_END: u32 = u32::MAX;

records! {
    /// One line of a stack.
    HeapFrame {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function; before Python 3.11 its name.
        function: String,
    }

    /// A stack that allocated, read from the process's heap profile.
    HeapStack {
        /// Number that this stack keeps in this process.
        id: u32,
        /// [`crate::heap::stack`].
        flags: u32,
        /// Innermost frame first.
        frames: Vec<HeapFrame>,
    }

    /// What one stack has allocated and not given back, estimated from samples.
    HeapRow {
        /// The stack.
        id: u32,
        /// Bytes.
        bytes: u64,
        /// Blocks.
        blocks: u64,
        /// Standard deviation of the bytes.
        deviation: u64,
    }

    /// What one stack has allocated since the process began, given back or not, estimated from samples.
    HeapAllocated {
        /// The stack.
        id: u32,
        /// Bytes.
        bytes: u64,
    }

    /// The heap profile of a process at a boundary.
    HeapLive {
        /// Boundary, or [`AT_END`].
        boundary: u32,
        /// Mean bytes between samples.
        interval: u64,
        /// Bytes of all stacks.
        bytes: u64,
        /// Standard deviation of them.
        deviation: u64,
        /// The stacks that hold most and grow most, by bytes.
        rows: Vec<HeapRow>,
        /// At the end: bytes that malloc had handed out, counted block by block with their heads; 0 where that is not counted.
        malloc_bytes: u64,
        /// ... and blocks.
        malloc_blocks: u64,
        /// ... and bytes that pymalloc had mapped for small objects.
        arena_bytes: u64,
        /// Bytes that all stacks have allocated since the process began, given back or not.
        allocated_bytes: u64,
        /// The stacks that have allocated most, by bytes.
        allocated: Vec<HeapAllocated>,
    }
}
