//! `index.log`: what was written where, with its checksum. By it a reader knows sound bytes from damaged ones before a
//! decoder sees them, goes on after a damaged part, and reads a Parquet file whose end is gone.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::frames::{FrameFile, crc32, read_frames};
use crate::ring::read_bounded;
use crate::tables::Table;

const INDEX: &str = "index.log";
const NEW_INDEX: &str = ".index.log.new";

/// A run of bytes of a table's file, with its checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) length: u64,
    crc: u32,
}

impl Part {
    pub(crate) fn of(start: u64, bytes: &[u8]) -> Self {
        Self { start, length: bytes.len() as u64, crc: crc32(bytes) }
    }

    pub(crate) fn fits(&self, bytes: &[u8]) -> bool {
        self.length == bytes.len() as u64 && crc32(bytes) == self.crc
    }
}

/// One line of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A batch of a stream.
    Batch(Table, Part),
    /// A row group of a finished table.
    Group(Table, Part),
    /// The end of a finished table, from where it begins: Parquet's footer, its length, and the closing mark.
    Footer(Table, u64, Vec<u8>),
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let (tag, table, start) = match self {
            Self::Batch(table, part) => (0, table, part.start),
            Self::Group(table, part) => (1, table, part.start),
            Self::Footer(table, start, _) => (2, table, *start),
        };
        let mut bytes = vec![tag, *table as u8];
        bytes.extend_from_slice(&start.to_le_bytes());
        match self {
            Self::Batch(_, part) | Self::Group(_, part) => {
                bytes.extend_from_slice(&part.length.to_le_bytes());
                bytes.extend_from_slice(&part.crc.to_le_bytes());
            }
            Self::Footer(_, _, footer) => bytes.extend_from_slice(footer),
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let ([tag, table], rest) = bytes.split_first_chunk::<2>()?;
        let table = *Table::ALL.get(usize::from(*table))?;
        let (start, rest) =
            rest.split_first_chunk().map(|(start, rest)| (u64::from_le_bytes(*start), rest))?;
        if *tag == 2 {
            return Some(Self::Footer(table, start, rest.to_owned()));
        }
        let (length, rest) =
            rest.split_first_chunk().map(|(length, rest)| (u64::from_le_bytes(*length), rest))?;
        let part = Part { start, length, crc: u32::from_le_bytes(rest.try_into().ok()?) };
        match tag {
            0 => Some(Self::Batch(table, part)),
            1 => Some(Self::Group(table, part)),
            _ => None,
        }
    }
}

/// The index of a recording that is being written. Where it cannot be written, readers go without.
#[derive(Debug)]
pub(crate) struct Index {
    folder: Utf8PathBuf,
    file: Option<FrameFile>,
}

impl Index {
    pub(crate) fn create(folder: &Utf8Path) -> Self {
        Self { folder: folder.to_owned(), file: FrameFile::create(&folder.join(INDEX)).ok() }
    }

    pub(crate) fn add(&mut self, mark: &Mark) {
        if let Some(file) = &mut self.file {
            let _ = file.append(&mark.encode());
        }
    }

    /// Leaves these marks alone: the streams are gone.
    pub(crate) fn replace(&mut self, marks: &[Mark]) {
        self.file = None;
        let new = self.folder.join(NEW_INDEX);
        let write = || -> io::Result<()> {
            let mut file = FrameFile::create(&new)?;
            marks.iter().try_for_each(|mark| file.append(&mark.encode()))?;
            fs::rename(&new, self.folder.join(INDEX))
        };
        if write().is_err() {
            let _ = fs::remove_file(&new);
        }
    }
}

/// The marks that can be read; none where there is no index.
pub(crate) fn read(folder: &Utf8Path, problems: &mut Vec<String>) -> Vec<Mark> {
    let path = folder.join(INDEX);
    let bytes = match read_bounded(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                problems.push(format!("`{path}` cannot be read: {error}"));
            }
            return Vec::new();
        }
    };
    let mut marks = Vec::new();
    let rest = read_frames(&bytes, |frame| marks.extend(Mark::decode(frame)));
    if rest > 0 {
        problems.push(format!("`{path}` is damaged at byte {}", bytes.len() - rest));
    }
    marks
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let marks = [
            Mark::Batch(Table::Samples, Part::of(0, b"abc")),
            Mark::Group(Table::Events, Part::of(1 << 40, b"")),
            Mark::Footer(Table::Census, 7, b"PAR1".to_vec()),
        ];
        let mut index = Index::create(folder);
        for mark in &marks {
            index.add(mark);
        }
        let mut problems = Vec::new();
        assert_eq!(read(folder, &mut problems), marks);
        index.replace(&marks[1..]);
        assert_eq!(read(folder, &mut problems), marks[1..]);
        assert!(problems.is_empty());
    }

    #[test]
    fn a_part_knows_its_bytes() {
        let part = Part::of(2, b"abc");
        assert!(part.fits(b"abc") && !part.fits(b"abd") && !part.fits(b"ab"));
    }
}
