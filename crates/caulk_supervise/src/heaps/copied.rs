//! A copy of a slot, as far as it is used.
//!
//! Most of a slot is its arena, megabytes of descriptions that are only added to. Of the process that was read last only what
//! has come since is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use caulk_core::wire::heap::{
    ARENA, ARENA_BYTES, CODE_INDEX, HEADER_BYTES, MAX_CODES, MAX_STACKS, SNAPSHOT, SNAPSHOT_HEAD,
    SNAPSHOT_ROW, STACK_INDEX, Slot, TOTAL_BYTES, TOTALS, header,
};

use super::numbers::{long, word};

/// The slot that was read last, at the same places; for the next one to be read into.
#[derive(Debug, Default)]
pub(super) struct Copied {
    bytes: Vec<u8>,
    /// Where the slot begins, whose it was, and which of its programs: who has added to the arena.
    of: Option<(u64, u64, u32)>,
    /// Bytes of its arena that were read.
    arena: usize,
}

impl Copied {
    pub(super) fn slot(&self) -> Option<Slot<'_>> {
        Slot::new(&self.bytes)
    }

    /// Copies a slot as far as it is used. Totals beyond are left as they were: nobody asks for them. What other stacks and
    /// codes the slot that was read before had is forgotten.
    ///
    /// What a stack refers to is written before it: so the codes and the arena come last.
    pub(super) fn read(&mut self, memory: &File, slot: u64) -> io::Result<()> {
        let before = self.of.take();
        self.part(memory, slot, 0, HEADER_BYTES)?;
        let of = (slot, self.long(header::OWNER), self.word(header::IMAGE));
        let mut known = if before == Some(of) { self.arena } else { 0 };
        let stacks = word(memory, slot + header::STACKS as u64)?.min(MAX_STACKS as u32);
        let used = stacks as usize;
        self.part(memory, slot, TOTALS, used * TOTAL_BYTES)?;
        self.part(memory, slot, SNAPSHOT, SNAPSHOT_HEAD + used * SNAPSHOT_ROW)?;
        let mut is_late = self.index(memory, slot, STACK_INDEX..CODE_INDEX, used, known)?;
        let codes = word(memory, slot + header::CODES as u64)?.min(MAX_CODES as u32) as usize;
        let arena = long(memory, slot + header::ARENA_USED as u64)?.min(ARENA_BYTES as u64) as usize;
        is_late |= self.index(memory, slot, CODE_INDEX..ARENA, codes, known)?;
        if is_late || arena < known {
            known = 0;
        }
        self.part(memory, slot, ARENA + known, arena - known)?;
        // The header may have been read before the process became another program.
        let told = self.word(header::STACKS).min(stacks);
        self.bytes[header::STACKS..][..4].copy_from_slice(&told.to_ne_bytes());
        (self.of, self.arena) = (Some(of), arena);
        Ok(())
    }

    fn part(&mut self, memory: &File, slot: u64, at: usize, length: usize) -> io::Result<()> {
        self.bytes.resize(self.bytes.len().max(at + length), 0);
        memory.read_exact_at(&mut self.bytes[at..at + length], slot + at as u64)
    }

    /// Reads the first entries of an index. True if one of them is new and yet refers to the `known` part of the arena: it was
    /// being written when that was read.
    fn index(
        &mut self,
        memory: &File,
        slot: u64,
        area: std::ops::Range<usize>,
        entries: usize,
        known: usize,
    ) -> io::Result<bool> {
        self.bytes.resize(self.bytes.len().max(area.end), 0);
        let mut read = vec![0; entries * 4];
        memory.read_exact_at(&mut read, slot + area.start as u64)?;
        let (kept, beyond) = self.bytes[area].split_at_mut(read.len());
        // Offsets are kept plus one: 0 is nothing.
        let offset = |entry: &[u8]| u32::from_ne_bytes(entry.try_into().unwrap_or_default()) as usize;
        let is_late = kept
            .chunks_exact(4)
            .zip(read.chunks_exact(4))
            .any(|(before, now)| before != now && offset(now) <= known);
        kept.copy_from_slice(&read);
        beyond.fill(0);
        Ok(is_late)
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap_or_default())
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().unwrap_or_default())
    }
}
