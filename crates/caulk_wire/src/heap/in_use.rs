//! What malloc has handed out and has not got back, counted block by block: a line of the slot for each thread.
//!
//! A thread alone adds to its line. What it frees of others' makes its own sums fall below zero, so only all lines
//! together say anything. A thread that ends leaves its sums where they are, and the next one goes on from there.

/// Lines of a slot. The first is everybody's: of what was there before the slot was, and of threads without a line.
pub const MAX_LINES: usize = 1024;
/// Bytes of a line: what two threads write to shares no line of the processor's cache.
pub const LINE_BYTES: usize = 64;

/// Fields of a line, as byte offsets.
pub mod line {
    /// Bytes of chunks, their heads included, of 64 bits with a sign.
    pub const BYTES: usize = 0;
    /// Blocks, likewise.
    pub const BLOCKS: usize = 8;
    /// Bytes of those blocks that have a mapping of their own, likewise.
    pub const SINGLY: usize = 16;
    /// 1 while a thread adds to it, of 32 bits.
    pub const TAKEN: usize = 24;
}

/// What malloc has handed out and has not got back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Bytes of the blocks with their heads, as `mallinfo2` counts them (`uordblks + hblkhd`).
    pub bytes: u64,
    /// Blocks; those from before the sampler was loaded are left out.
    pub blocks: u64,
    /// Bytes of those that have a mapping of their own.
    pub singly_bytes: u64,
}

impl InUse {
    /// The sum of sums of bytes, of blocks and of bytes mapped singly. One of them may be below zero for a moment, where
    /// a block was freed by another thread while the lines were read.
    pub fn of_sums(sums: impl IntoIterator<Item = [i64; 3]>) -> Self {
        let add = |sum: [i64; 3], one: [i64; 3]| std::array::from_fn(|at| sum[at].wrapping_add(one[at]));
        let [bytes, blocks, singly_bytes] =
            sums.into_iter().fold([0; 3], add).map(|sum| u64::try_from(sum).unwrap_or(0));
        Self { bytes, blocks, singly_bytes }
    }

    /// The sum of these lines, as they were copied out of a slot.
    pub fn of_lines(lines: &[u8]) -> Self {
        let number = |line: &[u8], at: usize| {
            let bytes = line.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, i64::from_ne_bytes)
        };
        let sums = |line| [line::BYTES, line::BLOCKS, line::SINGLY].map(|at| number(line, at));
        Self::of_sums(lines.chunks_exact(LINE_BYTES).map(sums))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_thread_made_and_another_one_freed_is_not_in_use() {
        let mut lines = [0; 3 * LINE_BYTES];
        let mut set = |index: usize, sums: [i64; 3]| {
            for (at, sum) in [line::BYTES, line::BLOCKS, line::SINGLY].into_iter().zip(sums) {
                lines[index * LINE_BYTES + at..][..8].copy_from_slice(&sum.to_ne_bytes());
            }
        };
        set(0, [4096, 0, 0]);
        set(1, [300_000, 30, 131_072]);
        set(2, [-200_000, -20, 0]);
        let in_use = InUse { bytes: 104_096, blocks: 10, singly_bytes: 131_072 };
        assert_eq!(InUse::of_lines(&lines), in_use);
        assert_eq!(InUse::of_sums([[-1, -1, -1]]), InUse::default());
    }
}
