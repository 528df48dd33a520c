//! Python frames: the calling thread's, or those of a thread that waits for it.

use std::ffi::c_void;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use caulk_wire::heap::Refusal;

use super::layout::{Instruction, Layout, OF_C_STACK, layout};
use super::memory::{Memory, Others, Own, read};
use super::refusal::refusal;
use super::symbol::symbol;

/// A frame as it lies in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// The calling thread's frames, innermost first: how many, and whether there were more. None where stacks are not to be
/// read.
pub(crate) fn walk(out: &mut [Raw]) -> (usize, bool) {
    if refusal() == Refusal::None { walk_unchecked(out) } else { (0, false) }
}

/// The same, for finding out whether they can be read.
pub(crate) fn walk_unchecked(out: &mut [Raw]) -> (usize, bool) {
    thread_state().and_then(|state| frames::<Own>(state, out)).unwrap_or((0, false))
}

/// The same of another thread, by its state; `None` where that did not stand still.
pub(crate) fn walk_other(state: usize, out: &mut [Raw]) -> Option<(usize, bool)> {
    if refusal() != Refusal::None {
        return None;
    }
    let walked = frames::<Others>(state, out)?;
    let mut again = [Raw::default()];
    frames::<Others>(state, &mut again)?;
    (out.first() == again.first()).then_some(walked)
}

/// The frames of a thread's state.
fn frames<M: Memory>(state: usize, out: &mut [Raw]) -> Option<(usize, bool)> {
    let (layout, code_type) = (layout()?, known(&CODE_TYPE)?);
    let mut frame = state;
    for offset in layout.innermost.into_iter().flatten() {
        // SAFETY: the layout of the interpreter that runs; of the thread's state.
        frame = unsafe { read::<M, usize>(frame + offset) }?;
        if frame == 0 {
            return Some((0, false));
        }
    }
    let mut count = 0;
    for _ in 0..MOST_LOOKED_AT {
        if frame == 0 {
            return Some((count, false));
        }
        // SAFETY: a frame of the thread.
        let code = unsafe { read::<M, usize>(frame + layout.frame.code) }? & !TAG;
        // Frames at which C calls Python run no code of the program's.
        let between = match layout.frame.owner {
            // SAFETY: a frame of the thread.
            Some(at) => unsafe { read::<M, u8>(frame + at) }? == OF_C_STACK,
            None => false,
        };
        // SAFETY: what a frame runs is an object.
        if !between && code != 0 && unsafe { read::<M, usize>(code + TYPE) }? == code_type {
            let Some(place) = out.get_mut(count) else { return Some((count, true)) };
            *place = Raw { code, offset: offset::<M>(layout, frame, code)? };
            count += 1;
        }
        // SAFETY: a frame of the thread.
        frame = unsafe { read::<M, usize>(frame + layout.frame.previous) }?;
    }
    Some((count, true))
}

fn offset<M: Memory>(layout: &Layout, frame: usize, code: usize) -> Option<u32> {
    let offset = match layout.frame.instruction {
        // SAFETY: a frame of the thread.
        Instruction::Index(at) => i64::from(unsafe { read::<M, i32>(frame + at) }?) * 2,
        Instruction::Pointer { frame: at, bytecode } => {
            // SAFETY: as above.
            (unsafe { read::<M, usize>(frame + at) })?.cast_signed() as i64 - (code + bytecode) as i64
        }
    };
    // Before its first instruction a frame is at its first line.
    Some(u32::try_from(offset).unwrap_or(0))
}

/// Looks up what a walk needs, so that no walk has to wait for the loader.
pub(super) fn resolve() {
    for (place, name) in [(&THREAD_STATE, c"PyGILState_GetThisThreadState"), (&CODE_TYPE, c"PyCode_Type")] {
        place.store(symbol(name).map_or(0, |found| found as usize), Ordering::Relaxed);
    }
}

/// The calling thread's state; `None` where it has none.
pub(crate) fn thread_state() -> Option<usize> {
    let get = known(&THREAD_STATE)?;
    // SAFETY: the symbol's type. It reads the thread's own storage.
    let state = unsafe { mem::transmute::<usize, extern "C" fn() -> *mut c_void>(get)() } as usize;
    (state != 0).then_some(state)
}

fn known(place: &AtomicUsize) -> Option<usize> {
    Some(place.load(Ordering::Relaxed)).filter(|address| *address != 0)
}
