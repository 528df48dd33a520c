//! Packets of an MP4 file told by its tables, without reading any.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use caulk_clip::{index, moov, told};

/// A larger table is not read at once.
const LARGEST: u64 = 256 << 20;

/// One packet as the demuxer's own index has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where it lies in the file; no size where only reading has told.
    pub(crate) bytes: (i64, i32),
    /// When it is decoded.
    pub(crate) time: i64,
    pub(crate) key: bool,
    pub(crate) discarded: bool,
}

impl Entry {
    /// Of packets that have been read, to be found again by the times at which they are shown.
    pub(crate) fn all(packets: &told::Packets) -> Vec<Self> {
        let entry = |(place, time)| Self { bytes: (place, 0), time, key: false, discarded: false };
        packets.places().map(entry).collect()
    }

    fn range(&self) -> Option<Range<u64>> {
        let (start, size) = (u64::try_from(self.bytes.0).ok()?, u64::try_from(self.bytes.1).ok()?);
        Some(start..start + size)
    }
}

/// Joins the demuxer's index with the file's own table of when packets are shown. `None` where they do not match, or the file
/// is not whole: all packets have to be read then.
pub(crate) fn packets(path: &str, track: u32, entries: &[Entry]) -> Option<Vec<index::Packet>> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.size();
    let offsets = moov::composition_offsets(&read_moov(&mut file, length)?, track)?;
    let is_plain = |entry: &Entry| !entry.discarded && entry.range().is_some_and(|range| range.end <= length);
    let increases = entries.windows(2).all(|pair| pair[0].time < pair[1].time);
    if entries.is_empty() || entries.len() != offsets.len() || !entries.iter().all(is_plain) || !increases {
        return None;
    }
    let packet = |(entry, offset): (&Entry, i32)| index::Packet {
        time: entry.time.checked_add(offset.into()),
        key: entry.key,
        shown: true,
    };
    Some(entries.iter().zip(offsets).map(packet).collect())
}

fn read_moov(file: &mut File, length: u64) -> Option<Vec<u8>> {
    let mut at = 0;
    while at + 8 <= length {
        let mut head = [0; 16];
        file.seek(SeekFrom::Start(at)).ok()?;
        let got = file.read(&mut head).ok()?;
        let kind = head.get(4..8)?;
        let size = match u32::from_be_bytes(*head.first_chunk()?) {
            0 => length - at,
            1 if got == 16 => u64::from_be_bytes(*head.get(8..16)?.first_chunk()?),
            size => size.into(),
        };
        if kind == b"moov" {
            let skipped = if head[..4] == [0, 0, 0, 1] { 16 } else { 8 };
            file.seek(SeekFrom::Start(at + skipped)).ok()?;
            let size = size.checked_sub(skipped).filter(|size| *size <= LARGEST.min(length))?;
            let mut body = Vec::new();
            file.take(size).read_to_end(&mut body).ok()?;
            return Some(body);
        }
        if size < 8 {
            return None;
        }
        at = at.checked_add(size)?;
    }
    None
}
