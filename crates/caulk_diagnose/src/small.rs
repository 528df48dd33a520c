//! Small objects of Python's own allocator: their number is known at every boundary, their size is estimated once.

use caulk_core::wire::{Boundary, HeapLive};

use crate::process::Process;

/// Part of itself within which the size of what was gained must be known, one standard deviation.
const SURE: f64 = 0.25;
/// Sizes that this allocator serves, in bytes.
const SMALLEST: f64 = 16.0;
const LARGEST: f64 = 512.0;
/// Room that arenas may have left, in bytes: a few of them partly filled (CPython, Objects/obmalloc.c: 1 MiB each).
const ROOM: f64 = 2.0 * 1024.0 * 1024.0;

/// What the small objects hold, boundary by boundary.
///
/// The agent multiplies their number by a mean size that it measures when it begins; what a program gains later may be
/// of another size. The heap profile counts all bytes and malloc tells its own: the rest is what the small objects
/// gained. Where it is not sure enough, no more than the arenas that they lie in, and room that these had left. One size for
/// the whole run, so that only their number makes the series rise.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Small {
    gained: Option<Gained>,
}

#[derive(Debug, Clone, Copy)]
struct Gained {
    since: u64,
    bytes_before: f64,
    /// Bytes per block.
    size: f64,
}

impl Small {
    pub(crate) fn of(process: &Process<'_>) -> Self {
        let told = |live: &&HeapLive| process.boundary(live.boundary).is_some_and(|cut| cut.malloc_bytes > 0);
        let mut profiles = process.heaps.iter().copied().filter(told);
        let gained = profiles.next().zip(profiles.next_back()).and_then(|(first, last)| {
            let (before, after) = (process.boundary(first.boundary)?, process.boundary(last.boundary)?);
            let blocks = after.small_blocks as f64 - before.small_blocks as f64;
            let all = last.bytes as f64 - first.bytes as f64;
            let bytes = all - (after.malloc_bytes as f64 - before.malloc_bytes as f64);
            let deviation = (first.deviation as f64).hypot(last.deviation as f64);
            let size = bytes / blocks;
            // More than such a block can be: other memory is among it, which malloc does not count (mappings).
            let can_be = (SMALLEST..(1.0 + SURE) * LARGEST).contains(&size);
            let known = blocks > 0.0 && can_be && deviation <= SURE * bytes;
            // Samples that were left out weigh on the rest: it must be most of what was gained.
            (known && bytes >= 0.5 * all).then_some(Gained {
                since: before.small_blocks,
                bytes_before: before.small_bytes as f64,
                size: size.min(LARGEST),
            })
        });
        Self { gained: gained.or_else(|| by_arenas(process)) }
    }

    /// Their bytes at a boundary.
    pub(crate) fn bytes(&self, boundary: &Boundary) -> f64 {
        self.gained.map_or(boundary.small_bytes as f64, |gained| {
            gained.bytes_before + gained.size * (boundary.small_blocks as f64 - gained.since as f64)
        })
    }
}

/// What was gained, where the agent's mean size puts more into the arenas than there is room for.
fn by_arenas(process: &Process<'_>) -> Option<Gained> {
    let mut known = process.boundaries.iter().filter(|boundary| boundary.arena_bytes > 0);
    let (first, last) = (known.next()?, known.next_back()?);
    let blocks = last.small_blocks as f64 - first.small_blocks as f64;
    let room = last.arena_bytes as f64 - first.arena_bytes as f64 + ROOM;
    let told = last.small_bytes as f64 - first.small_bytes as f64;
    (blocks > 0.0 && told > room).then(|| Gained {
        since: first.small_blocks,
        bytes_before: first.small_bytes as f64,
        size: (room / blocks).clamp(SMALLEST, LARGEST),
    })
}
