//! What the agent calls, found by name, with the interpreter's lock held.

use caulk_wire::heap::{InUse, Refusal};

use crate::python::{self, Raw};
use crate::slot::Segment;
use crate::state::active;
use crate::{arenas, clock, filter, live, mappings, passes, process, pymalloc, real, sums};

/// Finds out how this interpreter's data can be read. 0, or a [`Refusal`].
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_prepare() -> u32 {
    let prepared = if real::is_first() { python::prepare() } else { Err(Refusal::NotFirst) };
    prepared.err().unwrap_or(Refusal::None) as u32
}

/// The calling thread's frames, innermost first, as pairs of code object and offset: their number, at most `most`.
///
/// # Safety
/// `codes` and `offsets` have room for `most`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn caulk_heap_walk(codes: *mut usize, offsets: *mut u32, most: usize) -> usize {
    let mut raw = [Raw::default(); 8];
    let (count, _) = python::walk_unchecked(&mut raw);
    for (index, raw) in raw.iter().take(count.min(most)).enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { codes.add(index).write(raw.code) };
        // SAFETY: as above.
        unsafe { offsets.add(index).write(raw.offset) };
    }
    count.min(most)
}

/// The qualified name of a code object as the sampler reads it: its length in bytes, of which at most `room` are
/// written; `usize::MAX` where it cannot be read.
///
/// # Safety
/// `code` is a code object and `out` has that room.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn caulk_heap_name(code: usize, out: *mut u8, room: usize) -> usize {
    // SAFETY: as promised by the caller.
    let out = unsafe { std::slice::from_raw_parts_mut(out, room) };
    python::qualified_name(code, out).unwrap_or(usize::MAX)
}

/// Says that the agent reports, and that stacks can be read (0), or why not (a [`Refusal`]). Where they can, small objects
/// are sampled too.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_begin(refusal: u32) {
    let refusal = Refusal::of(refusal).unwrap_or(Refusal::SelfCheck);
    python::set_refusal(refusal);
    let small = refusal == Refusal::None && pymalloc::hook();
    if refusal == Refusal::None && pymalloc::hook_arenas() {
        mappings::watch();
    }
    process::watch();
    if let Ok(segment) = process::current() {
        segment.read_by(python::minor(), refusal);
        segment.small_objects(small);
    }
}

/// Bytes of the shared memory that this process has touched, in whole pages: they are no memory of the program's.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_shared() -> usize {
    active().map_or(0, Segment::touched)
}

/// Bytes that pymalloc has mapped for small objects, those from before the sampler began left out; 0 where it has none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_arenas() -> usize {
    arenas::bytes()
}

/// Bytes that malloc has handed out, with their blocks' heads, the blocks, and bytes of those that have a mapping of their
/// own; false where that is not counted. Any thread may ask at any time.
///
/// # Safety
/// `out` has room for three numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn caulk_heap_in_use(out: *mut [u64; 3]) -> bool {
    let sums = sums::all().map(|sums| InUse::of_sums([sums]));
    let Some(InUse { bytes, blocks, singly_bytes }) = sums else { return false };
    // SAFETY: as promised by the caller.
    unsafe { out.write([bytes, blocks, singly_bytes]) };
    true
}

/// Which stack made a block that lives: its number, and in `weight` the bytes that the block stands for. `u32::MAX` where
/// the block was not sampled.
///
/// # Safety
/// `weight` can be written to.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn caulk_heap_maker(block: usize, weight: *mut u64) -> u32 {
    // Most addresses that are asked for are none of a sampled block.
    let known = filter::may_know(block).then(|| live::find(block)).flatten();
    let Some(record) = known else { return u32::MAX };
    // SAFETY: as promised by the caller.
    unsafe { weight.write(record.weight) };
    record.stack
}

/// Has this called some times a second as long as the program allocates, with the interpreter's lock held, from within an
/// allocation; null ends it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_clock(strike: Option<clock::Strike>) {
    clock::set(strike);
}

/// Copies what lives aside, as it is at this boundary; false where nothing is sampled.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_snapshot(boundary: u32) -> bool {
    let segment = active();
    if let Some(segment) = segment {
        segment.snapshot(boundary);
    }
    segment.is_some()
}

/// The calling thread begins a backward pass: other threads may work for it. A ticket for its end.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_lend() -> u32 {
    passes::begin()
}

/// The backward pass with this ticket has ended, on the thread that began it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn caulk_heap_take_back(ticket: u32) {
    passes::end(ticket);
}
