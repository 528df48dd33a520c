//! The process's slot of the shared memory: claimed at its first sample, written by all of its threads.

use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use caulk_wire::heap::{
    ARENA, ARENA_BYTES, CODE_INDEX, HEADER_BYTES, INTERVAL, LINE_BYTES, MAGIC, MAX_CODES, MAX_STACKS,
    Refusal, SLOT_BYTES, SNAPSHOT, SNAPSHOT_HEAD, SNAPSHOT_ROW, STACK_INDEX, TOTAL_BYTES, TOTALS, header,
};

use crate::live::Record;
use crate::{claim, live, maps, pymalloc, python, real, stacks, sums};

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
/// See [`process`].
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// See [`watch`].
static WATCHED: AtomicBool = AtomicBool::new(false);

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

/// Is this process to be sampled, once it allocates?
pub(crate) fn is_meant_to_be() -> bool {
    STATE.load(Ordering::Relaxed) == LAZY
}

/// Mean bytes between samples to begin with.
pub(crate) fn beginning() -> u64 {
    BEGINNING.load(Ordering::Relaxed)
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
    WATCHED.store(false, Ordering::Relaxed);
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
            let slot = claim::claim().filter(|slot| slot.begin());
            SLOT.store(slot.map_or(ptr::null_mut(), |slot| slot.0.as_ptr()), Ordering::Release);
            STATE.store(if slot.is_some() { ON } else { OFF }, Ordering::Release);
            if slot.is_some() {
                sums::hand_on();
            } else {
                sums::give_up();
            }
            slot.ok_or(Absent::Off)
        }
        OFF => Err(Absent::Off),
        _ => Err(Absent::Soon),
    }
}

/// Path of the shared memory, with a zero behind it.
pub(crate) fn path() -> [u8; PATH_BYTES + 1] {
    let mut path = [0_u8; PATH_BYTES + 1];
    for (byte, place) in path.iter_mut().zip(&PATH) {
        *byte = place.load(Ordering::Relaxed);
    }
    path
}

/// This process: in a child of `vfork`, that whose memory it runs in.
pub(crate) fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

/// An agent reports of this process from now on: what its slot holds is read, whenever it ends.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
    active().into_iter().for_each(Segment::watched);
}

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

    /// Makes it one that can be read; false where there is no memory for what goes with it.
    fn begin(self) -> bool {
        if !(live::start() && stacks::start(self)) {
            return false;
        }
        self.set_interval(beginning());
        self.read_by(python::minor(), python::refusal());
        self.tell_arenas(pymalloc::arena_bytes());
        if sums::are_kept() {
            self.begin_lines();
        }
        if WATCHED.load(Ordering::Relaxed) {
            self.watched();
        }
        self.long(header::MAGIC).store(MAGIC, Ordering::Release);
        true
    }

    fn watched(self) {
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
