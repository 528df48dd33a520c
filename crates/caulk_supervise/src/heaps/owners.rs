//! Whose the slots are, and freeing those of processes that have ended.
//!
//! A process may take over the slot of one that has ended while the supervisor is about to release it: so the owner is
//! compared and exchanged, in memory that both have mapped.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use caulk_core::wire::heap::{HEADER_BYTES, Owner, SLOT_BYTES, header};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Pid, test_kill_process};

use super::numbers::{long, word};
use crate::proc::{Reader, Stat};

/// Whose a slot is; `None` where it is free.
pub(super) fn owner(memory: &File, slot: u64) -> Option<Owner> {
    long(memory, slot + header::OWNER as u64).ok().and_then(Owner::of)
}

/// Is there something in the slot that is to be read when its owner has ended?
pub(super) fn is_watched(memory: &File, slot: u64) -> bool {
    word(memory, slot + header::WATCHED as u64).is_ok_and(|watched| watched != 0)
}

/// There is not, or no longer.
pub(super) fn unwatch(memory: &File, slot: u64) {
    _ = memory.write_all_at(&0_u32.to_ne_bytes(), slot + header::WATCHED as u64);
}

/// Has the process ended, waited for or not? False where that cannot be told, and where its main thread alone has ended.
pub(super) fn has_ended(reader: &mut Reader, process: Owner) -> bool {
    if let Some(stat) = reader.stat(process.pid) {
        return is_another(&stat, process) || (stat.ended() && stat.threads <= 1);
    }
    // Other users' processes may be hidden.
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// A later process with its number?
fn is_another(stat: &Stat, process: Owner) -> bool {
    process.start != 0 && stat.start_ticks as u32 != process.start
}

/// Takes the slot from this owner; false where it is another's by now.
pub(super) fn take(memory: &File, slot: u64, owner: Owner) -> bool {
    exchange(memory, slot, owner).is_ok_and(|taken| taken)
}

/// Makes a slot that was taken as it was in the beginning.
pub(super) fn empty(memory: &File, slot: u64) {
    // The owner goes last: whoever claims the slot then finds it empty.
    let header = HEADER_BYTES as u64;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    _ = fallocate(memory, flags, slot + header, SLOT_BYTES as u64 - header);
    _ = fallocate(memory, flags, slot, header);
}

/// Takes the slot from its owner; false where that is another one.
fn exchange(memory: &File, slot: u64, former: Owner) -> io::Result<bool> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping that replaces none.
    let page = unsafe { mmap(ptr::null_mut(), HEADER_BYTES, protection, MapFlags::SHARED, memory, slot) }?;
    let number: *mut c_void = page.wrapping_byte_add(header::OWNER);
    // SAFETY: within the page and aligned; processes change it by the same operation.
    let number = unsafe { AtomicU64::from_ptr(number.cast()) };
    let exchanged =
        number.compare_exchange(former.number(), Owner::SUPERVISOR, Ordering::AcqRel, Ordering::Relaxed);
    // SAFETY: mapped above and used no more.
    unsafe { munmap(page, HEADER_BYTES) }?;
    Ok(exchanged.is_ok())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn this(reader: &mut Reader, pid: u32) -> Owner {
        Owner { pid, start: reader.stat(pid).unwrap().start_ticks as u32 }
    }

    #[test]
    fn a_process_has_ended_when_it_is_gone_not_waited_for_or_another_one() {
        let mut reader = Reader::new();
        let own = this(&mut reader, std::process::id());
        assert!(!has_ended(&mut reader, own) && !has_ended(&mut reader, Owner { start: 0, ..own }));
        assert!(has_ended(&mut reader, Owner { start: own.start + 1, ..own }));
        assert!(!has_ended(&mut reader, Owner { pid: u32::MAX, start: 1 }), "no process has this number");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = this(&mut reader, child.id());
        assert!(!has_ended(&mut reader, process));
        drop(child.stdin.take());
        while !has_ended(&mut reader, process) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(&mut reader, process));
    }
}
