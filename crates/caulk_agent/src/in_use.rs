//! Bytes in use, as the process's own allocators count them, beside what is resident.
//!
//! Where the sampler counts what malloc hands out ([`Source::Sums`]), every boundary has a figure, for microseconds. What malloc
//! keeps free is known to malloc alone, at a price that grows with it: that is asked now and then.

mod malloc;
mod mimalloc;
mod source;
mod spacing;

use std::os::raw::{c_char, c_int, c_void};

use std::time::Duration;

use caulk_wire::Unit;
use pyo3::prelude::*;

pub(crate) use self::malloc::Malloc;
use self::mimalloc::Mimalloc;
use self::source::Source;
use self::spacing::{Due, Now, Spacing};
use crate::budget::{Budget, RESERVE};
use crate::own;
use crate::stopwatch::{Stopwatch, monotonic, ordinary, process_time};
use crate::symbols::find;

/// One reading of the process's memory, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// What malloc says. What the agent itself holds is not malloc's.
    pub(crate) malloc: Malloc,
    /// Is what malloc has handed out of now? Else it is of the last time that it was asked.
    pub(crate) fresh: bool,
    /// Is what it keeps free of now, too?
    pub(crate) detailed: bool,
    /// Blocks of pymalloc (a count).
    pub(crate) small_blocks: u64,
    /// Shared memory mapped.
    pub(crate) shm: u64,
    /// Resident set size.
    pub(crate) rss: u64,
    /// Highest resident set size of the process's life.
    pub(crate) highest_rss: u64,
    /// Resident pages of mapped files.
    pub(crate) file: u64,
    /// Private memory that can be written to (`VmData`), touched or not.
    pub(crate) data: u64,
    /// Threads (a count).
    pub(crate) threads: u32,
    /// Open file descriptors (a count).
    pub(crate) fds: u32,
}

impl Reading {
    /// How far memory has stood above what is held now, since the process began: what is freed but not given back, or
    /// what was resident at its highest.
    pub(crate) fn headroom(&self) -> u64 {
        self.malloc.free.max(self.highest_rss.saturating_sub(self.rss))
    }

    /// Private memory that is neither malloc's nor the agent's; 0 where malloc does not tell what it has mapped, or was not
    /// asked now.
    pub(crate) fn mapped(&self) -> u64 {
        let Malloc { heap, singly, .. } = self.malloc;
        if heap == 0 || !self.detailed { 0 } else { self.data.saturating_sub(heap + singly + own::mapped()) }
    }
}

/// `struct mallinfo2` of glibc 2.33 and later (malloc.h).
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Mallinfo2 {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

type Statistics = unsafe extern "C" fn() -> Mallinfo2;
type NarrowStatistics = unsafe extern "C" fn() -> libc::mallinfo;
type Mallctl = unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
type Property = unsafe extern "C" fn(*const c_char, *mut usize) -> c_int;

/// Who answers for malloc in this process.
#[derive(Clone, Copy)]
enum Allocator {
    Glibc2(Statistics),
    /// glibc before 2.33: the fields are 32 bits wide and wrap.
    Glibc(NarrowStatistics),
    Jemalloc(Mallctl),
    Tcmalloc(Property),
    Mimalloc(Mimalloc),
    Unknown,
}

/// Reads the memory of the process; keeps what is needed to unwrap narrow counters.
pub(crate) struct Meter {
    source: Source,
    allocator: Allocator,
    wrapped: [Unwrap; 4],
    last: Malloc,
    cost: Duration,
    /// For processes without the sums: when to ask malloc.
    spacing: Spacing,
    /// CPU time of the process from which on malloc may be asked again beside the sums.
    next: Duration,
    /// The sums were found not to tell, which is still to be said.
    lost: bool,
}

/// What a reading may always cost.
const CHEAP: Duration = Duration::from_millis(3);
/// ... and what it may cost if it only measures the bytes that malloc keeps free.
const CHEAP_BESIDE: Duration = Duration::from_micros(300);
/// ... and what it is taken to cost for each block in use, before it was asked: where one is free beside every block, three
/// times as much, and hardly anything where none is.
const PER_BLOCK: Duration = Duration::from_nanos(50);
/// CPU time of the process between two of these, in times of what one costs.
const REST: u32 = 100;

/// A 32-bit counter made wide again: between two readings it moves by less than 2 GB.
#[derive(Default, Clone, Copy)]
struct Unwrap {
    last: Option<u32>,
    total: i64,
}

impl Unwrap {
    fn read(&mut self, raw: c_int) -> u64 {
        let raw = raw as u32;
        // Nothing is known before the first reading: it is no difference.
        let moved = self.last.map_or(i64::from(raw), |last| i64::from(raw.wrapping_sub(last) as i32));
        self.total += moved;
        self.last = Some(raw);
        self.total.max(0) as u64
    }
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            source: Source::find(),
            allocator: Allocator::find(),
            wrapped: [Unwrap::default(); 4],
            last: Malloc::default(),
            cost: Duration::ZERO,
            spacing: Spacing::default(),
            next: Duration::ZERO,
            lost: false,
        }
    }

    /// Bytes that malloc has handed out, by whoever tells.
    pub(crate) fn used(&mut self) -> u64 {
        self.source.counted().map_or_else(|| self.malloc().used, |counted| counted.used)
    }

    /// Were the sums lost since this was asked last?
    pub(crate) fn has_lost_sums(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }

    /// Does the allocator say anything at all?
    pub(crate) fn knows(&self) -> bool {
        !matches!(self.allocator, Allocator::Unknown)
    }

    /// What it cost to ask the allocator last, as on an ordinary machine.
    pub(crate) fn cost(&self) -> Duration {
        self.cost
    }

    pub(crate) fn allocator_name(&self) -> &'static str {
        match self.allocator {
            Allocator::Glibc2(_) | Allocator::Glibc(_) => "glibc",
            Allocator::Jemalloc(_) => "jemalloc",
            Allocator::Tcmalloc(_) => "tcmalloc",
            Allocator::Mimalloc(_) => "mimalloc",
            Allocator::Unknown => "unknown",
        }
    }

    /// What malloc says; about a millisecond where there are many arenas.
    pub(crate) fn malloc(&mut self) -> Malloc {
        match self.allocator {
            Allocator::Glibc2(mallinfo2) => {
                // SAFETY: takes no arguments; locks each arena in turn.
                let info = unsafe { mallinfo2() };
                let (singly, free) = (info.hblkhd as u64, info.fordblks as u64);
                let used = info.uordblks as u64 + singly;
                Malloc { used, free, heap: info.arena as u64, top: info.keepcost as u64, singly }
            }
            Allocator::Glibc(mallinfo) => {
                // SAFETY: as above.
                let info = unsafe { mallinfo() };
                let [used, singly, free, heap] = &mut self.wrapped;
                let singly = singly.read(info.hblkhd);
                let used = used.read(info.uordblks) + singly;
                let (free, heap) = (free.read(info.fordblks), heap.read(info.arena));
                Malloc { used, free, heap, singly, top: 0 }
            }
            Allocator::Jemalloc(mallctl) => jemalloc(mallctl),
            Allocator::Tcmalloc(property) => {
                let read = |name: &std::ffi::CStr| {
                    let mut value = 0_usize;
                    // SAFETY: a property's name and a place for its value.
                    unsafe { property(name.as_ptr(), &raw mut value) };
                    value as u64
                };
                let used = read(c"generic.current_allocated_bytes");
                Malloc { used, free: read(c"tcmalloc.pageheap_free_bytes"), ..Malloc::default() }
            }
            Allocator::Mimalloc(mimalloc) => mimalloc.read().unwrap_or(self.last),
            Allocator::Unknown => Malloc::default(),
        }
    }

    /// A whole reading.
    ///
    /// A heap with very many free blocks makes malloc's own figures dear: then they are read where [`Spacing`] has it, and
    /// are those of the last reading in between.
    pub(crate) fn read(&mut self, py: Python<'_>, unit: Unit, budget: &mut Budget) -> Reading {
        let now = Now { wall: monotonic(), cpu: ordinary(process_time()) };
        let due = self.due(unit, now, budget);
        let detailed = due != Due::No;
        if detailed {
            let started = Stopwatch::start();
            self.last = self.malloc();
            self.cost = started.work();
            self.next = now.cpu + self.cost * REST;
            self.lost |= self.source.check(self.last.used);
            self.spacing.read(unit, due, now, self.cost);
            if due == Due::Must {
                budget.exempt(self.cost);
            }
        }
        let counted = self.source.counted();
        let malloc = counted.map_or(self.last, |counted| Malloc {
            used: counted.used,
            singly: counted.singly,
            ..self.last
        });
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let bytes = |name: &str| number(name) * 1024;
        Reading {
            malloc,
            fresh: counted.is_some() || detailed,
            detailed,
            small_blocks: small_blocks(py),
            shm: bytes("RssShmem:"),
            rss: bytes("VmRSS:"),
            data: bytes("VmData:"),
            highest_rss: bytes("VmHWM:"),
            file: bytes("RssFile:"),
            threads: number("Threads:") as u32,
            fds: descriptors(),
        }
    }
}

impl Meter {
    /// Is malloc to be asked at this boundary? With the sums, what it keeps free is beside the point: that gets a small share
    /// of the process's time, out of what others leave; but at the ends of epochs as before, where it is cheap.
    fn due(&mut self, unit: Unit, now: Now, budget: &Budget) -> Due {
        let Some(counted) = self.source.counted() else {
            return match self.spacing.pass(unit, now, self.cost) {
                Due::Must => Due::Must,
                _ if self.cost < CHEAP => Due::May,
                Due::May if budget.allows(self.cost, RESERVE) => Due::May,
                _ => Due::No,
            };
        };
        let cost = if self.cost.is_zero() {
            PER_BLOCK * u32::try_from(counted.blocks).unwrap_or(u32::MAX)
        } else {
            self.cost
        };
        let rested = now.cpu >= self.next;
        let cheap = cost < CHEAP_BESIDE || (cost < CHEAP && (unit == Unit::Epoch || rested));
        if cheap || (rested && budget.allows(cost, RESERVE)) { Due::May } else { Due::No }
    }
}

/// Open descriptors: from Linux 6.2 on the size of the folder, before that its entries.
fn descriptors() -> u32 {
    let folder = "/proc/self/fd";
    match std::fs::metadata(folder).map_or(0, |found| found.len()) {
        // The folder itself is open while it is read.
        0 => std::fs::read_dir(folder).map_or(0, |entries| entries.count().saturating_sub(1)) as u32,
        size => size as u32,
    }
}

/// Asks glibc's malloc to give free pages back; resident bytes before and after.
pub(crate) fn trim() -> Option<(u64, u64)> {
    type Trim = unsafe extern "C" fn(usize) -> c_int;
    let found = find(c"malloc_trim")?;
    // SAFETY: glibc's documented signature.
    let trim = unsafe { std::mem::transmute::<*mut c_void, Trim>(found) };
    let before = resident();
    // SAFETY: takes a number; locks each arena in turn.
    unsafe { trim(0) };
    Some((before, resident()))
}

/// Resident set size.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * page.unsigned_abs()
}

/// Bytes handed out by glibc's malloc, for a peak watch; 0 with any other allocator.
pub(crate) fn malloc_now() -> u64 {
    static SOURCE: std::sync::OnceLock<Source> = std::sync::OnceLock::new();
    static FOUND: std::sync::OnceLock<Option<Statistics>> = std::sync::OnceLock::new();
    if let Some(counted) = SOURCE.get_or_init(Source::find).counted() {
        return counted.used;
    }
    let found = FOUND.get_or_init(|| match Allocator::find() {
        Allocator::Glibc2(mallinfo2) => Some(mallinfo2),
        _ => None,
    });
    found.map_or(0, |mallinfo2| {
        // SAFETY: takes no arguments; locks each arena in turn.
        let info = unsafe { mallinfo2() };
        (info.uordblks + info.hblkhd) as u64
    })
}

pub(crate) fn small_blocks(py: Python<'_>) -> u64 {
    // SAFETY: returns a borrowed reference or null.
    let function = unsafe {
        Bound::from_borrowed_ptr_or_opt(py, pyo3::ffi::PySys_GetObject(c"getallocatedblocks".as_ptr()))
    };
    function.and_then(|function| function.call0().ok()?.extract().ok()).unwrap_or(0)
}

fn jemalloc(mallctl: Mallctl) -> Malloc {
    let mut epoch = 1_u64;
    // SAFETY: writing `epoch` refreshes the statistics (jemalloc manual, "epoch").
    unsafe {
        mallctl(c"epoch".as_ptr(), std::ptr::null_mut(), std::ptr::null_mut(), (&raw mut epoch).cast(), 8);
    }
    let read = |name: &std::ffi::CStr| {
        let (mut value, mut size) = (0_usize, size_of::<usize>());
        // SAFETY: a `size_t` statistic and a place for it.
        unsafe {
            mallctl(name.as_ptr(), (&raw mut value).cast(), &raw mut size, std::ptr::null_mut(), 0);
        }
        value as u64
    };
    let (allocated, active) = (read(c"stats.allocated"), read(c"stats.active"));
    Malloc { used: allocated, free: active.saturating_sub(allocated), ..Malloc::default() }
}

impl Allocator {
    fn find() -> Self {
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: a name; looks it up among what is loaded.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // A preloaded allocator answers before libc, whose functions are there all the same.
        if let Some(found) = symbol(c"mallctl") {
            // SAFETY: jemalloc's documented signature.
            return Self::Jemalloc(unsafe { std::mem::transmute::<*mut c_void, Mallctl>(found) });
        }
        if let Some(found) = symbol(c"MallocExtension_GetNumericProperty") {
            // SAFETY: gperftools' documented signature.
            return Self::Tcmalloc(unsafe { std::mem::transmute::<*mut c_void, Property>(found) });
        }
        if let Some(found) = Mimalloc::find() {
            return Self::Mimalloc(found);
        }
        if let Some(found) = symbol(c"mallinfo2") {
            // SAFETY: glibc's documented signature.
            return Self::Glibc2(unsafe { std::mem::transmute::<*mut c_void, Statistics>(found) });
        }
        match symbol(c"mallinfo") {
            Some(found) => {
                // SAFETY: glibc's documented signature.
                Self::Glibc(unsafe { std::mem::transmute::<*mut c_void, NarrowStatistics>(found) })
            }
            None => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_counted_while_it_lives() {
        let mut meter = Meter::new();
        let before = meter.malloc().used;
        // SAFETY: any size may be asked for.
        let block = std::hint::black_box(unsafe { libc::malloc(64 << 20) });
        let during = meter.malloc().used;
        // SAFETY: the block from above.
        unsafe { libc::free(block) };
        let after = meter.malloc().used;
        assert!(during - before >= 64 << 20, "{before} {during}");
        assert!(after < during - (60 << 20), "{during} {after}");
    }

    #[test]
    fn a_narrow_counter_is_made_wide_again() {
        let mut counter = Unwrap::default();
        let mut total = 0_u64;
        for _ in 0..5 {
            total += 1_500_000_000;
            assert_eq!(counter.read(total as u32 as c_int), total);
        }
        total -= 1_000_000_000;
        assert_eq!(counter.read(total as u32 as c_int), total);
        assert_eq!(Unwrap::default().read(3_000_000_000_u32 as c_int), 3_000_000_000);
    }
}
