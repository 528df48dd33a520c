//! What a thread has of its own: one small block of thread-local storage, reached in one instruction.
//!
//! Initial-exec, plain data and without a destructor: no allocation on first use, and frees after a thread's end are
//! safe. Rust's `thread_local!` would ask the loader for its address each time (2-3 ns per pair of malloc and free).

use std::arch::{asm, global_asm};
use std::ptr::NonNull;

use crate::chunk::Sums;
use crate::line::Line;

/// A thread's own numbers. All zero when it starts.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Local {
    /// Bytes until the next sample.
    pub(crate) countdown: i64,
    /// Where it adds up what malloc hands out, once it has a line of its own.
    pub(crate) line: Option<&'static Line>,
    /// Mean by which that was drawn.
    pub(crate) interval: u64,
    /// State of the generator; 0 until the first use.
    pub(crate) random: u64,
    /// Where on its stack the thread is in here: what is allocated below is ours or comes from a signal handler. Else 0.
    pub(crate) inside: usize,
    /// Stack of the thread that made this one, plus 1.
    pub(crate) creator: u32,
    /// Address of the Python state of the thread that waits whenever this one works; else 0.
    pub(crate) leader: usize,
    /// Samples since the governor looked.
    pub(crate) since_look: u32,
    /// What was done beside samples since some of it was timed.
    pub(crate) untimed: u32,
    /// Depth of calls in which what is mapped is told of by other means.
    pub(crate) quiet: u32,
    /// Depth of backward passes that this thread runs.
    pub(crate) passes: u32,
    /// 1 where the thread was made to work for backward passes.
    pub(crate) serves: u32,
    /// Times in a row that it was found to be in here already.
    pub(crate) refused: u32,
    /// 1 where its next small object strikes the clock.
    pub(crate) strikes: u32,
    /// 1 where it found no line, or has ended and given it back.
    pub(crate) lineless: u32,
    /// What was handed out when it forked last.
    pub(crate) at_fork: Sums,
}

impl Local {
    /// In a forked child: the stacks' numbers and the line are the parent's, and its events are its own.
    pub(crate) fn forget(&mut self) {
        (self.countdown, self.random) = (0, 0);
        (self.line, self.lineless) = (None, 0);
        (self.creator, self.leader, self.passes, self.serves, self.strikes) = (0, 0, 0, 0, 0);
    }
}

/// A signal handler takes no more samples than this in the middle of another one: then whoever was in here was left behind,
/// and what runs now lies deeper on the stack.
const MOST_REFUSED: u32 = 64;

const BLOCK: usize = 128;
const _: () = assert!(size_of::<Local>() <= BLOCK);

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".globl caulk_heap_local",
    ".hidden caulk_heap_local",
    ".type caulk_heap_local, @object",
    ".size caulk_heap_local, {block}",
    ".p2align 6",
    "caulk_heap_local:",
    ".zero {block}",
    ".popsection",
    block = const BLOCK,
);

/// The calling thread's block.
#[cfg(target_arch = "x86_64")]
pub(crate) fn local() -> NonNull<Local> {
    let block: *mut Local;
    // SAFETY: reads the thread pointer and a constant of the loader; the symbol is defined above.
    unsafe {
        asm!(
            "mov {block}, qword ptr [rip + caulk_heap_local@GOTTPOFF]",
            "add {block}, qword ptr fs:[0]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: thread-local storage is never at address zero.
    unsafe { NonNull::new_unchecked(block) }
}

/// The calling thread's block.
#[cfg(target_arch = "aarch64")]
pub(crate) fn local() -> NonNull<Local> {
    let block: *mut Local;
    // SAFETY: reads the thread pointer and a constant of the loader; the symbol is defined above.
    unsafe {
        asm!(
            "mrs {block}, tpidr_el0",
            "adrp {offset}, :gottprel:caulk_heap_local",
            "ldr {offset}, [{offset}, :gottprel_lo12:caulk_heap_local]",
            "add {block}, {block}, {offset}",
            block = out(reg) block,
            offset = out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: thread-local storage is never at address zero.
    unsafe { NonNull::new_unchecked(block) }
}

/// The calling thread is in here for as long as this lives.
pub(crate) struct Inside(NonNull<Local>);

impl Inside {
    /// Enters; `None` where the thread is in here already.
    pub(crate) fn enter() -> Option<Self> {
        let mut block = local();
        // SAFETY: the block is this thread's alone; a signal handler leaves it as it found it.
        let own = unsafe { block.as_mut() };
        // Stacks grow downwards. There or above, whoever was in here has been left behind by a jump.
        let here = (&raw const block) as usize;
        if here < own.inside && own.refused < MOST_REFUSED {
            own.refused += 1;
            return None;
        }
        (own.inside, own.refused) = (here, 0);
        Some(Self(block))
    }

    /// The thread's numbers.
    pub(crate) fn local(&mut self) -> &mut Local {
        // SAFETY: as above, and there is one `Inside` per thread.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.local().inside = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters from further down on the stack, and leaves again.
    #[inline(never)]
    fn enters(depth: usize) -> bool {
        let below = std::hint::black_box([depth; 64]);
        if below[0] == 0 { Inside::enter().is_some() } else { enters(below[0] - 1) }
    }

    #[test]
    fn whoever_was_left_behind_by_a_jump_keeps_nobody_out() {
        let inside = Inside::enter().expect("nobody is");
        assert!(!enters(3), "a signal handler");
        drop(inside);
        assert!(enters(3));

        for depth in [0, 3] {
            let behind = Inside::enter();
            std::mem::forget(behind);
            let tries = (1..1000).find(|_| enters(depth));
            assert_eq!(tries, Some(MOST_REFUSED as usize + 1), "deeper by {depth}");
        }
        std::mem::forget(Inside::enter());
        assert!(Inside::enter().is_some(), "at the same place");
    }
}
