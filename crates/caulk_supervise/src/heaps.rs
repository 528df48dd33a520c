//! Heap profiles of the processes: the shared memory that they write to, read at their boundaries.
//!
//! The memory is the supervisor's; a process maps it through the supervisor's own entry in `/proc`. What a process wrote
//! is there after its end, however that came: of one whose agent did not say that it ends, it is read once more then.
//! After that the slot is free for others.

mod copied;
mod in_use;
mod losses;
mod numbers;
mod owners;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use caulk_core::Counted;
use caulk_core::wire::heap::{MAGIC, MEMORY_BYTES, Owner, SLOT_BYTES, SNAPSHOT, Slot, Stack, Total, header};
use caulk_core::wire::{AT_END, HeapAllocated, HeapFrame, HeapLive, HeapRow, HeapStack, Message};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Resource, getrlimit};

use copied::Copied;
use losses::Losses;
use numbers::{long, slots, word};
use owners::owner;

use crate::proc::Reader;

/// Stacks that are reported at a boundary: so many of those that hold most, of those that have grown most, and of those that
/// have allocated most.
const TOLD: usize = 48;
/// Slots that may be taken between two looks at all of them and are seen before the next.
const NEW: usize = 8;
/// Times that a slot is read for one that did not change meanwhile.
const TRIES: usize = 4;
/// After a process's end, words that its agent had said before are waited for so long, in nanoseconds.
const UNHEARD_NS: u64 = 1_000_000_000;

/// The shared memory, and what is known of each process in it.
pub(crate) struct Heaps {
    memory: File,
    known: BTreeMap<u32, Known>,
    /// Processes whose agent has said that it is there, and not that it ends.
    open: BTreeSet<u32>,
    /// Processes whose agents have hung up.
    silent: BTreeSet<Owner>,
    /// Owners that were found to have ended while words of their agents may be on their way, and when.
    ended: BTreeMap<Owner, u64>,
    losses: Losses,
    /// Slots up to the last one that somebody owned at the last look at all of them. Processes take the first that is free.
    taken: usize,
    copied: Copied,
}

/// What is known of one process's profile.
struct Known {
    slot: u64,
    owner: Owner,
    /// Programs that the process has been before.
    image: u32,
    /// Stacks that were described.
    described: BTreeSet<u32>,
    /// The bytes that were told of each stack last.
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
        let bytes = MEMORY_BYTES as u64;
        // Beyond this limit the system would not refuse but kill.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < bytes) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let memory = memfd_create("caulk-heap", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, bytes)?;
        Ok(Self {
            memory: memory.into(),
            known: BTreeMap::new(),
            open: BTreeSet::new(),
            silent: BTreeSet::new(),
            ended: BTreeMap::new(),
            losses: Losses::default(),
            taken: 0,
            copied: Copied::default(),
        })
    }

    /// The path by which processes open it: an entry of the supervisor, or of a process that has the same descriptors.
    pub(crate) fn path(&self, of: u32) -> String {
        format!("/proc/{of}/fd/{}", self.memory.as_raw_fd())
    }

    /// The descriptor that a process must keep for that.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.memory.as_raw_fd()
    }

    /// Takes in what an agent says of its process's beginning and end.
    pub(crate) fn hear(&mut self, pid: u32, message: &Message) {
        match message {
            Message::Hello(_) => {
                self.open.insert(pid);
                if let Some((_, owner)) = self.find(pid) {
                    self.silent.remove(&owner);
                }
            }
            Message::Bye(_) => {
                self.open.remove(&pid);
                if let Some((slot, _)) = self.find(pid) {
                    owners::unwatch(&self.memory, slot);
                }
            }
            _ => {}
        }
    }

    /// The agent of a process has said its last words, whether it knew that or not.
    pub(crate) fn hung_up(&mut self, pid: u32) {
        self.silent.extend(self.find(pid).map(|(_, owner)| owner));
    }

    /// What a process has noted at its last boundary, described in full; nothing where that is told already.
    pub(crate) fn look(&mut self, pid: u32) -> Vec<Message> {
        let Some((slot, owner)) = self.meet(pid) else { return Vec::new() };
        let is_settled = settle(&self.memory, slot, owner, &mut self.copied).unwrap_or(false);
        if is_settled { self.tell(pid, Known::at_boundary) } else { Vec::new() }
    }

    /// What a process held when it ended, where its agent did not say that it would.
    pub(crate) fn last(&mut self, pid: u32) -> Vec<Message> {
        let Some((slot, owner)) = self.meet(pid).filter(|_| self.open.remove(&pid)) else {
            return Vec::new();
        };
        let failed = self.copied.read(&self.memory, slot).is_err();
        if failed || self::owner(&self.memory, slot) != Some(owner) {
            return Vec::new();
        }
        let counted = in_use::read(&self.memory, slot).filter(|(now, _)| *now == owner);
        let mut told = self.tell(pid, Known::at_end);
        if let (Some(Message::HeapLive(live)), Some((_, counted))) = (told.last_mut(), counted) {
            live.malloc_bytes = counted.malloc_bytes;
            live.malloc_blocks = counted.blocks;
            live.arena_bytes = counted.arena_bytes;
        }
        told
    }

    /// What every process has in use at this moment, by its number.
    pub(crate) fn in_use(&self) -> BTreeMap<u32, Counted> {
        in_use::of_all(&self.memory, slots().take(self.taken + NEW))
    }

    /// Processes that may have something left to tell.
    pub(crate) fn unsaid(&self) -> Vec<u32> {
        self.open.iter().copied().collect()
    }

    /// What the copied slot says.
    fn tell(&mut self, pid: u32, tell: impl Fn(&mut Known, Slot<'_>) -> Vec<Message>) -> Vec<Message> {
        let (Some(known), Some(slot)) = (self.known.get_mut(&pid), self.copied.slot()) else {
            return Vec::new();
        };
        known.recognise(slot);
        tell(known, slot)
    }

    /// The slot of a process, where it has one.
    fn meet(&mut self, pid: u32) -> Option<(u64, Owner)> {
        let is_its = |known: &&Known| owner(&self.memory, known.slot) == Some(known.owner);
        if let Some(known) = self.known.get(&pid).filter(is_its) {
            return Some((known.slot, known.owner));
        }
        let (slot, owner) = self.find(pid)?;
        self.known.insert(pid, Known::new(slot, owner));
        Some((slot, owner))
    }

    /// Frees the slots of processes that have ended, for others. Of one whose agent may still be heard, a moment later.
    /// `tell` is given what such a process held.
    pub(crate) fn release(&mut self, now_ns: u64, reader: &mut Reader, mut tell: impl FnMut(u32, Message)) {
        let all = slots().filter_map(|slot| Some((slot, owner(&self.memory, slot)?)));
        let all: Vec<(u64, Owner)> = all.collect();
        self.taken = all.last().map_or(0, |(slot, _)| *slot as usize / SLOT_BYTES + 1);
        let mut ended = all;
        ended.retain(|(_, owner)| owners::has_ended(reader, *owner));
        self.ended.retain(|known, _| ended.iter().any(|(_, owner)| owner == known));
        for (slot, owner) in ended {
            let since = *self.ended.entry(owner).or_insert(now_ns);
            let unheard = owners::is_watched(&self.memory, slot) && !self.silent.contains(&owner);
            if unheard && now_ns < since + UNHEARD_NS {
                continue;
            }
            // Unless its number is a later process's by now.
            if self.find(owner.pid) == Some((slot, owner)) {
                self.last(owner.pid).into_iter().for_each(|message| tell(owner.pid, message));
                self.known.remove(&owner.pid);
            }
            self.silent.remove(&owner);
            if owners::take(&self.memory, slot, owner) {
                self.losses.count(&self.memory, slot);
                owners::empty(&self.memory, slot);
            }
        }
    }

    /// What is missing in the profiles, when all is over.
    pub(crate) fn losses(&mut self) -> Vec<String> {
        for slot in slots() {
            self.losses.count(&self.memory, slot);
        }
        self.losses.count_the_slotless(&self.memory);
        self.losses.lines()
    }

    /// The slot of the last process with this number.
    fn find(&self, pid: u32) -> Option<(u64, Owner)> {
        let owned = slots().filter_map(|slot| Some((slot, owner(&self.memory, slot)?)));
        owned.filter(|(_, owner)| owner.pid == pid).max_by_key(|(_, owner)| owner.start)
    }
}

/// What is something else where a slot has got another owner, another program or another snapshot.
#[derive(PartialEq, Eq)]
struct Edition {
    magic: u64,
    owner: Option<Owner>,
    image: u32,
    lock: u64,
}

impl Edition {
    fn read(memory: &File, slot: u64) -> io::Result<Self> {
        Ok(Self {
            magic: long(memory, slot + header::MAGIC as u64)?,
            owner: owner(memory, slot),
            image: word(memory, slot + header::IMAGE as u64)?,
            lock: long(memory, slot + SNAPSHOT as u64)?,
        })
    }
}

/// Copies a slot as it was at one moment: nothing was begun or ended while it was read. False where it is busy or another's.
fn settle(memory: &File, slot: u64, owner: Owner, into: &mut Copied) -> io::Result<bool> {
    for _ in 0..TRIES {
        let before = Edition::read(memory, slot)?;
        into.read(memory, slot)?;
        let is_whole = before.magic == MAGIC && before.lock % 2 == 0 && before.owner == Some(owner);
        if is_whole && Edition::read(memory, slot)? == before {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Known {
    fn new(slot: u64, owner: Owner) -> Self {
        let (told, first) = (BTreeMap::new(), BTreeMap::new());
        Self { slot, owner, image: 0, described: BTreeSet::new(), told, first, boundary: None }
    }

    /// Another program than before may have stacks of its own under the same numbers. What was told of the old ones is to
    /// be told again where it does not hold.
    fn recognise(&mut self, slot: Slot<'_>) {
        let image = slot.field(header::IMAGE);
        if image != self.image {
            (self.image, self.boundary) = (image, None);
            self.described.clear();
            self.first.clear();
        }
    }

    fn at_boundary(&mut self, slot: Slot<'_>) -> Vec<Message> {
        match slot.snapshot() {
            Some((boundary, totals)) if self.boundary != Some(boundary) => {
                self.boundary = Some(boundary);
                self.tell(slot, boundary, &totals)
            }
            _ => Vec::new(),
        }
    }

    fn at_end(&mut self, slot: Slot<'_>) -> Vec<Message> {
        self.tell(slot, AT_END, &slot.totals())
    }

    fn tell(&mut self, slot: Slot<'_>, boundary: u32, totals: &[Total]) -> Vec<Message> {
        for (id, total) in (0..).zip(totals) {
            self.first.entry(id).or_insert(total.bytes);
        }
        let minor = slot.field(header::PYTHON);
        let rows = self.rows(totals);
        self.told.extend(rows.iter().map(|row| (row.id, row.bytes)));
        let (allocated_bytes, allocated) = allocated(slot, totals.len() as u32);
        let mut messages = Vec::new();
        for id in rows.iter().map(|row| row.id).chain(allocated.iter().map(|one| one.id)) {
            if !self.described.contains(&id)
                && let Some(stack) = slot.stack(id)
            {
                self.described.insert(id);
                messages.push(describe(slot, id, &stack, minor).into());
            }
        }
        let all = totals.iter().fold(Total::default(), |sum, total| Total {
            bytes: sum.bytes + total.bytes,
            blocks: sum.blocks + total.blocks,
            variance: sum.variance + total.variance,
        });
        let interval = slot.count(header::INTERVAL);
        let (bytes, deviation) = (all.bytes, all.deviation());
        let live = HeapLive { boundary, interval, bytes, deviation, rows, ..HeapLive::default() };
        messages.push(HeapLive { allocated_bytes, allocated, ..live }.into());
        messages
    }

    /// The stacks that hold most, those that have grown most since they were first seen, and those of which something
    /// else was told last.
    fn rows(&self, totals: &[Total]) -> Vec<HeapRow> {
        let mut order: Vec<u32> =
            (0..totals.len() as u32).filter(|id| totals[*id as usize].bytes > 0).collect();
        let total = |id: u32| totals.get(id as usize).copied().unwrap_or_default();
        let bytes = |id: &u32| total(*id).bytes;
        let grown = |id: &u32| bytes(id).saturating_sub(self.first.get(id).copied().unwrap_or(0));
        order.sort_by_key(|id| std::cmp::Reverse(bytes(id)));
        let mut rest = order.split_off(TOLD.min(order.len()));
        rest.sort_by_key(|id| std::cmp::Reverse(grown(id)));
        order.extend(rest.into_iter().take(TOLD));
        let known: BTreeSet<u32> = order.iter().copied().collect();
        let changed = self.told.iter().filter(|(id, told)| !known.contains(id) && bytes(id) != **told);
        order.extend(changed.map(|(id, _)| *id));
        let row = |id: u32| {
            let total = total(id);
            HeapRow { id, bytes: total.bytes, blocks: total.blocks, deviation: total.deviation() }
        };
        order.into_iter().map(row).collect()
    }
}

/// The bytes that all of the first `stacks` have allocated, and those of the stacks that have allocated most.
fn allocated(slot: Slot<'_>, stacks: u32) -> (u64, Vec<HeapAllocated>) {
    let of = |id: u32| HeapAllocated { id, bytes: slot.allocated(id) };
    let mut all: Vec<HeapAllocated> = (0..stacks).map(of).filter(|one| one.bytes > 0).collect();
    let bytes = all.iter().map(|one| one.bytes).sum();
    all.sort_by_key(|one| std::cmp::Reverse(one.bytes));
    all.truncate(TOLD);
    (bytes, all)
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
    use std::os::unix::fs::FileExt;

    use caulk_core::wire::heap::{
        ARENA, CODE_INDEX, MAX_STACKS, SNAPSHOT_HEAD, SNAPSHOT_ROW, STACK_INDEX, TOTALS,
    };
    use caulk_core::wire::{Bye, Hello};

    use super::*;

    /// Writes a slot as a process does: one stack of one frame, and what it holds.
    fn write(heaps: &Heaps, index: usize, pid: u32, boundary: u64, bytes: u64) {
        let slot = (index * SLOT_BYTES) as u64;
        let put = |at: usize, data: &[u8]| heaps.memory.write_all_at(data, slot + at as u64).unwrap();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let longs = |longs: &[u64]| longs.iter().flat_map(|long| long.to_ne_bytes()).collect::<Vec<u8>>();
        put(header::MAGIC, &longs(&[MAGIC]));
        put(header::OWNER, &longs(&[Owner { pid, start: 5 }.number()]));
        put(header::PYTHON, &words(&[11]));
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

    /// Beyond the numbers that processes have (`proc_sys_kernel(5)`, `pid_max`).
    const GONE: u32 = 1 << 22;

    fn release(heaps: &mut Heaps, now_ns: u64) -> Vec<Message> {
        let mut told = Vec::new();
        heaps.release(now_ns, &mut Reader::new(), |_, message| told.push(message));
        told
    }

    fn live(told: &[Message]) -> &HeapLive {
        match told.last() {
            Some(Message::HeapLive(live)) => live,
            _ => panic!("{told:?}"),
        }
    }

    #[test]
    fn a_profile_is_told_once_per_boundary_and_outlives_its_process() {
        let mut heaps = Heaps::open().unwrap();
        assert_eq!(heaps.look(GONE), []);
        write(&heaps, 3, GONE, 0, 5000);
        let told = heaps.look(GONE);
        let frame = HeapFrame { file: "t.py".into(), line: 5, function: "run".into() };
        assert_eq!(told[0], HeapStack { id: 0, flags: 0, frames: vec![frame] }.into());
        assert_eq!((live(&told).boundary, live(&told).bytes, live(&told).deviation), (0, 5000, 2597));
        assert_eq!(heaps.look(GONE), []);
        write(&heaps, 3, GONE, 1, 7000);
        assert_eq!(heaps.look(GONE).len(), 1, "the stack is known");
        release(&mut heaps, 0);
        assert_eq!(heaps.look(GONE), []);
    }

    #[test]
    fn slots_of_processes_that_have_ended_are_free_again_once_they_are_read() {
        let mut heaps = Heaps::open().unwrap();
        let mut reader = Reader::new();
        let own = reader.stat(std::process::id()).unwrap();
        write(&heaps, 0, std::process::id(), 0, 5000);
        let number = Owner { pid: std::process::id(), start: own.start_ticks as u32 }.number();
        heaps.memory.write_all_at(&number.to_ne_bytes(), header::OWNER as u64).unwrap();
        write(&heaps, 1, GONE, 0, 6000);
        let watched = (2 * SLOT_BYTES + header::WATCHED) as u64;
        write(&heaps, 2, GONE + 1, 0, 7000);
        heaps.memory.write_all_at(&1_u32.to_ne_bytes(), watched).unwrap();
        let owners = |heaps: &Heaps| {
            [0, 1, 2].map(|index| owner(&heaps.memory, index * SLOT_BYTES as u64).map(|owner| owner.pid))
        };
        assert_eq!(release(&mut heaps, 0), []);
        assert_eq!(owners(&heaps), [Some(std::process::id()), None, Some(GONE + 1)]);
        // Only now its agent is heard.
        heaps.hear(GONE + 1, &Hello::default().into());
        assert_eq!(release(&mut heaps, UNHEARD_NS - 1), []);
        let told = release(&mut heaps, UNHEARD_NS);
        assert_eq!((live(&told).boundary, live(&told).interval), (AT_END, 0));
        assert_eq!(owners(&heaps), [Some(std::process::id()), None, None]);
    }

    #[test]
    fn nothing_is_waited_for_from_an_agent_that_can_say_no_more() {
        let ended = |end: fn(&mut Heaps)| {
            let mut heaps = Heaps::open().unwrap();
            write(&heaps, 2, GONE, 0, 7000);
            heaps
                .memory
                .write_all_at(&1_u32.to_ne_bytes(), (2 * SLOT_BYTES + header::WATCHED) as u64)
                .unwrap();
            heaps.hear(GONE, &Hello::default().into());
            end(&mut heaps);
            let told = release(&mut heaps, 0);
            assert_eq!(heaps.find(GONE), None);
            told
        };
        assert_eq!(ended(|heaps| heaps.hear(GONE, &Bye::default().into())), []);
        // It was killed: what it held is read.
        assert_eq!(live(&ended(|heaps| heaps.hung_up(GONE))).boundary, AT_END);
    }

    #[test]
    fn a_later_process_with_the_number_of_one_before_has_a_profile_of_its_own() {
        let mut heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 5000);
        assert_eq!(heaps.look(77).len(), 2);
        // The slot is another's by now, and that of the new process is elsewhere.
        let owner = |start| Owner { pid: 77, start }.number().to_ne_bytes();
        write(&heaps, 1, 77, 0, 7000);
        heaps.memory.write_all_at(&owner(6), (SLOT_BYTES + header::OWNER) as u64).unwrap();
        write(&heaps, 0, 78, 0, 9000);
        let told = heaps.look(77);
        assert_eq!((told.len(), live(&told).bytes), (2, 7000), "described anew: {told:?}");
    }

    #[test]
    fn of_a_process_that_was_killed_the_end_is_told() {
        let mut heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 5000);
        heaps.hear(77, &Hello::default().into());
        assert_eq!(heaps.look(77).len(), 2);
        // Grown since, and killed while it made a snapshot.
        heaps.memory.write_all_at(&9000_u64.to_ne_bytes(), TOTALS as u64).unwrap();
        heaps.memory.write_all_at(&3_u64.to_ne_bytes(), SNAPSHOT as u64).unwrap();
        let told = heaps.last(77);
        assert_eq!(
            (live(&told).boundary, live(&told).bytes, live(&told).rows[0].bytes),
            (AT_END, 9000, 9000)
        );
        assert_eq!(heaps.last(77), [], "once");
        // One that said that it ends has taken itself down by now.
        heaps.hear(77, &Hello::default().into());
        heaps.hear(77, &Bye::default().into());
        assert_eq!((heaps.last(77), heaps.unsaid()), (vec![], vec![]));
    }

    #[test]
    fn what_was_allocated_is_told_though_it_was_given_back() {
        let mut heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 0);
        heaps.memory.write_all_at(&6000_u64.to_ne_bytes(), TOTALS as u64 + 24).unwrap();
        let told = heaps.look(77);
        assert!(matches!(&told[0], Message::HeapStack(stack) if stack.id == 0), "{told:?}");
        assert_eq!((live(&told).bytes, live(&told).allocated_bytes), (0, 6000));
        assert_eq!((live(&told).rows.len(), live(&told).allocated[0].bytes), (0, 6000));
    }

    #[test]
    fn another_program_of_the_same_process_has_stacks_of_its_own() {
        let mut heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 5000);
        assert_eq!(heaps.look(77).len(), 2);
        write(&heaps, 0, 77, 0, 7000);
        heaps.memory.write_all_at(&1_u32.to_ne_bytes(), header::IMAGE as u64).unwrap();
        let told = heaps.look(77);
        assert_eq!((told.len(), live(&told).bytes), (2, 7000), "described anew: {told:?}");
        // One without stacks: what the others held is gone.
        heaps.memory.write_all_at(&2_u32.to_ne_bytes(), header::IMAGE as u64).unwrap();
        heaps.memory.write_all_at(&0_u64.to_ne_bytes(), SNAPSHOT as u64 + 16).unwrap();
        let told = heaps.look(77);
        assert_eq!(live(&told).rows, [HeapRow { id: 0, ..HeapRow::default() }]);
    }

    #[test]
    fn nothing_of_a_slot_that_was_read_before_is_taken_for_the_next_ones() {
        let heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 5000);
        let mut copied = Copied::default();
        copied.read(&heaps.memory, SLOT_BYTES as u64).unwrap();
        copied.read(&heaps.memory, 0).unwrap();
        let slot = copied.slot().unwrap();
        assert!(slot.stack(0).is_some() && slot.code(0).is_some());
        assert!((1..MAX_STACKS as u32).all(|id| slot.stack(id).is_none() && slot.code(id).is_none()));
        assert_eq!(slot.snapshot().map(|(_, totals)| totals.len()), Some(1));
    }

    #[test]
    fn a_stack_that_cannot_be_read_yet_is_described_later() {
        let mut heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 5000);
        heaps.memory.write_all_at(&0_u32.to_ne_bytes(), STACK_INDEX as u64).unwrap();
        assert_eq!(heaps.look(77).len(), 1);
        write(&heaps, 0, 77, 1, 5000);
        // Its code was being written when the arena was read first.
        heaps.memory.write_all_at(b"u.pyrun", ARENA as u64 + 32).unwrap();
        let told = heaps.look(77);
        assert!(matches!(&told[0], Message::HeapStack(stack) if stack.frames[0].file == "u.py"), "{told:?}");
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn a_snapshot_is_told_whole_or_not_at_all() {
        const ROWS: usize = 16_384;
        let mut heaps = Heaps::open().unwrap();
        write(&heaps, 0, 77, 0, 0);
        let memory = heaps.memory.try_clone().unwrap();
        let put = |at: usize, number: u64| memory.write_all_at(&number.to_ne_bytes(), at as u64).unwrap();
        // And one code object, in the upper half.
        put(header::STACKS, 1 << 32 | ROWS as u64);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for round in 1..=100 {
                    put(SNAPSHOT, round * 2 + 1);
                    put(SNAPSHOT + 8, round);
                    put(SNAPSHOT + 16, ROWS as u64);
                    // Against the way in which they are read, so that both meet.
                    for row in (0..ROWS).rev() {
                        put(SNAPSHOT + SNAPSHOT_HEAD + row * SNAPSHOT_ROW, round);
                    }
                    put(SNAPSHOT, round * 2 + 2);
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            while !writer.is_finished() {
                for message in heaps.look(77) {
                    if let Message::HeapLive(live) = message {
                        assert_eq!(live.bytes, u64::from(live.boundary) * ROWS as u64, "{}", live.boundary);
                    }
                }
            }
        });
    }
}
