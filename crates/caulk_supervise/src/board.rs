//! The memory in which training processes say how far they are, for those that work for them.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use caulk_core::wire::board::{BOARD_BYTES, ENTRIES, ENTRY_BYTES, LOOKS, entry, looks};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// The board. Processes map it through the supervisor's own entry in `/proc`.
pub(crate) struct Board {
    memory: File,
    /// How often a look was asked for.
    asked: u32,
}

impl Board {
    /// Makes an empty one.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open() -> io::Result<Self> {
        let memory = memfd_create("caulk-board", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, BOARD_BYTES as u64)?;
        Ok(Self { memory: memory.into(), asked: 0 })
    }

    /// The path by which processes open it: an entry of the supervisor, or of a process that has the same descriptors.
    pub(crate) fn path(&self, of: u32) -> String {
        format!("/proc/{of}/fd/{}", self.memory.as_raw_fd())
    }

    /// The descriptor that a process must keep for that.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.memory.as_raw_fd()
    }

    /// Asks every process for a look at what it holds, at its next step or when it next allocates.
    pub(crate) fn ask_for_look(&mut self) {
        self.asked = self.asked.wrapping_add(1);
        let mut words = [0; 8];
        words[looks::ASKED..][..4].copy_from_slice(&self.asked.to_ne_bytes());
        _ = self.memory.write_all_at(&words, LOOKS as u64);
    }

    /// How many processes have taken it.
    pub(crate) fn looks_taken(&self) -> u32 {
        let mut word = [0; 4];
        let read = self.memory.read_exact_at(&mut word, (LOOKS + looks::TAKEN) as u64);
        read.map_or(0, |()| u32::from_ne_bytes(word))
    }

    /// Frees the entry of a process that has ended, for others.
    pub(crate) fn release(&self, pid: u32) {
        let mut all = [0; BOARD_BYTES];
        if self.memory.read_exact_at(&mut all, 0).is_err() {
            return;
        }
        let owner = |index: usize| all[index * ENTRY_BYTES + entry::PID..][..4] == pid.to_ne_bytes();
        if let Some(index) = (0..ENTRIES).find(|index| owner(*index)) {
            _ = self.memory.write_all_at(&[0; ENTRY_BYTES], (index * ENTRY_BYTES) as u64);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_free_again_when_its_process_has_ended() {
        let board = Board::open().unwrap();
        let at = (3 * ENTRY_BYTES) as u64;
        board.memory.write_all_at(&77_u32.to_ne_bytes(), at).unwrap();
        board.memory.write_all_at(&5_u64.to_ne_bytes(), at + entry::EPOCH as u64).unwrap();
        board.release(78);
        let mut bytes = [0; ENTRY_BYTES];
        board.memory.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes[..4], 77_u32.to_ne_bytes());
        board.release(77);
        board.memory.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes, [0; ENTRY_BYTES]);
    }

    #[test]
    fn looks_are_counted_from_the_last_time_that_they_were_asked_for() {
        let mut board = Board::open().unwrap();
        let taken = (LOOKS + looks::TAKEN) as u64;
        for asked in [1_u32, 2] {
            board.ask_for_look();
            assert_eq!(board.looks_taken(), 0);
            board.memory.write_all_at(&3_u32.to_ne_bytes(), taken).unwrap();
            assert_eq!(board.looks_taken(), 3);
            let mut word = [0; 4];
            board.memory.read_exact_at(&mut word, LOOKS as u64).unwrap();
            assert_eq!(word, asked.to_ne_bytes());
        }
    }
}
