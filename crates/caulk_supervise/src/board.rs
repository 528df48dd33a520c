//! The memory in which training processes say how far they are, for those that work for them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use caulk_core::wire::board::{BOARD_BYTES, ENTRIES, ENTRY_BYTES, entry};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// The board. Processes map it through the supervisor's own entry in `/proc`.
pub(crate) struct Board(File);

impl Board {
    /// Makes an empty one.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open() -> io::Result<Self> {
        let memory = memfd_create("caulk-board", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, BOARD_BYTES as u64)?;
        Ok(Self(memory.into()))
    }

    /// The path by which processes open it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Frees the entry of a process that has ended, for others.
    pub(crate) fn release(&self, pid: u32) {
        let mut all = [0; BOARD_BYTES];
        if self.0.read_exact_at(&mut all, 0).is_err() {
            return;
        }
        let owner = |index: usize| all[index * ENTRY_BYTES + entry::PID..][..4] == pid.to_ne_bytes();
        if let Some(index) = (0..ENTRIES).find(|index| owner(*index)) {
            _ = self.0.write_all_at(&[0; ENTRY_BYTES], (index * ENTRY_BYTES) as u64);
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
        board.0.write_all_at(&77_u32.to_ne_bytes(), at).unwrap();
        board.0.write_all_at(&5_u64.to_ne_bytes(), at + entry::EPOCH as u64).unwrap();
        board.release(78);
        let mut bytes = [0; ENTRY_BYTES];
        board.0.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes[..4], 77_u32.to_ne_bytes());
        board.release(77);
        board.0.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes, [0; ENTRY_BYTES]);
    }
}
