//! The process's slot of the shared memory: claimed at its first sample, written by all of its threads.

use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use caulk_wire::heap::{
    ARENA, ARENA_BYTES, CODE_INDEX, HEADER_BYTES, INTERVAL, MAGIC, MAX_CODES, MAX_STACKS, Refusal,
    SLOT_BYTES, SLOTS, SNAPSHOT, SNAPSHOT_HEAD, SNAPSHOT_ROW, STACK_INDEX, TOTAL_BYTES, TOTALS, TURNED_AWAY,
    header,
};

use crate::live::Record;
use crate::started::started;
use crate::{live, maps, python, real, stacks};

/// Mean bytes between samples at the beginning.
static BEGINNING: AtomicU64 = AtomicU64::new(INTERVAL);
/// Shortest mean that is taken from the environment.
const SHORTEST: u64 = 1 << 10;

/// Other libraries' constructors may run before ours.
const LOADING: u8 = 0;
const OFF: u8 = 1;
const LAZY: u8 = 2;
/// One thread is claiming a slot.
const CLAIMING: u8 = 3;
const ON: u8 = 4;

static STATE: AtomicU8 = AtomicU8::new(LOADING);
static SLOT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// This process: in a child of `vfork`, that whose memory it runs in.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Path of the shared memory, kept so that a forked child need not read its environment.
const PATH_BYTES: usize = 64;
static PATH: [AtomicU8; PATH_BYTES] = [const { AtomicU8::new(0) }; PATH_BYTES];

/// The slot of this process.
#[derive(Clone, Copy)]
pub(crate) struct Segment(NonNull<u8>);

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nothing is sampled in this process.
    Off,
    /// There may be one in a moment.
    Soon,
}

/// Looks whether this process is to be sampled: it runs Python, on the allocator that is behind the hooks, and there is
/// memory to write to.
pub(crate) fn start() {
    let state = if is_meant() { LAZY } else { OFF };
    remember_process();
    STATE.store(state, Ordering::Release);
}

fn is_meant() -> bool {
    // SAFETY: a name that ends with zero; at this time there is one thread.
    let path = unsafe { libc::getenv(c"CAULK_HEAP".as_ptr()) };
    if path.is_null() || !real::is_glibc() || !python::is_there() || !real::is_first() {
        return false;
    }
    // SAFETY: a string of the environment.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    for (place, byte) in PATH.iter().zip(path) {
        place.store(*byte, Ordering::Relaxed);
    }
    if let Some(wanted) = number(c"CAULK_HEAP_INTERVAL").filter(|wanted| *wanted > 0) {
        BEGINNING.store(wanted.max(SHORTEST), Ordering::Relaxed);
    }
    path.len() < PATH_BYTES
}

/// A number in the environment; `None` where there is none, or something else.
fn number(name: &CStr) -> Option<u64> {
    // SAFETY: a name that ends with zero; at this time there is one thread.
    let text = unsafe { libc::getenv(name.as_ptr()) };
    if text.is_null() {
        return None;
    }
    // SAFETY: a string of the environment.
    let digits = unsafe { CStr::from_ptr(text) }.to_bytes().iter();
    digits.copied().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

fn remember_process() {
    // SAFETY: no pointers.
    PROCESS.store(unsafe { libc::getpid() }.cast_unsigned(), Ordering::Relaxed);
}

/// A forked child has no slot yet: what it inherits is its parent's. `idle`: nobody is using that here.
pub(crate) fn start_anew(idle: bool) {
    remember_process();
    let inherited = SLOT.swap(ptr::null_mut(), Ordering::Relaxed);
    if let Some(inherited) = NonNull::new(inherited).filter(|_| idle) {
        // SAFETY: as the caller says.
        unsafe { maps::unmap(inherited, SLOT_BYTES) };
    }
    if STATE.load(Ordering::Relaxed) != OFF {
        STATE.store(LAZY, Ordering::Relaxed);
    }
}

/// The slot, where there is one.
pub(crate) fn active() -> Option<Segment> {
    NonNull::new(SLOT.load(Ordering::Acquire)).map(Segment)
}

/// The slot; claims one for the first who asks.
///
/// # Errors
/// Why there is none.
pub(crate) fn current() -> Result<Segment, Absent> {
    match STATE.load(Ordering::Acquire) {
        ON => active().ok_or(Absent::Off),
        LAZY => {
            let taken = STATE.compare_exchange(LAZY, CLAIMING, Ordering::Acquire, Ordering::Relaxed);
            taken.map_err(|_| Absent::Soon)?;
            let slot = claim();
            SLOT.store(slot.map_or(ptr::null_mut(), |slot| slot.0.as_ptr()), Ordering::Release);
            STATE.store(if slot.is_some() { ON } else { OFF }, Ordering::Release);
            slot.ok_or(Absent::Off)
        }
        OFF => Err(Absent::Off),
        _ => Err(Absent::Soon),
    }
}

fn claim() -> Option<Segment> {
    let mut path = [0_u8; PATH_BYTES + 1];
    for (byte, place) in path.iter_mut().zip(&PATH) {
        *byte = place.load(Ordering::Relaxed);
    }
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a path that ends with zero.
    let file =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr().cast::<c_char>(), flags) };
    let file = i32::try_from(file).ok().filter(|file| *file >= 0)?;
    let owner = Owner::this();
    let of_predecessor = (0..SLOTS).find(|index| owner.has(file, *index));
    let slot = match of_predecessor {
        Some(index) => maps::shared(SLOT_BYTES, file, index * SLOT_BYTES).map(Segment),
        None => (0..SLOTS).find_map(|index| try_claim(file, index, &owner)),
    };
    if slot.is_none() {
        turn_away(file);
    }
    // SAFETY: opened above.
    unsafe { libc::syscall(libc::SYS_close, file) };
    let slot = slot?;
    if of_predecessor.is_some() {
        slot.begin_anew();
    }
    if !(live::start() && stacks::start(slot)) {
        return None;
    }
    slot.set_interval(BEGINNING.load(Ordering::Relaxed));
    slot.read_by(python::minor(), python::refusal());
    slot.long(header::MAGIC).store(MAGIC, Ordering::Release);
    Some(slot)
}

/// Whose a slot is. A program that the process was before this one has left its slot behind.
struct Owner {
    pid: u32,
    start: u64,
}

impl Owner {
    fn this() -> Self {
        let pid = PROCESS.load(Ordering::Relaxed);
        Self { pid, start: started(pid) }
    }

    /// Is the slot this process's already? Looked up without touching memory of slots that nobody uses.
    fn has(&self, file: i32, index: usize) -> bool {
        let read = |at: usize, bytes: &mut [u8]| {
            let at = index * SLOT_BYTES + at;
            // SAFETY: as much room as is said.
            let read = unsafe { libc::syscall(libc::SYS_pread64, file, bytes.as_mut_ptr(), bytes.len(), at) };
            usize::try_from(read) == Ok(bytes.len())
        };
        let (mut pid, mut start) = ([0; 4], [0; 8]);
        let known = read(header::PID, &mut pid) && read(header::START, &mut start);
        let same = u32::from_ne_bytes(pid) == self.pid && u64::from_ne_bytes(start) == self.start;
        known && same && self.start > 0
    }
}

fn try_claim(file: i32, index: usize, owner: &Owner) -> Option<Segment> {
    let slot = Segment(maps::shared(SLOT_BYTES, file, index * SLOT_BYTES)?);
    let taken = slot.word(header::PID).compare_exchange(0, owner.pid, Ordering::AcqRel, Ordering::Relaxed);
    if taken.is_ok() {
        slot.long(header::START).store(owner.start, Ordering::Relaxed);
        return Some(slot);
    }
    // SAFETY: mapped above and known to nobody else.
    unsafe { maps::unmap(slot.0, SLOT_BYTES) };
    None
}

/// Counts a process for which no slot is left.
fn turn_away(file: i32) {
    let Some(page) = maps::shared(HEADER_BYTES, file, TURNED_AWAY) else { return };
    // SAFETY: a mapping begins at a page, and its numbers are only changed so.
    unsafe { page.cast::<AtomicU32>().as_ref() }.fetch_add(1, Ordering::Relaxed);
    // SAFETY: mapped above and known to nobody else.
    unsafe { maps::unmap(page, HEADER_BYTES) };
}

impl Segment {
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

    /// What the program before this one held went with its memory. Its stacks keep their numbers, unless they take up much
    /// of the room. What was counted of samples stays: it is the process's.
    fn begin_anew(self) {
        self.long(header::MAGIC).store(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.long(SNAPSHOT).store(0, Ordering::Relaxed);
        for stack in 0..self.word(header::STACKS).load(Ordering::Relaxed).min(MAX_STACKS as u32) {
            for field in 0..TOTAL_BYTES / 8 {
                self.total(stack, field).store(0, Ordering::Relaxed);
            }
        }
        if self.is_half_full() {
            self.clear(header::STACKS, STACK_INDEX, MAX_STACKS);
            self.clear(header::CODES, CODE_INDEX, MAX_CODES);
            self.long(header::ARENA_USED).store(0, Ordering::Relaxed);
        }
        self.small_objects(false);
        self.word(header::IMAGE).fetch_add(1, Ordering::Relaxed);
    }

    fn is_half_full(self) -> bool {
        let count = |at: usize| self.word(at).load(Ordering::Relaxed) as usize;
        let arena = self.long(header::ARENA_USED).load(Ordering::Relaxed) as usize;
        count(header::STACKS) > MAX_STACKS / 2
            || count(header::CODES) > MAX_CODES / 2
            || arena > ARENA_BYTES / 2
    }

    fn clear(self, count: usize, index: usize, most: usize) {
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
        let areas = [HEADER_BYTES, stacks * TOTAL_BYTES, stacks * snapshot, stacks * 4, codes * 4, arena];
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
