//! A file of checked frames: length, checksum, bytes. What comes before the first damage is readable.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use camino::Utf8Path;

use crate::private;

/// Longest frame that is believed, in bytes: a message of the longest length that the protocol allows, and its head.
const LONGEST: usize = (16 << 20) + 64;

/// A file to which frames are appended, each with one `write`.
#[derive(Debug)]
pub(crate) struct FrameFile {
    file: File,
    bytes: u64,
}

impl FrameFile {
    /// Makes the file, or empties it.
    pub(crate) fn create(path: &Utf8Path) -> io::Result<Self> {
        // Append mode: after a cut, the next frame goes to the new end.
        let file = private::open(OpenOptions::new().create(true).append(true), path)?;
        file.set_len(0)?;
        Ok(Self { file, bytes: 0 })
    }

    /// Length of the file, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a frame, or leaves the file as it was.
    pub(crate) fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(payload.len() + 8);
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&crc32(payload).to_le_bytes());
        frame.extend_from_slice(payload);
        append_whole(&mut self.file, &mut self.bytes, &frame)
    }
}

/// Writes all bytes to the end of the file, or cuts off what was written of them.
pub(crate) fn append_whole(file: &mut File, length: &mut u64, bytes: &[u8]) -> io::Result<()> {
    match file.write_all(bytes) {
        Ok(()) => {
            *length += bytes.len() as u64;
            Ok(())
        }
        Err(error) => {
            // Where even this fails, readers stop at the torn end.
            let _ = file.set_len(*length);
            Err(error)
        }
    }
}

/// Hands every whole frame to `each`, and says how many bytes at the end are none.
pub(crate) fn read_frames<'a>(mut bytes: &'a [u8], mut each: impl FnMut(&'a [u8])) -> usize {
    while let Some((payload, rest)) = split_frame(bytes) {
        each(payload);
        bytes = rest;
    }
    bytes.len()
}

fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (payload, rest) = rest.split_at_checked(length).filter(|_| length <= LONGEST)?;
    (crc32(payload) == u32::from_le_bytes(*crc)).then_some((payload, rest))
}

/// CRC-32 as gzip and PNG compute it (polynomial 0xEDB88320, reflected).
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc: u32, byte| TABLE[(crc as u8 ^ byte) as usize] ^ (crc >> 8))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn frames_before_the_damage_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("x");
        let mut file = FrameFile::create(&path).unwrap();
        for payload in [b"one".as_slice(), b"", b"three"] {
            file.append(payload).unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(file.bytes(), bytes.len() as u64);
        let read = |bytes: &[u8]| {
            let mut frames = Vec::new();
            let rest = read_frames(bytes, |frame| frames.push(frame.to_vec()));
            (frames.len(), rest)
        };
        assert_eq!(read(&bytes), (3, 0));
        assert_eq!(read(&bytes[..bytes.len() - 1]), (2, 12));
        bytes[9] ^= 1;
        assert_eq!(read(&bytes).0, 0);
        assert_eq!(read(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff").0, 0);
    }
}
