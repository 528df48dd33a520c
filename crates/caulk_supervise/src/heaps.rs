//! Heap profiles of the processes: the shared memory that they write to, read at their boundaries.
//!
//! The memory is the supervisor's; a process maps it through the supervisor's own entry in `/proc`. What a process wrote
//! is there after its end, however that came.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use caulk_core::wire::heap::{ARENA, SLOT_BYTES, SLOTS, Slot, Stack, Total, header};
use caulk_core::wire::{HeapFrame, HeapLive, HeapRow, HeapStack, Message};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};
use rustix::process::{Resource, getrlimit};

/// Stacks that are told of at a boundary: so many of those that hold most, and of those that have grown most.
const TOLD: usize = 48;

/// The shared memory, and what is known of each process in it.
pub(crate) struct Heaps {
    memory: File,
    known: BTreeMap<u32, Known>,
}

/// What is known of one process's profile.
struct Known {
    slot: u64,
    /// Stacks that were described, and the bytes that were told of each last.
    told: BTreeMap<u32, u64>,
    /// What each stack held when it was first seen.
    first: BTreeMap<u32, u64>,
    boundary: Option<u32>,
}

impl Heaps {
    /// Makes the memory. None of it is used before a process writes to it.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open() -> io::Result<Self> {
        let bytes = (SLOTS * SLOT_BYTES) as u64;
        // Beyond this limit the system would not refuse but kill.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < bytes) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let memory = memfd_create("caulk-heap", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, bytes)?;
        Ok(Self { memory: memory.into(), known: BTreeMap::new() })
    }

    /// The path by which processes open it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.as_raw_fd())
    }

    /// What a process has noted at its last boundary, described in full; nothing where that is told already.
    pub(crate) fn look(&mut self, pid: u32) -> Vec<Message> {
        if !self.known.contains_key(&pid) {
            let Some(slot) = self.find(pid) else { return Vec::new() };
            let (told, first) = (BTreeMap::new(), BTreeMap::new());
            self.known.insert(pid, Known { slot, told, first, boundary: None });
        }
        let Some(known) = self.known.get_mut(&pid) else { return Vec::new() };
        let bytes = copy(&self.memory, known.slot).unwrap_or_default();
        Slot::new(&bytes).map_or_else(Vec::new, |slot| known.tell(slot))
    }

    /// Frees the slot of a process that has ended, for others.
    pub(crate) fn release(&mut self, pid: u32) {
        let slot = self.known.remove(&pid).map(|known| known.slot).or_else(|| self.find(pid));
        if let Some(slot) = slot {
            // Its pages go, and with them its owner: the slot is as it was in the beginning.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            _ = fallocate(&self.memory, flags, slot, SLOT_BYTES as u64);
        }
    }

    fn find(&self, pid: u32) -> Option<u64> {
        let owner = |slot: &u64| {
            let mut bytes = [0; 4];
            let read = self.memory.read_at(&mut bytes, slot + header::PID as u64);
            read.is_ok_and(|length| length == 4) && u32::from_ne_bytes(bytes) == pid
        };
        (0..SLOTS).map(|index| (index * SLOT_BYTES) as u64).find(owner)
    }
}

/// A slot as far as it is used.
fn copy(memory: &File, slot: u64) -> io::Result<Vec<u8>> {
    let mut used = [0; 8];
    memory.read_exact_at(&mut used, slot + header::ARENA_USED as u64)?;
    let used = u64::from_ne_bytes(used).min((SLOT_BYTES - ARENA) as u64) as usize;
    let mut bytes = vec![0; ARENA + used];
    memory.read_exact_at(&mut bytes, slot)?;
    Ok(bytes)
}

impl Known {
    fn tell(&mut self, slot: Slot<'_>) -> Vec<Message> {
        let Some((boundary, totals)) = slot.snapshot() else { return Vec::new() };
        if self.boundary == Some(boundary) {
            return Vec::new();
        }
        self.boundary = Some(boundary);
        for (id, total) in (0..).zip(&totals) {
            self.first.entry(id).or_insert(total.bytes);
        }
        let minor = slot.field(header::PYTHON);
        let rows = self.rows(&totals);
        let mut messages = Vec::new();
        for row in &rows {
            if self.told.insert(row.id, row.bytes).is_none()
                && let Some(stack) = slot.stack(row.id)
            {
                messages.push(describe(slot, row.id, &stack, minor).into());
            }
        }
        let all = totals.iter().fold(Total::default(), |sum, total| Total {
            bytes: sum.bytes + total.bytes,
            blocks: sum.blocks + total.blocks,
            variance: sum.variance + total.variance,
        });
        let interval = slot.count(header::INTERVAL);
        let (bytes, deviation) = (all.bytes, all.deviation());
        messages.push(HeapLive { boundary, interval, bytes, deviation, rows }.into());
        messages
    }

    /// The stacks that hold most, those that have grown most since they were first seen, and those of which something
    /// else was told last.
    fn rows(&self, totals: &[Total]) -> Vec<HeapRow> {
        let mut order: Vec<u32> =
            (0..totals.len() as u32).filter(|id| totals[*id as usize].bytes > 0).collect();
        let bytes = |id: &u32| totals[*id as usize].bytes;
        let grown = |id: &u32| bytes(id).saturating_sub(self.first.get(id).copied().unwrap_or(0));
        order.sort_by_key(|id| std::cmp::Reverse(bytes(id)));
        let mut rest = order.split_off(TOLD.min(order.len()));
        rest.sort_by_key(|id| std::cmp::Reverse(grown(id)));
        order.extend(rest.into_iter().take(TOLD));
        let known: BTreeSet<u32> = order.iter().copied().collect();
        let changed = self.told.iter().filter(|(id, told)| !known.contains(id) && bytes(id) != **told);
        order.extend(changed.map(|(id, _)| *id));
        let row = |id: u32| {
            let total = totals[id as usize];
            HeapRow { id, bytes: total.bytes, blocks: total.blocks, deviation: total.deviation() }
        };
        order.into_iter().map(row).collect()
    }
}

fn describe(slot: Slot<'_>, id: u32, stack: &Stack, minor: u32) -> HeapStack {
    let frame = |frame: &caulk_core::wire::heap::Frame| {
        let code = slot.code(frame.code)?;
        let line = code.line(minor, frame.offset);
        // Where C calls Python, 3.12 and later put frames that nobody wrote.
        let real = !code.file.starts_with("<shim>") && line > 0;
        real.then_some(HeapFrame { file: code.file, line, function: code.name })
    };
    HeapStack { id, flags: stack.flags, frames: stack.frames.iter().filter_map(frame).collect() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use caulk_core::wire::heap::{CODE_INDEX, MAGIC, SNAPSHOT, SNAPSHOT_HEAD, STACK_INDEX};

    use super::*;

    /// Writes a slot as a process does: one stack of one frame, and what it holds.
    fn write(heaps: &Heaps, index: usize, pid: u32, boundary: u64, bytes: u64) {
        let slot = (index * SLOT_BYTES) as u64;
        let put = |at: usize, data: &[u8]| heaps.memory.write_all_at(data, slot + at as u64).unwrap();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let longs = |longs: &[u64]| longs.iter().flat_map(|long| long.to_ne_bytes()).collect::<Vec<u8>>();
        put(header::MAGIC, &longs(&[MAGIC]));
        put(header::PID, &words(&[pid, 11]));
        put(header::ARENA_USED, &longs(&[64]));
        put(header::STACKS, &words(&[1, 1]));
        put(STACK_INDEX, &words(&[1]));
        put(CODE_INDEX, &words(&[17]));
        put(ARENA, &words(&[1, 0, 0, 4]));
        put(ARENA + 16, &words(&[5, 4, 3, 4]));
        put(ARENA + 32, b"t.pyrun\x81\x00\x81\x00");
        put(SNAPSHOT, &longs(&[2, boundary, 1]));
        put(SNAPSHOT + SNAPSHOT_HEAD, &longs(&[bytes, 1, 4]));
    }

    #[test]
    fn a_profile_is_told_once_per_boundary_and_outlives_its_process() {
        let mut heaps = Heaps::open().unwrap();
        assert_eq!(heaps.look(77), []);
        write(&heaps, 3, 77, 0, 5000);
        let told = heaps.look(77);
        let frame = HeapFrame { file: "t.py".into(), line: 5, function: "run".into() };
        assert_eq!(told[0], HeapStack { id: 0, flags: 0, frames: vec![frame] }.into());
        let Message::HeapLive(live) = &told[1] else { panic!("{told:?}") };
        assert_eq!((live.boundary, live.bytes, live.deviation), (0, 5000, 2597));
        assert_eq!(heaps.look(77), []);
        write(&heaps, 3, 77, 1, 7000);
        assert_eq!(heaps.look(77).len(), 1, "the stack is known");
        heaps.release(77);
        assert_eq!(heaps.look(77), []);
    }
}
