//! Code objects, copied when they are first seen: later they may be gone, and so may the interpreter.

use caulk_wire::heap::ARENA_BYTES;

use super::layout::{Layout, layout};
use super::memory::{Memory, Own, read};
use crate::slot::Segment;

/// Longest file name and function name that are copied, in bytes of UTF-8.
const LONGEST_NAME: usize = 1024;
/// Longest table of lines; a longer one is left out, and all of its code is at the first line.
const LONGEST_TABLE: usize = 1 << 18;
const _: () = assert!(LONGEST_TABLE + 2 * LONGEST_NAME < ARENA_BYTES / 4);

/// Offsets in a `bytes` object: its length and its first byte.
const BYTES_LENGTH: usize = 16;
const BYTES_START: usize = 32;

/// What tells a code object from another one that came to lie at its address.
pub(crate) fn signature<M: Memory>(code: usize) -> Option<[u64; 5]> {
    let at = layout()?.code;
    // SAFETY: a code object of a frame that is running.
    let field = |offset: usize| unsafe { read::<M, u64>(code + offset) };
    // SAFETY: as above.
    let line = u64::from(unsafe { read::<M, u32>(code + at.first_line) }?);
    Some([code as u64, field(at.file)?, field(at.name)?, field(at.lines)?, line])
}

/// Copies a code object into the arena and returns its offset there.
pub(crate) fn copy_code<M: Memory>(segment: Segment, code: usize) -> Option<u32> {
    let layout = layout()?;
    // SAFETY: as above.
    let object = |offset: usize| unsafe { read::<M, usize>(code + offset) };
    let file = Text::new::<M>(layout, object(layout.code.file)?)?;
    let name = Text::new::<M>(layout, object(layout.code.name)?)?;
    let lines = object(layout.code.lines)?;
    // SAFETY: the table is a `bytes` object.
    let table = unsafe { read::<M, usize>(lines + BYTES_LENGTH) }?;
    let table = if table > LONGEST_TABLE { 0 } else { table };
    let (file_bytes, name_bytes) = (file.utf8::<M>(|_| ())?, name.utf8::<M>(|_| ())?);
    let length = 16 + file_bytes + name_bytes;
    let (offset, start) = segment.reserve(length + table)?;
    let mut written = 0;
    let mut put = |byte: u8| {
        // What another thread has made longer meanwhile is cut off.
        if written < length {
            // SAFETY: as many bytes as were reserved.
            unsafe { start.as_ptr().add(written).write(byte) };
            written += 1;
        }
    };
    // SAFETY: as above.
    let first_line = unsafe { read::<M, u32>(code + layout.code.first_line) }?;
    for word in [first_line, file_bytes as u32, name_bytes as u32, table as u32] {
        word.to_ne_bytes().into_iter().for_each(&mut put);
    }
    file.utf8::<M>(&mut put)?;
    name.utf8::<M>(&mut put)?;
    // SAFETY: within what was reserved.
    let table_at = unsafe { start.as_ptr().add(length) };
    // SAFETY: within the object, to what was reserved.
    unsafe { M::copy(lines + BYTES_START, table_at, table) }.then_some(offset)
}

/// The qualified name of a code object as it would be copied: how many bytes were written.
pub(crate) fn qualified_name(code: usize, out: &mut [u8]) -> Option<usize> {
    let layout = layout()?;
    // SAFETY: the agent asks about a code object that it holds.
    let name = Text::new::<Own>(layout, unsafe { read::<Own, usize>(code + layout.code.name) }?)?;
    let mut places = out.iter_mut();
    name.utf8::<Own>(|byte| {
        if let Some(place) = places.next() {
            *place = byte;
        }
    })
}

/// A string's characters.
struct Text {
    start: usize,
    length: usize,
    /// Bytes per character.
    width: usize,
}

impl Text {
    /// `None` for a string whose characters do not lie behind its head.
    fn new<M: Memory>(layout: &Layout, text: usize) -> Option<Self> {
        let at = layout.text;
        // SAFETY: names and files of code objects are strings.
        let state = unsafe { read::<M, u32>(text + at.state) }?;
        // SAFETY: as above.
        let length = unsafe { read::<M, usize>(text + at.length) }?;
        // Bits of `PyASCIIObject.state`, 3.10 to 3.14: interned 2, kind 3, compact 1, ascii 1.
        let (kind, compact, ascii) = ((state >> 2) & 7, (state >> 5) & 1 == 1, (state >> 6) & 1 == 1);
        let head = if ascii { at.ascii } else { at.compact };
        let known = compact && matches!(kind, 1 | 2 | 4);
        known.then_some(Self { start: text + head, length, width: kind as usize })
    }

    /// Puts the text as UTF-8, cut after [`LONGEST_NAME`] bytes, and returns their number; `None` where it is gone.
    fn utf8<M: Memory>(&self, mut put: impl FnMut(u8)) -> Option<usize> {
        let mut written = 0;
        for index in 0..self.length {
            let at = self.start + index * self.width;
            // SAFETY: within the string.
            let character = unsafe {
                match self.width {
                    1 => u32::from(read::<M, u8>(at)?),
                    2 => u32::from(read::<M, u16>(at)?),
                    _ => read::<M, u32>(at)?,
                }
            };
            let mut buffer = [0; 4];
            // Lone surrogates stand for bytes of a path that are no text.
            let bytes =
                char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut buffer);
            if written + bytes.len() > LONGEST_NAME {
                break;
            }
            bytes.bytes().for_each(&mut put);
            written += bytes.len();
        }
        Some(written)
    }
}
