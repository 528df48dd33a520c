//! What processes have in use, from outside: the sums that their samplers keep at every allocation, a few numbers each.
//!
//! Nothing is asked of the process, which may be stuck in C, stopped or dead.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use caulk_core::Counted;
use caulk_core::wire::heap::{InUse, LINE_BYTES, LINES, MAGIC, MAX_LINES, Owner, header};

/// What every process has in use that has one of these slots and counts, by its number: of two that had the same one, the
/// later.
pub(super) fn of_all(memory: &File, slots: impl Iterator<Item = u64>) -> BTreeMap<u32, Counted> {
    let mut all: Vec<(Owner, Counted)> = slots.filter_map(|slot| read(memory, slot)).collect();
    all.sort_unstable_by_key(|(owner, _)| owner.start);
    all.into_iter().map(|(owner, counted)| (owner.pid, counted)).collect()
}

/// Whose a slot is, and what that process has in use; `None` where nothing is counted.
pub(super) fn read(memory: &File, slot: u64) -> Option<(Owner, Counted)> {
    let mut head = [0; header::BYTES];
    memory.read_exact_at(&mut head, slot).ok()?;
    let long = |at: usize| head[at..at + 8].try_into().ok().map(u64::from_ne_bytes);
    let owner = Owner::of(long(header::OWNER)?).filter(|_| long(header::MAGIC) == Some(MAGIC))?;
    let taken = u32::from_ne_bytes(head[header::LINES..][..4].try_into().ok()?) as usize;
    if taken == 0 {
        return None;
    }
    let mut lines = vec![0; taken.min(MAX_LINES) * LINE_BYTES];
    memory.read_exact_at(&mut lines, slot + LINES as u64).ok()?;
    let InUse { bytes, blocks, .. } = InUse::of_lines(&lines);
    Some((owner, Counted { malloc_bytes: bytes, blocks, arena_bytes: long(header::ARENAS)? }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use caulk_core::wire::heap::{SLOT_BYTES, line};

    use super::super::Heaps;
    use super::*;

    fn write(heaps: &Heaps, index: usize, owner: Owner, lines: &[[i64; 2]]) {
        let slot = (index * SLOT_BYTES) as u64;
        let put = |at: usize, data: [u8; 8]| heaps.memory.write_all_at(&data, slot + at as u64).unwrap();
        put(header::MAGIC, MAGIC.to_ne_bytes());
        put(header::OWNER, owner.number().to_ne_bytes());
        put(header::LINES, (lines.len() as u64).to_ne_bytes());
        put(header::ARENAS, (1_u64 << 20).to_ne_bytes());
        for (index, [bytes, blocks]) in lines.iter().enumerate() {
            put(LINES + index * LINE_BYTES + line::BYTES, bytes.to_ne_bytes());
            put(LINES + index * LINE_BYTES + line::BLOCKS, blocks.to_ne_bytes());
        }
    }

    #[test]
    fn a_process_has_the_sum_of_its_lines_in_use() {
        let heaps = Heaps::open().unwrap();
        write(&heaps, 5, Owner { pid: 77, start: 9 }, &[[1000, 0], [5000, 7], [-2000, -3]]);
        write(&heaps, 6, Owner { pid: 77, start: 8 }, &[[1, 1]]);
        // On an allocator that nobody counts on.
        write(&heaps, 7, Owner { pid: 78, start: 8 }, &[]);
        let counted = Counted { malloc_bytes: 4000, blocks: 4, arena_bytes: 1 << 20 };
        assert_eq!(heaps.in_use(), BTreeMap::from([(77, counted)]));
    }
}
