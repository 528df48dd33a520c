//! How far the training is, in shared memory: told by processes that train, looked up by those that work for them.
//!
//! A worker of a data loader or a pool makes no steps. It takes its readings when the process it works for has cut a
//! boundary. All workers of a process have one credit of CPU time, which one of them spends: most do the same work, and
//! what is found in one need not be found in each. Where they do not, it passes on to one whose memory rises. The others
//! have another, for their readings.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use caulk_wire::Unit;
use caulk_wire::board::{BOARD_BYTES, BOARD_VARIABLE, ENTRIES, ENTRY_BYTES, LOOKS, entry, looks};

/// One process's entry; mapped until the process ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry(NonNull<u8>);

// SAFETY: what it points to is shared memory, reached by atomic operations alone.
unsafe impl Send for Entry {}

/// The board; a forked child has its parent's mapping.
struct Board(NonNull<u8>);

// SAFETY: as above.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

/// What a process has told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// One more than the number of the epoch, and of the step, at whose boundary it was last; 0 before the first.
    pub(crate) epoch: u64,
    pub(crate) step: u64,
    /// Optimizer steps then.
    pub(crate) steps: u64,
}

/// The entry of a process that has told something.
pub(crate) fn entry_of(pid: u32) -> Option<Entry> {
    entries()?.find(|entry| entry.pid().load(Ordering::Acquire) == pid)
}

/// The entry of this process, claimed if there is none yet.
pub(crate) fn own_entry() -> Option<Entry> {
    let pid = std::process::id();
    entry_of(pid).or_else(|| {
        let free =
            |entry: &Entry| entry.pid().compare_exchange(0, pid, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        entries()?.find(free)
    })
}

/// How often the supervisor has asked for a look at what processes hold.
pub(crate) fn looks_asked() -> u32 {
    look_word(looks::ASKED).map_or(0, |asked| asked.load(Ordering::Acquire))
}

/// Such a look was taken, and what it found was sent.
pub(crate) fn look_taken() {
    if let Some(taken) = look_word(looks::TAKEN) {
        taken.fetch_add(1, Ordering::Release);
    }
}

fn look_word(at: usize) -> Option<&'static AtomicU32> {
    let board = board()?;
    // SAFETY: within the board, aligned, and never unmapped.
    Some(unsafe { board.byte_add(LOOKS + at).cast().as_ref() })
}

fn board() -> Option<NonNull<u8>> {
    static BOARD: OnceLock<Option<Board>> = OnceLock::new();
    BOARD.get_or_init(Board::open).as_ref().map(|board| board.0)
}

fn entries() -> Option<impl Iterator<Item = Entry>> {
    let board = board()?;
    // SAFETY: within the board.
    Some((0..ENTRIES).map(move |index| Entry(unsafe { board.byte_add(index * ENTRY_BYTES) })))
}

impl Board {
    fn open() -> Option<Self> {
        let path = CString::new(std::env::var(BOARD_VARIABLE).ok()?).ok()?;
        // SAFETY: a path that ends with zero.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if file < 0 {
            return None;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: opened above.
        let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
        // That of a supervisor of another version may be smaller: what is beyond its end must not be touched.
        let mapped = if usize::try_from(length).is_ok_and(|length| length >= BOARD_BYTES) {
            // SAFETY: a new mapping that replaces none.
            unsafe { libc::mmap(std::ptr::null_mut(), BOARD_BYTES, protection, libc::MAP_SHARED, file, 0) }
        } else {
            libc::MAP_FAILED
        };
        // SAFETY: opened above.
        unsafe { libc::close(file) };
        if mapped == libc::MAP_FAILED { None } else { NonNull::new(mapped.cast()).map(Self) }
    }
}

fn lives(pid: u32) -> bool {
    // SAFETY: signal 0 only asks whether the process is there.
    unsafe { libc::kill(pid.cast_signed(), 0) == 0 }
}

impl Entry {
    fn pid(&self) -> &AtomicU32 {
        self.half(entry::PID)
    }

    fn half(&self, at: usize) -> &AtomicU32 {
        // SAFETY: within the entry, aligned, and never unmapped.
        unsafe { self.0.byte_add(at).cast().as_ref() }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { self.0.byte_add(at).cast().as_ref() }
    }

    /// Tells that a boundary is being cut.
    pub(crate) fn tell(self, unit: Unit, index: u64, steps: u64) {
        self.word(entry::STEPS).store(steps, Ordering::Relaxed);
        match unit {
            Unit::Epoch => self.word(entry::EPOCH).store(index + 1, Ordering::Release),
            Unit::Steps => self.word(entry::STEP).store(index + 1, Ordering::Release),
            Unit::Seconds => {}
        }
    }

    pub(crate) fn progress(self) -> Progress {
        Progress {
            epoch: self.word(entry::EPOCH).load(Ordering::Acquire),
            step: self.word(entry::STEP).load(Ordering::Acquire),
            steps: self.word(entry::STEPS).load(Ordering::Relaxed),
        }
    }

    /// CPU time that the agents of this process's workers have spent on their credit, in nanoseconds.
    pub(crate) fn spent(&self) -> &AtomicU64 {
        self.word(entry::SPENT)
    }

    /// What those of its workers have spent that have readings alone, in nanoseconds.
    pub(crate) fn read(&self) -> &AtomicU64 {
        self.word(entry::READ)
    }

    /// Is the credit this worker's to spend? It is the first one's who asks, until that one has ended, or one that `rises`
    /// asks while that one does not.
    pub(crate) fn spends(self, rises: bool) -> bool {
        let own = std::process::id();
        let (spender, risen) = (self.half(entry::SPENDER), self.half(entry::RISES));
        let now = spender.load(Ordering::Relaxed);
        let free = || now == 0 || (rises && risen.load(Ordering::Relaxed) == 0) || !lives(now);
        let take = || spender.compare_exchange(now, own, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let spends = now == own || (free() && take());
        if spends {
            risen.store(rises.into(), Ordering::Relaxed);
        }
        spends
    }

    /// The credit is another worker's to spend, if it was this one's.
    pub(crate) fn give_back(self) {
        let spender = self.half(entry::SPENDER);
        let _ = spender.compare_exchange(std::process::id(), 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credit_passes_on_from_one_that_does_not_rise_to_one_that_does() {
        let mut words = [0_u64; ENTRY_BYTES / 8];
        let entry = Entry(NonNull::from(&mut words).cast());
        assert!(entry.spends(false), "nobody has it yet");
        entry.give_back();
        assert_eq!(entry.half(entry::SPENDER).load(Ordering::Relaxed), 0, "it went its own way");
        assert!(entry.spends(false));
        // SAFETY: always succeeds.
        let other = unsafe { libc::getppid() }.unsigned_abs();
        let held_by_other = |rises: u32| {
            entry.half(entry::SPENDER).store(other, Ordering::Relaxed);
            entry.half(entry::RISES).store(rises, Ordering::Relaxed);
        };
        held_by_other(0);
        assert!(!entry.spends(false), "neither rises");
        assert!(entry.spends(true), "this one rises alone");
        held_by_other(1);
        entry.give_back();
        assert!(!entry.spends(true), "both rise, and it is the other's");
    }
}
