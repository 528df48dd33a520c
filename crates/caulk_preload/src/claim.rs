//! Which slot becomes this process's: its own from before it became another program, else a free one, else that of a
//! process that has ended and of which nobody will ask.
//!
//! Runs in the middle of an allocation, in any thread, amid other processes that claim: owners are compared and exchanged,
//! and who finds another one than before goes on to the next slot.

use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use caulk_wire::heap::{
    HANDED_DOWN, HEADER_BYTES, Owner, SLOT_BYTES, SLOTS, TURNED_AWAY, header, taken_over,
};

use crate::slot::Segment;
use crate::started::{self, has_ended};
use crate::{environment, maps};

/// A slot for this process, empty but for what it may go on with; `None` where none is to be had, which is counted.
pub(crate) fn claim() -> Option<Segment> {
    let path = environment::path();
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a path that ends with zero.
    let file =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr().cast::<c_char>(), flags) };
    let file = i32::try_from(file).ok().filter(|file| *file >= 0)?;
    let slot = slot_of(file);
    if slot.is_none() {
        turn_away(file);
    }
    // SAFETY: opened above.
    unsafe { libc::syscall(libc::SYS_close, file) };
    slot
}

fn slot_of(file: i32) -> Option<Segment> {
    let (own, may_judge) = this();
    let mut owners = [Owner::SUPERVISOR; SLOTS];
    for (index, owner) in owners.iter_mut().enumerate() {
        *owner = read(file, index, header::OWNER).map_or(Owner::SUPERVISOR, u64::from_ne_bytes);
    }
    if own.start > 0
        && let Some(index) = owners.iter().position(|owner| *owner == own.number())
    {
        let slot = Segment::map(file, index)?;
        slot.begin_anew();
        return Some(slot);
    }
    let all = || owners.iter().copied().enumerate();
    let free = all().filter(|(_, owner)| *owner == Owner::NOBODY);
    let claimed = free.map(|(index, free)| exchange(file, index, free, own)).find_map(|slot| slot);
    claimed.or_else(|| {
        let over = all().filter(|(index, owner)| may_judge && is_over(file, *index, *owner));
        let taken = over.map(|(index, former)| exchange(file, index, former, own)).find_map(|slot| slot)?;
        hand_down(file, taken);
        taken.clear();
        Some(taken)
    })
}

/// This process, by the number that `/proc` has for it: it opens the memory by that, as the supervisor does. And whether it
/// can judge others, whose numbers it sees as the supervisor does.
fn this() -> (Owner, bool) {
    let process = started::process();
    // SAFETY: no pointers.
    let is_itself = unsafe { libc::syscall(libc::SYS_getpid) } == i64::from(process);
    let seen = started::own().filter(|_| is_itself);
    // A child of `vfork` claims for the process whose memory it runs in.
    let (pid, start) = seen.unwrap_or_else(|| (process, started::started(process)));
    (Owner { pid, start: start as u32 }, is_itself && pid == process)
}

/// Has the owner ended, without anything that is still to be read?
fn is_over(file: i32, index: usize, owner: u64) -> bool {
    let unwatched = || read(file, index, header::WATCHED).map(u32::from_ne_bytes) == Some(0);
    Owner::of(owner).is_some_and(|owner| unwatched() && has_ended(owner))
}

/// A number of a slot that need not be mapped: memory of slots that nobody uses is not touched.
fn read<const BYTES: usize>(file: i32, index: usize, at: usize) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let at = index * SLOT_BYTES + at;
    // SAFETY: as much room as is said.
    let read = unsafe { libc::syscall(libc::SYS_pread64, file, bytes.as_mut_ptr(), BYTES, at) };
    (usize::try_from(read) == Ok(BYTES)).then_some(bytes)
}

/// Takes a slot from this owner; `None` where it has another one by now.
fn exchange(file: i32, index: usize, former: u64, own: Owner) -> Option<Segment> {
    let slot = Segment::map(file, index)?;
    let owner = slot.long(header::OWNER);
    if owner.compare_exchange(former, own.number(), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        return Some(slot);
    }
    // SAFETY: mapped above.
    unsafe { slot.unmap() };
    None
}

/// Counts a process for which no slot is left.
fn turn_away(file: i32) {
    at_the_end(file, |page| {
        // SAFETY: a mapping begins at a page, and its numbers are only changed so.
        unsafe { page.cast::<AtomicU32>().as_ref() }.fetch_add(1, Ordering::Relaxed);
    });
}

/// How many samples a process took and lost is not lost with its slot.
fn hand_down(file: i32, slot: Segment) {
    at_the_end(file, |page| {
        for (index, field) in HANDED_DOWN.into_iter().enumerate() {
            let at = taken_over(index) - TURNED_AWAY;
            // SAFETY: as above; within the page.
            let sum = unsafe { page.byte_add(at).cast::<AtomicU64>().as_ref() };
            sum.fetch_add(slot.long(field).swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    });
}

/// Does something with the page behind the last slot.
fn at_the_end(file: i32, work: impl FnOnce(NonNull<u8>)) {
    let Some(page) = maps::shared(HEADER_BYTES, file, TURNED_AWAY) else { return };
    work(page);
    // SAFETY: mapped above and known to nobody else.
    unsafe { maps::unmap(page, HEADER_BYTES) };
}
