//! Layout of the shared memory in which sampled processes keep their heap profile: one slot per process.
//!
//! The supervisor makes the memory and only reads it; a process writes its own slot. All numbers are in the machine's
//! byte order and aligned to their size. Everything is append-only but [`TOTALS`], [`SNAPSHOT`] and [`LINES`], until the
//! process becomes another program: that one may begin anew, with [`header::IMAGE`] one up.
//!
//! Whose a slot is stands in one number, [`header::OWNER`], which is changed by comparing and exchanging it alone. A slot
//! is free again when the supervisor has released that of a process that has ended. Where none is free, a process takes
//! one over whose owner has ended, unless that is [`header::WATCHED`]: a reader looks at the owner before and after.

mod in_use;

pub use in_use::{InUse, LINE_BYTES, MAX_LINES, line};

/// Variable that says where the memory is: a path that opens it.
pub const HEAP_VARIABLE: &str = "CAULK_HEAP";
/// Variable with the mean bytes between samples, where it is another than [`INTERVAL`].
pub const INTERVAL_VARIABLE: &str = "CAULK_HEAP_INTERVAL";
/// Mean bytes between samples.
pub const INTERVAL: u64 = 512 << 10;
/// Mean bytes between samples where lines shall be told apart more precisely.
pub const PRECISE_INTERVAL: u64 = 128 << 10;
/// First eight bytes of a slot in use; the last of them is the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"caulkhp4");

/// Processes with a profile of their own.
pub const SLOTS: usize = 64;
/// Bytes per slot; most are never touched.
pub const SLOT_BYTES: usize = 8 << 20;
/// Processes that found no slot, of 32 bits, behind the last slot.
pub const TURNED_AWAY: usize = SLOTS * SLOT_BYTES;
/// Fields of a slot's header that are summed up over the processes whose slots others have taken over.
pub const HANDED_DOWN: [usize; 4] = [header::SAMPLES, header::DROPPED, header::STALE, header::MIXED];
/// Where the sum of one of [`HANDED_DOWN`] is, of 64 bits.
pub const fn taken_over(index: usize) -> usize {
    TURNED_AWAY + 8 + index * 8
}
/// Bytes of the whole memory.
pub const MEMORY_BYTES: usize = TURNED_AWAY + HEADER_BYTES;
/// Different stacks per process.
pub const MAX_STACKS: usize = 1 << 14;
/// Different code objects per process.
pub const MAX_CODES: usize = 1 << 14;
/// Frames of a stack that are kept, the innermost.
pub const MAX_FRAMES: usize = 48;
/// The stack to which samples are charged whose own could not be written down: the first of every slot.
pub const OTHERS: u32 = 0;

/// Fields of a slot's header, as byte offsets.
pub mod header {
    /// [`super::MAGIC`], written last.
    pub const MAGIC: usize = 0;
    /// [`super::Owner`] as a number: whose the slot is.
    pub const OWNER: usize = 8;
    /// Mean bytes between samples.
    pub const INTERVAL: usize = 16;
    /// [`super::Refusal`] as a number: why there are no Python stacks.
    pub const REFUSAL: usize = 24;
    /// 1 where objects of up to 512 bytes are sampled.
    pub const SMALL_OBJECTS: usize = 28;
    /// Samples taken.
    pub const SAMPLES: usize = 32;
    /// Sampled blocks that were given back.
    pub const FREES: usize = 40;
    /// Samples that had to be left out.
    pub const DROPPED: usize = 48;
    /// Records found at an address that was handed out again.
    pub const STALE: usize = 56;
    /// Nanoseconds spent on samples.
    pub const COST: usize = 64;
    /// Stacks in the index.
    pub const STACKS: usize = 72;
    /// Code objects in the index.
    pub const CODES: usize = 76;
    /// Bytes of the arena in use.
    pub const ARENA_USED: usize = 80;
    /// Programs that the process has been before this one, by `exec`.
    pub const IMAGE: usize = 88;
    /// Minor version of CPython; 0 where there is none.
    pub const PYTHON: usize = 92;
    /// 1 where an agent reports of the process and has not said that it ends: the supervisor has yet to read what it held.
    pub const WATCHED: usize = 96;
    /// Samples in threads that served several backward passes at a time: charged to the one last begun.
    pub const MIXED: usize = 104;
    /// Lines that were ever taken, with the first; 0 where nothing is counted block by block.
    pub const LINES: usize = 112;
    /// Bytes that pymalloc has mapped for small objects since the sampler began.
    pub const ARENAS: usize = 120;
    /// Bytes of the fields.
    pub const BYTES: usize = 128;
}

/// Whose a slot is. With its number, the time at which a process started tells it from every other one; `exec` leaves
/// both as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Process, as the supervisor sees it.
    pub pid: u32,
    /// When it started, in ticks since boot, of which these are the lower bits; 0 where that is not known.
    pub start: u32,
}

impl Owner {
    /// The number of a free slot.
    pub const NOBODY: u64 = 0;
    /// The number of a slot that the supervisor is about to release.
    pub const SUPERVISOR: u64 = u64::MAX;

    /// The owner with this number; `None` where there is none.
    pub fn of(number: u64) -> Option<Self> {
        let is_process = ![Self::NOBODY, Self::SUPERVISOR].contains(&number);
        is_process.then_some(Self { pid: number as u32, start: (number >> 32) as u32 })
    }

    /// As one number.
    pub fn number(self) -> u64 {
        u64::from(self.start) << 32 | u64::from(self.pid)
    }
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Totals by stack: [`TOTAL_BYTES`] each.
pub const TOTALS: usize = HEADER_BYTES;
/// Estimated live bytes, estimated live blocks, variance of the bytes in squared KiB, all bytes ever; each of 64 bits.
pub const TOTAL_BYTES: usize = 32;
/// The totals as they were at the last boundary: sequence lock, boundary, stacks, then live bytes, blocks and variance.
pub const SNAPSHOT: usize = TOTALS + MAX_STACKS * TOTAL_BYTES;
/// Bytes before the rows of a snapshot.
pub const SNAPSHOT_HEAD: usize = 64;
/// Bytes of a row of a snapshot.
pub const SNAPSHOT_ROW: usize = 24;
/// Offsets of stacks in the arena, 32 bits each.
pub const STACK_INDEX: usize = SNAPSHOT + SNAPSHOT_HEAD + MAX_STACKS * SNAPSHOT_ROW;
/// Offsets of code objects in the arena, 32 bits each.
pub const CODE_INDEX: usize = STACK_INDEX + MAX_STACKS * 4;
/// Records of stacks and code objects.
pub const ARENA: usize = CODE_INDEX + MAX_CODES * 4;
/// Where the lines are that count what malloc has handed out: at the end.
pub const LINES: usize = SLOT_BYTES - MAX_LINES * LINE_BYTES;
/// Bytes of the arena.
pub const ARENA_BYTES: usize = LINES - ARENA;

/// Flags of a stack record.
pub mod stack {
    /// There were more frames than are kept.
    pub const TRUNCATED: u32 = 1;
    /// Of the thread that made this one or set it to work.
    pub const BORROWED: u32 = 2;
    /// Of no stack in particular: [`super::OTHERS`].
    pub const OTHERS: u32 = 4;
}

/// Why a process has no Python stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Refusal {
    /// It has.
    None = 0,
    /// The process runs no Python, or has not said so yet.
    NoPython = 1,
    /// This version's frames are not known.
    UnknownVersion = 2,
    /// A known call did not come back as it was made.
    SelfCheck = 3,
    /// Another allocator was loaded first.
    NotFirst = 4,
    /// A build without a global interpreter lock.
    FreeThreaded = 5,
}

impl Refusal {
    /// The refusal with this number.
    pub fn of(number: u32) -> Option<Self> {
        let all = [
            Self::None,
            Self::NoPython,
            Self::UnknownVersion,
            Self::SelfCheck,
            Self::NotFirst,
            Self::FreeThreaded,
        ];
        all.get(number as usize).copied()
    }
}

/// One frame: which code object, and how far into its bytecode, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Position in the index of code objects.
    pub code: u32,
    /// Offset of the instruction in bytes.
    pub offset: u32,
}

/// A code object as it was copied when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// First line.
    pub first_line: u32,
    /// File name.
    pub file: String,
    /// Qualified name; before 3.11 the name.
    pub name: String,
    /// The table of lines, as its version writes it.
    pub lines: Vec<u8>,
}

/// A stack, innermost frame first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// [`stack`].
    pub flags: u32,
    /// The frames.
    pub frames: Vec<Frame>,
}

/// What one stack has allocated and not given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// Estimated bytes.
    pub bytes: u64,
    /// Estimated blocks.
    pub blocks: u64,
    /// Variance of the bytes, in squared KiB.
    pub variance: u64,
}

impl Total {
    /// Standard deviation of the estimated bytes, in bytes: twice that to each side holds the truth in 95 of 100 cases.
    ///
    /// The plain one is too short for a few samples, from which a large amount is easily taken for a small one: then it
    /// is that of the score interval of a Poisson count, in units of what a sample stands for. (E. B. Wilson, "Probable
    /// inference", 1927.) Its quantile is chosen so that both sides together miss 5 %.
    pub fn deviation(&self) -> u64 {
        const NORMAL_95: f64 = 1.96;
        const SCORE: f64 = 1.75;
        let (bytes, variance) = (self.bytes as f64, self.variance as f64 * 1024.0 * 1024.0);
        if self.bytes == 0 {
            return 0;
        }
        let shift = SCORE * SCORE * variance / bytes / 2.0;
        let side = shift + (SCORE * SCORE * variance + shift * shift).sqrt();
        variance.sqrt().max(side / NORMAL_95) as u64
    }
}

/// A slot as a reader sees it: bytes that were copied out of the shared memory, from its beginning on.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a>(&'a [u8]);

impl<'a> Slot<'a> {
    /// The slot in these bytes; `None` where nobody owns it, or somebody with another layout.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let slot = Self(bytes);
        (slot.long(header::MAGIC)? == MAGIC).then_some(slot)
    }

    fn word(self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn long(self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.0.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    /// A number of the header, of 32 bits.
    pub fn field(self, at: usize) -> u32 {
        self.word(at).unwrap_or(0)
    }

    /// A number of the header, of 64 bits.
    pub fn count(self, at: usize) -> u64 {
        self.long(at).unwrap_or(0)
    }

    /// All bytes that a stack has ever allocated, estimated.
    pub fn allocated(self, id: u32) -> u64 {
        self.long(TOTALS + id as usize % MAX_STACKS * TOTAL_BYTES + 24).unwrap_or(0)
    }

    /// A stack.
    pub fn stack(self, id: u32) -> Option<Stack> {
        let at = self.record(STACK_INDEX, id, MAX_STACKS)?;
        let (count, flags) = (self.word(at)? as usize, self.word(at + 4)?);
        let frame = |index: usize| {
            let at = at + 8 + index * 8;
            Some(Frame { code: self.word(at)?, offset: self.word(at + 4)? })
        };
        Some(Stack { flags, frames: (0..count.min(MAX_FRAMES)).map(frame).collect::<Option<_>>()? })
    }

    /// A code object.
    pub fn code(self, id: u32) -> Option<Code> {
        let at = self.record(CODE_INDEX, id, MAX_CODES)?;
        let length = |index: usize| Some(self.word(at + 4 + index * 4)? as usize);
        let (file, name, lines) = (length(0)?, length(1)?, length(2)?);
        let start = at + 16;
        let bytes = |from: usize, length: usize| self.0.get(from..from.checked_add(length)?);
        let text =
            |from: usize, length: usize| Some(String::from_utf8_lossy(bytes(from, length)?).into_owned());
        Some(Code {
            first_line: self.word(at)?,
            file: text(start, file)?,
            name: text(start + file, name)?,
            lines: bytes(start + file + name, lines)?.to_vec(),
        })
    }

    fn record(self, index: usize, id: u32, most: usize) -> Option<usize> {
        let offset = (id as usize) < most;
        // Offsets are kept plus one: 0 is nothing.
        let offset = offset.then(|| self.word(index + id as usize * 4)).flatten()?.checked_sub(1)?;
        Some(ARENA + offset as usize)
    }

    /// What every stack holds now.
    pub fn totals(self) -> Vec<Total> {
        let rows = self.field(header::STACKS) as usize;
        let row = |id: usize| {
            let at = TOTALS + id * TOTAL_BYTES;
            Total { bytes: self.signed(at), blocks: self.signed(at + 8), variance: self.signed(at + 16) }
        };
        (0..rows.min(MAX_STACKS)).map(row).collect()
    }

    /// The boundary of the last snapshot and what every stack held there; `None` where there is none, or one is being made.
    pub fn snapshot(self) -> Option<(u32, Vec<Total>)> {
        let lock = self.long(SNAPSHOT)?;
        if lock == 0 || lock % 2 == 1 {
            return None;
        }
        let (boundary, rows) = (self.long(SNAPSHOT + 8)?, self.long(SNAPSHOT + 16)? as usize);
        let row = |id: usize| {
            let at = SNAPSHOT + SNAPSHOT_HEAD + id * SNAPSHOT_ROW;
            Total { bytes: self.signed(at), blocks: self.signed(at + 8), variance: self.signed(at + 16) }
        };
        Some((boundary as u32, (0..rows.min(MAX_STACKS)).map(row).collect()))
    }

    /// A number that two threads may have taken below zero for a moment.
    fn signed(self, at: usize) -> u64 {
        u64::try_from(self.long(at).unwrap_or(0).cast_signed()).unwrap_or(0)
    }
}

impl Code {
    /// Line of the instruction at this offset in bytes; the first line where the table does not know it.
    ///
    /// `minor` is the version of Python 3: until 3.10 the table has pairs of deltas (`Objects/lnotab_notes.txt`), from 3.11
    /// on entries of varying length (`Objects/locations.md`).
    pub fn line(&self, minor: u32, offset: u32) -> u32 {
        let found = if minor < 11 { self.by_pairs(offset) } else { self.by_entries(offset) };
        found.unwrap_or(self.first_line)
    }

    fn by_pairs(&self, offset: u32) -> Option<u32> {
        /// Stands for "no line".
        const NONE: i8 = -128;
        let (mut line, mut end) = (self.first_line, 0);
        for pair in self.lines.chunks_exact(2) {
            end += u32::from(pair[0]);
            let delta = pair[1].cast_signed();
            if delta != NONE {
                line = line.checked_add_signed(delta.into())?;
            }
            if offset < end {
                return (delta != NONE).then_some(line);
            }
        }
        None
    }

    fn by_entries(&self, offset: u32) -> Option<u32> {
        let mut bytes = self.lines.iter().copied();
        let (mut line, mut end) = (self.first_line, 0);
        loop {
            let head = bytes.next()?;
            // Two bytes per unit of code.
            end += (u32::from(head & 7) + 1) * 2;
            let kind = (head >> 3) & 15;
            let (delta, more) = match kind {
                0..=9 => (0, 1),
                10..=12 => (i32::from(kind) - 10, 2),
                13 => (signed(&mut bytes)?, 0),
                14 => {
                    let delta = signed(&mut bytes)?;
                    (0..3).try_for_each(|_| unsigned(&mut bytes).map(drop))?;
                    (delta, 0)
                }
                _ => (0, 0),
            };
            for _ in 0..more {
                bytes.next()?;
            }
            line = line.checked_add_signed(delta)?;
            if offset < end {
                return (kind != 15).then_some(line);
            }
        }
    }
}

/// Six bits per byte, the lowest first; the seventh says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let (mut value, mut shift) = (0_u32, 0);
    loop {
        let byte = bytes.next()?;
        value |= u32::from(byte & 63).checked_shl(shift)?;
        if byte & 64 == 0 {
            return Some(value);
        }
        shift += 6;
    }
}

/// The lowest bit is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i32> {
    let value = unsigned(bytes)?;
    let size = (value >> 1).cast_signed();
    Some(if value & 1 == 1 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(first_line: u32, lines: &[u8]) -> Code {
        Code { first_line, file: String::new(), name: String::new(), lines: lines.to_vec() }
    }

    #[test]
    fn lines_of_3_10() {
        // Four bytes of line 10, two without one, two of line 12, two of line 11.
        let code = code(10, &[4, 0, 2, 128, 2, 2, 2, 255]);
        let lines: Vec<u32> = [0, 2, 4, 6, 8, 10].map(|offset| code.line(10, offset)).into();
        assert_eq!(lines, [10, 10, 10, 12, 11, 10]);
    }

    #[test]
    fn lines_since_3_11() {
        // RESUME on the first line, two units one line on, one unit in the long form 100 lines on, one in none, one back.
        let code = code(
            7,
            &[
                0x80,
                0x00,
                0x80 | 11 << 3 | 1,
                0,
                9,
                0x80 | 14 << 3,
                0x40 | 8,
                3,
                0,
                1,
                1,
                0x80 | 15 << 3,
                0x80 | 13 << 3,
                3,
            ],
        );
        let lines: Vec<u32> = [0, 2, 4, 6, 8, 10, 12].map(|offset| code.line(11, offset)).into();
        assert_eq!(lines, [7, 8, 8, 108, 7, 107, 7]);
    }

    #[test]
    fn torn_tables_end_at_the_first_line() {
        for length in 0..4 {
            let whole = [0x80 | 14 << 3, 0x7f, 0x7f, 0x7f, 0x7f];
            assert_eq!(code(3, &whole[..length]).line(12, 0), 3);
        }
    }

    #[test]
    fn few_samples_are_surer_to_be_too_few_than_their_variance_says() {
        let deviation = |samples: u64| {
            let (bytes, variance) = (samples << 19, samples << 18);
            Total { bytes, blocks: samples, variance }.deviation() as f64 / f64::from(1 << 19)
        };
        let check = |samples: u64, expected: f64| {
            assert!((deviation(samples) - expected).abs() < 0.01, "{samples}: {}", deviation(samples));
        };
        check(0, 0.0);
        check(1, 1.97);
        check(9, 3.58);
        check(100, 10.0);
        assert_eq!(Total { bytes: 1 << 30, blocks: 9, variance: 0 }.deviation(), 0, "exact");
    }

    #[test]
    fn an_owner_is_one_number() {
        let owner = Owner { pid: 77, start: u32::MAX };
        assert_eq!(Owner::of(owner.number()), Some(owner));
        assert_eq!([Owner::NOBODY, Owner::SUPERVISOR].map(Owner::of), [None, None]);
    }

    #[test]
    fn a_slot_of_zeros_belongs_to_nobody() {
        assert!(Slot::new(&[0; 4096]).is_none());
        assert!(Slot::new(&[]).is_none());
        let mut bytes = vec![0; ARENA + 64];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        let slot = Slot::new(&bytes).expect("has the mark");
        assert_eq!((slot.stack(0), slot.code(u32::MAX), slot.snapshot()), (None, None, None));
        assert_eq!(slot.totals(), []);
    }
}
