//! The agent's side of the heap sampler, where that is loaded: whether its stacks are right, and what lives at a
//! boundary.
//!
//! `caulk_preload` reads the interpreter's frames as they lie in memory. Before it may, what it reads of the frames that
//! run now is compared with what Python says of them.

use std::ffi::{CStr, c_char, c_void};
use std::mem;

use caulk_wire::heap::{Code, Refusal};
use pyo3::intern;
use pyo3::prelude::*;

use crate::frames;
use crate::symbols::find;

/// Frames that are compared.
const COMPARED: usize = 4;
/// The sampler's file.
const LIBRARY: &str = "libcaulk_preload.so";
/// Longest name that is compared, in bytes.
const LONGEST_NAME: usize = 256;

type Prepare = extern "C" fn() -> u32;
type Walk = unsafe extern "C" fn(*mut usize, *mut u32, usize) -> usize;
type Name = unsafe extern "C" fn(usize, *mut u8, usize) -> usize;
type Begin = extern "C" fn(u32);
type Snapshot = extern "C" fn(u32) -> bool;
/// Bytes, counted by the sampler.
type Count = extern "C" fn() -> usize;
type Maker = unsafe extern "C" fn(usize, *mut u64) -> u32;

/// The sampler's functions.
#[derive(Clone, Copy)]
pub(crate) struct Sampler {
    snapshot: Snapshot,
    shared: Count,
    arenas: Count,
    maker: Maker,
}

impl Sampler {
    /// Finds the sampler and lets it begin; says why its stacks cannot be read, if so. `None` where it is not loaded.
    pub(crate) fn begin(py: Python<'_>) -> Option<(Self, Refusal)> {
        let prepare = find(c"caulk_heap_prepare")?;
        let (walk, name) = (find(c"caulk_heap_walk")?, find(c"caulk_heap_name")?);
        let (begin, snapshot) = (find(c"caulk_heap_begin")?, find(c"caulk_heap_snapshot")?);
        // SAFETY: the types of the sampler's functions.
        let (prepare, begin) = unsafe {
            (mem::transmute::<*mut c_void, Prepare>(prepare), mem::transmute::<*mut c_void, Begin>(begin))
        };
        // SAFETY: as above.
        let (walk, name) =
            unsafe { (mem::transmute::<*mut c_void, Walk>(walk), mem::transmute::<*mut c_void, Name>(name)) };
        // SAFETY: as above.
        let snapshot = unsafe { mem::transmute::<*mut c_void, Snapshot>(snapshot) };
        // SAFETY: as above.
        let shared = unsafe { mem::transmute::<*mut c_void, Count>(find(c"caulk_heap_shared")?) };
        // SAFETY: as above.
        let arenas = unsafe { mem::transmute::<*mut c_void, Count>(find(c"caulk_heap_arenas")?) };
        // SAFETY: as above.
        let maker = unsafe { mem::transmute::<*mut c_void, Maker>(find(c"caulk_heap_maker")?) };
        let mut refusal = Refusal::of(prepare()).unwrap_or(Refusal::SelfCheck);
        if refusal == Refusal::None && !reads_right(py, walk, name).unwrap_or(false) {
            refusal = Refusal::SelfCheck;
        }
        begin(refusal as u32);
        Some((Self { snapshot, shared, arenas, maker }, refusal))
    }

    /// Shared memory that the sampler itself uses, in bytes.
    pub(crate) fn shared_bytes(self) -> u64 {
        (self.shared)() as u64
    }

    /// Bytes that pymalloc has mapped for small objects, as far as they were counted.
    pub(crate) fn arena_bytes(self) -> u64 {
        (self.arenas)() as u64
    }

    /// The stack that made a block which lives, and the bytes that the block stands for; `None` where it was not sampled.
    pub(crate) fn maker(self, block: usize) -> Option<(u32, u64)> {
        let mut weight = 0;
        // SAFETY: the sampler's function, with room for its answer.
        let stack = unsafe { (self.maker)(block, &raw mut weight) };
        (stack != u32::MAX).then_some((stack, weight))
    }

    /// Notes what lives now, under the number of a boundary.
    pub(crate) fn snapshot(self, boundary: u32) {
        (self.snapshot)(boundary);
    }
}

/// Was it asked for in this process's environment? Where it is not loaded all the same, the loader has left it out.
pub(crate) fn was_left_out() -> bool {
    std::env::var("LD_PRELOAD").is_ok_and(|libraries| libraries.contains(LIBRARY))
}

/// Does pymalloc check its objects? Then the sampler does not get to see them.
pub(crate) fn has_debug_pymalloc() -> bool {
    let Some(found) = find(c"_PyMem_GetCurrentAllocatorName") else { return false };
    // SAFETY: the symbol's type; returns a constant, or null.
    let name = unsafe { mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(found)() };
    // SAFETY: a string that ends with zero.
    !name.is_null() && unsafe { CStr::from_ptr(name) } == c"pymalloc_debug"
}

/// Does the sampler see the frames that run now as Python does: code, name and line?
fn reads_right(py: Python<'_>, walk: Walk, name: Name) -> PyResult<bool> {
    let (mut codes, mut offsets) = ([0; COMPARED], [0; COMPARED]);
    // SAFETY: room for as many.
    let count = unsafe { walk(codes.as_mut_ptr(), offsets.as_mut_ptr(), COMPARED) };
    let frames: Vec<_> = frames::stack_of(frames::current(py)).take(COMPARED).collect();
    let minor = u32::from(py.version_info().minor);
    for (index, frame) in frames.iter().enumerate() {
        let code = frames::code_of(frame);
        if index >= count || codes[index] != code.as_ptr() as usize {
            return Ok(false);
        }
        let qualified = if minor < 11 { intern!(py, "co_name") } else { intern!(py, "co_qualname") };
        let known = Code {
            first_line: code.getattr(intern!(py, "co_firstlineno"))?.extract()?,
            file: String::new(),
            name: code.getattr(qualified)?.extract()?,
            lines: code.getattr(intern!(py, "co_linetable"))?.extract()?,
        };
        let mut read = [0; LONGEST_NAME];
        // SAFETY: a code object, and as much room.
        let length = unsafe { name(codes[index], read.as_mut_ptr(), LONGEST_NAME) };
        let line = frames::line_of(frame);
        let same = length <= LONGEST_NAME && read[..length] == *known.name.as_bytes();
        if !same || known.line(minor, offsets[index]) != line {
            return Ok(false);
        }
    }
    Ok(!frames.is_empty())
}
