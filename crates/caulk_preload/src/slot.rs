//! A slot of the shared memory as this process has it mapped: its fields, and room in it. All threads write to it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence};

use caulk_wire::heap::{
    ARENA, ARENA_BYTES, CODE_INDEX, HEADER_BYTES, LINE_BYTES, MAX_CODES, MAX_STACKS, Refusal, SLOT_BYTES,
    SNAPSHOT, SNAPSHOT_HEAD, SNAPSHOT_ROW, STACK_INDEX, TOTAL_BYTES, TOTALS, header,
};

use crate::live::Record;
use crate::maps;

/// A slot, mapped.
#[derive(Clone, Copy)]
pub(crate) struct Segment(pub(crate) NonNull<u8>);

impl Segment {
    /// The slot of this file with this index, mapped.
    pub(crate) fn map(file: i32, index: usize) -> Option<Self> {
        maps::shared(SLOT_BYTES, file, index * SLOT_BYTES).map(Self)
    }

    /// Gives it back, unused.
    ///
    /// # Safety
    /// Nobody else knows it.
    pub(crate) unsafe fn unmap(self) {
        // SAFETY: as promised by the caller.
        unsafe { maps::unmap(self.0, SLOT_BYTES) };
    }

    /// What it holds is read when its process has ended.
    pub(crate) fn watched(self) {
        self.word(header::WATCHED).store(1, Ordering::Release);
    }

    /// A place in the slot.
    pub(crate) fn at(self, at: usize) -> NonNull<u8> {
        debug_assert!(at < SLOT_BYTES);
        // SAFETY: within the slot.
        unsafe { self.0.byte_add(at) }
    }

    pub(crate) fn word(self, at: usize) -> &'static AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at + 4 <= SLOT_BYTES);
        // SAFETY: within the slot, aligned, and mapped until the process ends.
        unsafe { self.0.byte_add(at).cast().as_ref() }
    }

    pub(crate) fn long(self, at: usize) -> &'static AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= SLOT_BYTES);
        // SAFETY: as above.
        unsafe { self.0.byte_add(at).cast().as_ref() }
    }

    fn total(self, stack: u32, field: usize) -> &'static AtomicI64 {
        let at = TOTALS + stack as usize % MAX_STACKS * TOTAL_BYTES + field * 8;
        // SAFETY: as above.
        unsafe { self.0.byte_add(at).cast().as_ref() }
    }

    pub(crate) fn interval(self) -> u64 {
        self.long(header::INTERVAL).load(Ordering::Relaxed).max(1)
    }

    pub(crate) fn set_interval(self, bytes: u64) {
        self.long(header::INTERVAL).store(bytes, Ordering::Relaxed);
    }

    /// Which version of Python stacks are of, and why there are none.
    pub(crate) fn read_by(self, minor: u32, refusal: Refusal) {
        self.word(header::PYTHON).store(minor, Ordering::Relaxed);
        self.word(header::REFUSAL).store(refusal as u32, Ordering::Relaxed);
    }

    pub(crate) fn small_objects(self, sampled: bool) {
        self.word(header::SMALL_OBJECTS).store(u32::from(sampled), Ordering::Relaxed);
    }

    /// Bytes that pymalloc has mapped.
    pub(crate) fn tell_arenas(self, bytes: usize) {
        self.long(header::ARENAS).store(bytes as u64, Ordering::Relaxed);
    }

    /// What the program before this one held went with its memory. Its stacks keep their numbers, unless they take up much
    /// of the room. What was counted of samples stays: it is the process's.
    pub(crate) fn begin_anew(self) {
        self.forget_live();
        if self.is_half_full() {
            self.forget_stacks();
        }
        self.small_objects(false);
        self.word(header::WATCHED).store(0, Ordering::Relaxed);
        self.word(header::IMAGE).fetch_add(1, Ordering::Relaxed);
    }

    /// What another process held, which had the slot before and has ended, is nothing of this one's.
    pub(crate) fn clear(self) {
        self.forget_live();
        self.forget_stacks();
        for at in (header::OWNER + 8..header::BYTES).step_by(8) {
            self.long(at).store(0, Ordering::Relaxed);
        }
    }

    fn forget_live(self) {
        self.long(header::MAGIC).store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.forget_lines();
        self.long(SNAPSHOT).store(0, Ordering::Relaxed);
        for stack in 0..self.word(header::STACKS).load(Ordering::Relaxed).min(MAX_STACKS as u32) {
            for field in 0..TOTAL_BYTES / 8 {
                self.total(stack, field).store(0, Ordering::Relaxed);
            }
        }
    }

    fn forget_stacks(self) {
        self.empty(header::STACKS, STACK_INDEX, MAX_STACKS);
        self.empty(header::CODES, CODE_INDEX, MAX_CODES);
        self.long(header::ARENA_USED).store(0, Ordering::Relaxed);
    }

    fn is_half_full(self) -> bool {
        let count = |at: usize| self.word(at).load(Ordering::Relaxed) as usize;
        let arena = self.long(header::ARENA_USED).load(Ordering::Relaxed) as usize;
        count(header::STACKS) > MAX_STACKS / 2
            || count(header::CODES) > MAX_CODES / 2
            || arena > ARENA_BYTES / 2
    }

    fn empty(self, count: usize, index: usize, most: usize) {
        for id in 0..(self.word(count).swap(0, Ordering::Relaxed) as usize).min(most) {
            self.word(index + id * 4).store(0, Ordering::Relaxed);
        }
    }

    /// A block that was noted lives.
    pub(crate) fn take(self, record: &Record) {
        self.add(record, 1);
        self.total(record.stack, 3).fetch_add(record.weight.cast_signed(), Ordering::Relaxed);
        self.long(header::SAMPLES).fetch_add(1, Ordering::Relaxed);
    }

    /// It does not any more.
    pub(crate) fn give_back(self, record: &Record) {
        self.add(record, -1);
        self.long(header::FREES).fetch_add(1, Ordering::Relaxed);
    }

    fn add(self, record: &Record, sign: i64) {
        self.total(record.stack, 0).fetch_add(sign * record.weight.cast_signed(), Ordering::Relaxed);
        self.total(record.stack, 1).fetch_add(sign * i64::from(record.blocks), Ordering::Relaxed);
        self.total(record.stack, 2).fetch_add(sign * record.variance.cast_signed(), Ordering::Relaxed);
    }

    /// A sample was left out.
    pub(crate) fn drop_one(self) {
        self.long(header::DROPPED).fetch_add(1, Ordering::Relaxed);
    }

    /// A record was found at an address that was handed out again.
    pub(crate) fn stale(self) {
        self.long(header::STALE).fetch_add(1, Ordering::Relaxed);
    }

    /// A sample may be another pass's than the one that it is charged to.
    pub(crate) fn mixed(self) {
        self.long(header::MIXED).fetch_add(1, Ordering::Relaxed);
    }

    /// Adds to the cost, and returns the whole.
    pub(crate) fn spend(self, nanoseconds: u64) -> u64 {
        self.long(header::COST).fetch_add(nanoseconds, Ordering::Relaxed) + nanoseconds
    }

    /// Room for a record in the arena: its offset there and where to write.
    pub(crate) fn reserve(self, bytes: usize) -> Option<(u32, NonNull<u8>)> {
        let whole = bytes.checked_add(7)? & !7;
        let fits = |used: u64| used.checked_add(whole as u64).filter(|used| *used <= ARENA_BYTES as u64);
        let used = self.long(header::ARENA_USED);
        let at = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()? as usize;
        // SAFETY: within the arena.
        Some((at as u32, unsafe { self.0.byte_add(ARENA + at) }))
    }

    /// Enters a record into an index; `None` where it is full.
    pub(crate) fn publish(self, count: usize, index: usize, most: usize, offset: u32) -> Option<u32> {
        let fits = |count: u32| ((count as usize) < most).then(|| count + 1);
        let id = self.word(count).fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        self.word(index + id as usize * 4).store(offset + 1, Ordering::Release);
        Some(id)
    }

    /// Bytes that were written to, in whole pages.
    pub(crate) fn touched(self) -> usize {
        let stacks = self.word(header::STACKS).load(Ordering::Relaxed) as usize;
        let codes = self.word(header::CODES).load(Ordering::Relaxed) as usize;
        let arena = self.long(header::ARENA_USED).load(Ordering::Relaxed) as usize;
        let snapshot = if self.long(SNAPSHOT).load(Ordering::Relaxed) == 0 { 0 } else { SNAPSHOT_ROW };
        let lines = self.lines().count() * LINE_BYTES;
        let areas =
            [HEADER_BYTES, stacks * TOTAL_BYTES, stacks * snapshot, stacks * 4, codes * 4, arena, lines];
        areas.into_iter().map(|bytes| bytes.next_multiple_of(HEADER_BYTES)).sum()
    }

    /// Copies the totals aside, as they are at this boundary. One thread at a time.
    pub(crate) fn snapshot(self, boundary: u32) {
        let lock = self.long(SNAPSHOT);
        let before = lock.load(Ordering::Relaxed) & !1;
        lock.store(before + 1, Ordering::Relaxed);
        // Whoever sees a row of this snapshot sees that it is being made.
        fence(Ordering::Release);
        let stacks = self.word(header::STACKS).load(Ordering::Acquire).min(MAX_STACKS as u32);
        self.long(SNAPSHOT + 8).store(u64::from(boundary), Ordering::Relaxed);
        self.long(SNAPSHOT + 16).store(u64::from(stacks), Ordering::Relaxed);
        for stack in 0..stacks {
            for field in 0..3 {
                let value = self.total(stack, field).load(Ordering::Relaxed).cast_unsigned();
                let at = SNAPSHOT + SNAPSHOT_HEAD + stack as usize * SNAPSHOT_ROW + field * 8;
                self.long(at).store(value, Ordering::Relaxed);
            }
        }
        lock.store(before + 2, Ordering::Release);
    }
}
