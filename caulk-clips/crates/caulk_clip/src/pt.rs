//! Clip files as `torch.save` writes them, without torch: one tensor of unsigned bytes.
//!
//! Such a file is a zip archive whose members are stored as they are: a pickle that describes the tensor, the order of bytes, the
//! tensor's bytes, a version. `torch.load(path, weights_only=True)` reads it, and `mmap=True` maps it: the pixels begin at a
//! multiple of 64.
//!
//! # Source
//! `torch/csrc/jit/serialization/docs/serialization.md`; PKWARE, `APPNOTE.TXT` 4.3.

use crate::picture::{CHANNELS, Size};

/// What comes before the pixels and after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapping {
    /// Before.
    pub head: Vec<u8>,
    /// After.
    pub tail: Vec<u8>,
}

/// Where pixels begin.
const ALIGNMENT: usize = 64;
/// The archive's folder. Torch takes any.
const FOLDER: &str = "clip";
/// Version of torch's format: the first whose bytes come in an order that is told.
const VERSION: &[u8] = b"3\n";

/// Wraps the pixels of a clip, which come as parts. `None` where they are more than such an archive holds: 4 GiB.
pub fn wrap<'a>(
    frames: usize,
    size: Size,
    pixels: impl Iterator<Item = &'a [u8]> + Clone,
) -> Option<Wrapping> {
    let length = pixels.clone().map(<[u8]>::len).sum::<usize>();
    let mut archive = Archive::default();
    archive.member("data.pkl", &pickle(frames, size));
    archive.member("byteorder", b"little");
    archive.start("data/0", crc32(pixels), u32::try_from(length).ok()?);
    let head = archive.bytes.len();
    archive.beyond = length;
    archive.member("version", VERSION);
    archive.end()?;
    let tail = archive.bytes.split_off(head);
    Some(Wrapping { head: archive.bytes, tail })
}

/// The tensor in pickle's second protocol: `_rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, hooks)`.
fn pickle(frames: usize, size: Size) -> Vec<u8> {
    let shape = [frames, size.height as usize, size.width as usize, CHANNELS];
    let strides = [1, 2, 3, 4].map(|from| shape[from..].iter().product::<usize>());
    let text = |text: &str| [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    // `LONG1` with eight bytes: whatever the number is.
    let number = |number: usize| [b"\x8a\x08", &(number as u64).to_le_bytes()[..]].concat();
    let tuple = |items: &[Vec<u8>]| [b"(", items.concat().as_slice(), b"t"].concat();
    let storage = tuple(&[
        text("storage"),
        b"ctorch\nByteStorage\n".to_vec(),
        text("0"),
        text("cpu"),
        number(shape.iter().product()),
    ]);
    let arguments = tuple(&[
        [storage.as_slice(), b"Q"].concat(),
        number(0),
        tuple(&shape.map(number)),
        tuple(&strides.map(number)),
        b"\x89".to_vec(),
        b"ccollections\nOrderedDict\n)R".to_vec(),
    ]);
    [b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n", arguments.as_slice(), b"R."].concat()
}

/// A zip archive of stored members, all of it but the pixels.
#[derive(Debug, Default)]
struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    members: u16,
    /// Bytes of the pixels, once they are passed.
    beyond: usize,
}

impl Archive {
    fn member(&mut self, name: &str, content: &[u8]) {
        self.start(name, crc32(std::iter::once(content)), content.len() as u32);
        self.bytes.extend(content);
    }

    /// The header of a member whose content begins at a multiple of [`ALIGNMENT`], as torch has it.
    fn start(&mut self, name: &str, crc: u32, length: u32) {
        const FIXED: usize = 30;
        let at = self.bytes.len() + self.beyond;
        let name = format!("{FOLDER}/{name}");
        // An extra field, `FB` with its length, fills up.
        let padding = (at + FIXED + name.len() + 4).wrapping_neg() % ALIGNMENT;
        let extra = [b"FB", &(padding as u16).to_le_bytes()[..], &vec![b'Z'; padding]].concat();
        // Needs version 2.0, no flags, stored, midnight of 1 January 1980: equal clips are equal files.
        let mut common = [20, 0, 0, 0, 0x21].map(u16::to_le_bytes).concat();
        common.extend([crc, length, length].map(u32::to_le_bytes).concat());
        common.extend((name.len() as u16).to_le_bytes());
        let parts: [&[u8]; 5] =
            [b"PK\x03\x04", &common, &(extra.len() as u16).to_le_bytes(), name.as_bytes(), &extra];
        self.bytes.extend(parts.concat());
        // No extra field, no comment, first disk, no attributes.
        let entry: [&[u8]; 6] =
            [b"PK\x01\x02", &[20, 0], &common, &[0; 12], &(at as u32).to_le_bytes(), name.as_bytes()];
        self.directory.extend(entry.concat());
        self.members += 1;
    }

    fn end(&mut self) -> Option<()> {
        let at = u32::try_from(self.bytes.len() + self.beyond).ok()?;
        let members = self.members.to_le_bytes();
        let sizes = [self.directory.len() as u32, at].map(u32::to_le_bytes).concat();
        let end: [&[u8]; 7] = [&self.directory, b"PK\x05\x06", &[0; 4], &members, &members, &sizes, &[0; 2]];
        let end = end.concat();
        self.bytes.extend(end);
        Some(())
    }
}

/// The checksum of zip archives.
fn crc32<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u32 {
    let bytes = parts.flatten();
    !bytes.fold(!0, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (mut value, mut bit) = (at as u32, 0);
        while bit < 8 {
            value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const SIZE: Size = Size { width: 3, height: 2 };

    #[test]
    fn the_checksum_is_that_of_zip() {
        assert_eq!(crc32([b"1234".as_slice(), b"56789"].into_iter()), 0xcbf4_3926);
    }

    #[test]
    fn pixels_begin_where_they_can_be_mapped() {
        for frames in [1, 6, 1000] {
            let pixels = vec![7; frames * SIZE.bytes()];
            let wrapping = wrap(frames, SIZE, std::iter::once(pixels.as_slice())).unwrap();
            assert_eq!(wrapping.head.len() % ALIGNMENT, 0);
            assert!(wrapping.head.starts_with(b"PK\x03\x04") && wrapping.tail.starts_with(b"PK\x03\x04"));
        }
    }

    #[test]
    fn members_are_where_the_directory_says() {
        let pixels = vec![7; 6 * SIZE.bytes()];
        let Wrapping { head, tail } = wrap(6, SIZE, std::iter::once(pixels.as_slice())).unwrap();
        let file = [head, pixels, tail].concat();
        let entries: Vec<usize> =
            (0..file.len()).filter(|at| file[*at..].starts_with(b"PK\x01\x02")).collect();
        assert_eq!(entries.len(), 4);
        for entry in entries {
            let at = u32::from_le_bytes(file[entry + 42..entry + 46].try_into().unwrap()) as usize;
            assert!(file[at..].starts_with(b"PK\x03\x04"));
            assert_eq!(file[at + 14..at + 26], file[entry + 16..entry + 28], "checksum and sizes");
        }
    }
}
