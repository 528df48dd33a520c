//! Where the slots begin, and numbers in them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use caulk_core::wire::heap::{SLOT_BYTES, SLOTS};

/// Where the slots begin.
pub(super) fn slots() -> impl Iterator<Item = u64> {
    (0..SLOTS).map(|index| (index * SLOT_BYTES) as u64)
}

pub(super) fn word(memory: &File, at: u64) -> io::Result<u32> {
    let mut bytes = [0; 4];
    memory.read_exact_at(&mut bytes, at)?;
    Ok(u32::from_ne_bytes(bytes))
}

pub(super) fn long(memory: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_ne_bytes(bytes))
}
