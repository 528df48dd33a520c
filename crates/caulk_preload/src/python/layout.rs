//! Where things lie in the memory of each version of CPython, as data.
//!
//! Offsets in bytes, for 64-bit builds: from the headers of 3.10.13, 3.11.7 and 3.12.1, which did not change within
//! their minor versions; from 3.13 on the interpreter says them itself (`_Py_DebugOffsets`, `pycore_debug_offsets.h`).

use std::ffi::{CStr, c_char};
use std::mem;

use caulk_wire::heap::Refusal;

use super::symbol::symbol;
use crate::once::Once;

/// Where things lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// From the thread's state to its innermost frame: each pointer is followed.
    pub(super) innermost: [Option<usize>; 2],
    pub(super) frame: Frame,
    pub(super) code: Code,
    pub(super) text: Text,
}

/// A frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) previous: usize,
    pub(super) code: usize,
    /// Who the frame belongs to, where those that belong to the C stack have code of their own ([`OF_C_STACK`]).
    pub(super) owner: Option<usize>,
    pub(super) instruction: Instruction,
}

/// Owner of a frame at which C calls Python (CPython 3.12, `pycore_frame.h`, `FRAME_OWNED_BY_CSTACK`).
pub(super) const OF_C_STACK: u8 = 3;

/// What a frame is at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    /// An index in units of two bytes.
    Index(usize),
    /// A pointer into the bytecode, which begins in the code object.
    Pointer { frame: usize, bytecode: usize },
}

/// A code object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    pub(super) file: usize,
    pub(super) name: usize,
    pub(super) lines: usize,
    pub(super) first_line: usize,
}

/// A string: bytes before its characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    pub(super) state: usize,
    pub(super) length: usize,
    pub(super) ascii: usize,
    pub(super) compact: usize,
}

/// Bytes by which the head of a string that is not ASCII is longer, from 3.12 on (`PyCompactUnicodeObject`).
const COMPACT_HEAD: usize = 16;

const fn text(ascii: usize, more: usize) -> Text {
    Text { state: 32, length: 16, ascii, compact: ascii + more }
}

const TABLE: [(u32, Layout); 3] = [
    (
        10,
        Layout {
            innermost: [Some(24), None],
            frame: Frame { previous: 24, code: 32, owner: None, instruction: Instruction::Index(96) },
            code: Code { file: 104, name: 112, lines: 120, first_line: 40 },
            text: text(48, 24),
        },
    ),
    (
        11,
        Layout {
            innermost: [Some(56), Some(8)],
            frame: Frame {
                previous: 48,
                code: 32,
                owner: None,
                instruction: Instruction::Pointer { frame: 56, bytecode: 184 },
            },
            code: Code { file: 112, name: 128, lines: 136, first_line: 72 },
            text: text(48, 24),
        },
    ),
    (
        12,
        Layout {
            innermost: [Some(56), Some(0)],
            frame: Frame {
                previous: 8,
                code: 0,
                owner: Some(70),
                instruction: Instruction::Pointer { frame: 56, bytecode: 192 },
            },
            code: Code { file: 112, name: 128, lines: 136, first_line: 68 },
            text: text(40, COMPACT_HEAD),
        },
    ),
];

/// Positions of the fields in `_Py_DebugOffsets`, by version: it tells the rest.
const DEBUG_OFFSETS: [(u32, DebugOffsets); 2] = [
    (
        13,
        DebugOffsets {
            free_threaded: 16,
            current_frame: 184,
            previous: 232,
            executable: 240,
            instruction: 248,
            file: 280,
            qualified_name: 296,
            lines: 304,
            first_line: 312,
            bytecode: 344,
            text_state: 544,
            text_length: 552,
            text_ascii: 560,
        },
    ),
    (
        14,
        DebugOffsets {
            free_threaded: 16,
            current_frame: 208,
            previous: 256,
            executable: 264,
            instruction: 272,
            file: 320,
            qualified_name: 336,
            lines: 344,
            first_line: 352,
            bytecode: 384,
            text_state: 624,
            text_length: 632,
            text_ascii: 640,
        },
    ),
];

#[derive(Debug, Clone, Copy)]
struct DebugOffsets {
    free_threaded: usize,
    current_frame: usize,
    previous: usize,
    executable: usize,
    instruction: usize,
    file: usize,
    qualified_name: usize,
    lines: usize,
    first_line: usize,
    bytecode: usize,
    text_state: usize,
    text_length: usize,
    text_ascii: usize,
}

/// What `_PyRuntime` begins with from 3.13 on.
const COOKIE: [u8; 8] = *b"xdebugpy";

/// Chosen by the agent, with the interpreter's lock held, before it says that stacks may be read.
static CHOSEN: Once<Layout> = Once::new();

/// The layout of this process's Python, once it was chosen.
pub(super) fn layout() -> Option<&'static Layout> {
    CHOSEN.get()
}

/// Major and minor version.
pub(super) fn version() -> Option<(u32, u32)> {
    let get = symbol(c"Py_GetVersion")?;
    // SAFETY: the symbol's type; returns a constant, before the interpreter is made too.
    let text = unsafe { mem::transmute::<*mut std::ffi::c_void, extern "C" fn() -> *const c_char>(get)() };
    // SAFETY: a string that ends with zero.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let mut numbers = text.split(|byte| !byte.is_ascii_digit()).map(number);
    Some((numbers.next()?, numbers.next()?))
}

fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

/// Chooses the layout.
///
/// # Errors
/// Why there is none.
pub(super) fn choose() -> Result<(), Refusal> {
    let Some((3, minor)) = version() else { return Err(Refusal::UnknownVersion) };
    let fixed = TABLE.iter().find(|(version, _)| *version == minor).map(|(_, layout)| *layout);
    let layout = fixed.map_or_else(|| of_runtime(minor), Ok)?;
    CHOSEN.set(layout);
    Ok(())
}

/// What the interpreter says of itself.
fn of_runtime(minor: u32) -> Result<Layout, Refusal> {
    let known = DEBUG_OFFSETS.iter().find(|(version, _)| *version == minor);
    let (Some((_, at)), Some(runtime)) = (known, symbol(c"_PyRuntime")) else {
        return Err(Refusal::UnknownVersion);
    };
    let runtime = runtime as usize;
    // SAFETY: the runtime's structure is longer than this in every version that has one.
    let (cookie, version) = unsafe { (read::<[u8; 8]>(runtime), read::<u64>(runtime + 8)) };
    if cookie != COOKIE || (version >> 16) as u32 != (3 << 8 | minor) {
        return Err(Refusal::UnknownVersion);
    }
    // SAFETY: the cookie and the version say that they are there.
    let field = |at: usize| unsafe { read::<u64>(runtime + at) } as usize;
    if field(at.free_threaded) != 0 {
        return Err(Refusal::FreeThreaded);
    }
    let ascii = field(at.text_ascii);
    Ok(Layout {
        innermost: [Some(field(at.current_frame)), None],
        frame: Frame {
            previous: field(at.previous),
            code: field(at.executable),
            owner: None,
            instruction: Instruction::Pointer { frame: field(at.instruction), bytecode: field(at.bytecode) },
        },
        code: Code {
            file: field(at.file),
            name: field(at.qualified_name),
            lines: field(at.lines),
            first_line: field(at.first_line),
        },
        text: Text {
            state: field(at.text_state),
            length: field(at.text_length),
            ascii,
            compact: ascii + COMPACT_HEAD,
        },
    })
}

/// Reads a value at an address.
///
/// # Safety
/// There is such a value.
pub(crate) unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: as promised by the caller.
    unsafe { (address as *const T).read() }
}
