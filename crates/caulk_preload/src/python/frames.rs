//! The calling thread's Python frames.

use std::ffi::c_void;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use caulk_wire::heap::Refusal;

use super::layout::{Instruction, Layout, OF_C_STACK, layout};
use super::{read, refusal, symbol};

/// A frame as it lies in memory.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Raw {
    /// Address of the code object.
    pub(crate) code: usize,
    /// Offset of the instruction in bytes.
    pub(crate) offset: u32,
}

/// Frames looked at, of which some run no Python: a bound against going round in circles.
const MOST_LOOKED_AT: usize = 4096;
/// What 3.14 keeps in the low bits of a frame's references (`pycore_stackref.h`, `Py_TAG_BITS`); objects are aligned.
const TAG: usize = 3;
/// Offset of an object's type.
const TYPE: usize = 8;

static THREAD_STATE: AtomicUsize = AtomicUsize::new(0);
static CODE_TYPE: AtomicUsize = AtomicUsize::new(0);

/// Frames, innermost first: how many, and whether there were more. None where stacks are not to be read.
pub(crate) fn walk(out: &mut [Raw]) -> (usize, bool) {
    if refusal() == Refusal::None { walk_unchecked(out) } else { (0, false) }
}

/// The same, for finding out whether they can be read.
pub(crate) fn walk_unchecked(out: &mut [Raw]) -> (usize, bool) {
    let Some(layout) = layout() else { return (0, false) };
    let (Some(state), Some(code_type)) = (thread_state(), known(&CODE_TYPE)) else { return (0, false) };
    let mut frame = state;
    for offset in layout.innermost.into_iter().flatten() {
        // SAFETY: the layout of the interpreter that runs; of this thread's own state.
        frame = unsafe { read::<usize>(frame + offset) };
        if frame == 0 {
            return (0, false);
        }
    }
    let mut count = 0;
    for _ in 0..MOST_LOOKED_AT {
        if frame == 0 {
            return (count, false);
        }
        // SAFETY: a frame of this thread.
        let code = unsafe { read::<usize>(frame + layout.frame.code) } & !TAG;
        // Frames at which C calls Python run no code of the program's.
        // SAFETY: a frame of this thread.
        let between = layout.frame.owner.is_some_and(|at| unsafe { read::<u8>(frame + at) } == OF_C_STACK);
        // SAFETY: what a frame runs is an object.
        if !between && code != 0 && unsafe { read::<usize>(code + TYPE) } == code_type {
            let Some(place) = out.get_mut(count) else { return (count, true) };
            *place = Raw { code, offset: offset(layout, frame, code) };
            count += 1;
        }
        // SAFETY: a frame of this thread.
        frame = unsafe { read::<usize>(frame + layout.frame.previous) };
    }
    (count, true)
}

fn offset(layout: &Layout, frame: usize, code: usize) -> u32 {
    let offset = match layout.frame.instruction {
        // SAFETY: a frame of this thread.
        Instruction::Index(at) => i64::from(unsafe { read::<i32>(frame + at) }) * 2,
        Instruction::Pointer { frame: at, bytecode } => {
            // SAFETY: as above.
            (unsafe { read::<usize>(frame + at) }).cast_signed() as i64 - (code + bytecode) as i64
        }
    };
    // Before its first instruction a frame is at its first line.
    u32::try_from(offset).unwrap_or(0)
}

/// Looks up what a walk needs, so that no walk has to wait for the loader.
pub(super) fn resolve() {
    for (place, name) in [(&THREAD_STATE, c"PyGILState_GetThisThreadState"), (&CODE_TYPE, c"PyCode_Type")] {
        place.store(symbol(name).map_or(0, |found| found as usize), Ordering::Relaxed);
    }
}

/// The calling thread's state; `None` where it has none.
fn thread_state() -> Option<usize> {
    let get = known(&THREAD_STATE)?;
    // SAFETY: the symbol's type. It reads the thread's own storage.
    let state = unsafe { mem::transmute::<usize, extern "C" fn() -> *mut c_void>(get)() } as usize;
    (state != 0).then_some(state)
}

fn known(place: &AtomicUsize) -> Option<usize> {
    Some(place.load(Ordering::Relaxed)).filter(|address| *address != 0)
}
