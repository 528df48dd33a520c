//! One thread's sums in the shared memory: it alone adds to them, and whoever reads them adds up all lines.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use caulk_wire::heap::{LINE_BYTES, LINES, MAX_LINES, header, line};

use crate::chunk::{Chunk, Sums};
use crate::slot::Segment;

/// Adds without waiting for whoever else might.
#[inline]
fn more(to: &AtomicI64, sum: i64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(sum), Ordering::Relaxed);
}

/// A line, where [`caulk_wire::heap::line`] has its fields.
#[repr(C, align(64))]
pub(crate) struct Line {
    bytes: AtomicI64,
    blocks: AtomicI64,
    singly: AtomicI64,
    taken: AtomicU32,
}

const _: () = assert!(size_of::<Line>() == LINE_BYTES);
const _: () = assert!(std::mem::offset_of!(Line, bytes) == line::BYTES);
const _: () = assert!(std::mem::offset_of!(Line, blocks) == line::BLOCKS);
const _: () = assert!(std::mem::offset_of!(Line, singly) == line::SINGLY);
const _: () = assert!(std::mem::offset_of!(Line, taken) == line::TAKEN);

impl Line {
    pub(crate) const fn new() -> Self {
        let (bytes, blocks, singly) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
        Self { bytes, blocks, singly, taken: AtomicU32::new(0) }
    }

    /// So many blocks more of this kind, on the thread whose line it is: no other one writes here.
    #[inline]
    pub(crate) fn count(&self, chunk: Chunk, blocks: i64) {
        if chunk.is_singly() {
            return self.add_own(chunk.sums(blocks));
        }
        more(&self.blocks, blocks);
        more(&self.bytes, blocks * chunk.bytes());
    }

    /// Adds these, on the thread whose line it is.
    pub(crate) fn add_own(&self, sums: Sums) {
        for (to, sum) in [&self.bytes, &self.blocks, &self.singly].into_iter().zip(sums) {
            more(to, sum);
        }
    }

    /// The same on any thread, where others may do so at this time.
    pub(crate) fn add(&self, sums: Sums) {
        for (to, more) in [&self.bytes, &self.blocks, &self.singly].into_iter().zip(sums) {
            to.fetch_add(more, Ordering::SeqCst);
        }
    }

    /// What stands here, which does not from now on.
    pub(crate) fn take(&self) -> Sums {
        [&self.bytes, &self.blocks, &self.singly].map(|sum| sum.swap(0, Ordering::SeqCst))
    }

    pub(crate) fn sums(&self) -> Sums {
        [&self.bytes, &self.blocks, &self.singly].map(|sum| sum.load(Ordering::Relaxed))
    }

    /// Another thread may go on with it.
    pub(crate) fn release(&self) {
        self.taken.store(0, Ordering::Release);
    }

    fn is_claimed(&self) -> bool {
        // Looked at first: to write to it would take the line away from the thread that adds to it.
        self.taken.load(Ordering::Relaxed) == 0 && self.taken.swap(1, Ordering::Acquire) == 0
    }
}

impl Segment {
    /// A line of the slot.
    fn line(self, index: usize) -> &'static Line {
        debug_assert!(index < MAX_LINES);
        let start = self.at(LINES + index * LINE_BYTES);
        // SAFETY: within the slot, aligned, and mapped until the process ends; of atomic numbers alone.
        unsafe { start.cast::<Line>().as_ref() }
    }

    /// That of all threads together.
    pub(crate) fn common_line(self) -> &'static Line {
        self.line(0)
    }

    /// A line for the calling thread alone; `None` where all are taken.
    pub(crate) fn own_line(self) -> Option<&'static Line> {
        let free = (1..MAX_LINES).find(|index| self.line(*index).is_claimed())?;
        self.word(header::LINES).fetch_max(free as u32 + 1, Ordering::Relaxed);
        Some(self.line(free))
    }

    /// The lines that were ever taken.
    pub(crate) fn lines(self) -> impl Iterator<Item = &'static Line> {
        let taken = self.word(header::LINES).load(Ordering::Relaxed) as usize;
        (0..taken.min(MAX_LINES)).map(move |index| self.line(index))
    }

    /// From now on blocks are counted here.
    pub(crate) fn begin_lines(self) {
        self.word(header::LINES).fetch_max(1, Ordering::Relaxed);
    }

    /// What stands in them is of nobody who lives.
    pub(crate) fn forget_lines(self) {
        for line in self.lines() {
            line.take();
            line.release();
        }
        self.word(header::LINES).store(0, Ordering::Relaxed);
    }
}
