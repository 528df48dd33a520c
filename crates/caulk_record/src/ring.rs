//! The ring: everything recent, at its full rate, in a few files of which the oldest goes when a new one comes.

use std::collections::VecDeque;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};

use crate::frames::{FrameFile, read_frames};
use crate::record::Row;

/// For how long the ring keeps what the streams have, in nanoseconds. Samples of that age are there at their full rate.
pub const RING_NS: u64 = 600_000_000_000;

/// A segment is closed at this size ...
const SEGMENT_BYTES: u64 = 256 << 10;
/// ... or age.
const SEGMENT_NS: u64 = 120_000_000_000;
/// Closed segments beyond this size go early, plus so much for every process: four looks a second need half of it.
const BASE_BYTES: u64 = 512 << 10;
const PROCESS_BYTES: u64 = 128 << 10;

/// First frame of a segment, before its schema.
const MARK: &[u8] = b"caulk ring ";

/// The segments of a recording that is being written.
#[derive(Debug)]
pub(crate) struct Ring {
    folder: Utf8PathBuf,
    file: FrameFile,
    current: Segment,
    closed: VecDeque<Segment>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    number: u32,
    bytes: u64,
    first_ns: u64,
    newest_ns: u64,
    last_order: u64,
}

impl Ring {
    pub(crate) fn create(folder: &Utf8Path) -> io::Result<Self> {
        let current = Segment { number: 1, ..Segment::default() };
        let file = open_segment(folder, 1)?;
        Ok(Self { folder: folder.to_owned(), file, current, closed: VecDeque::new() })
    }

    /// Where the next row goes, for messages.
    pub(crate) fn path(&self) -> Utf8PathBuf {
        self.folder.join(segment_name(self.current.number))
    }

    /// Writes the row. When this returns, the row survives the process.
    pub(crate) fn push(&mut self, row: &Row) -> io::Result<()> {
        let time_ns = row.record.time_ns();
        if self.current.bytes >= SEGMENT_BYTES || time_ns >= self.current.first_ns.saturating_add(SEGMENT_NS)
        {
            self.rotate(time_ns);
        }
        self.file.append(&row.encode())?;
        self.current.bytes = self.file.bytes();
        self.current.newest_ns = self.current.newest_ns.max(time_ns);
        self.current.last_order = row.order;
        Ok(())
    }

    /// Begins a new segment; where none can be made, the old one grows on.
    fn rotate(&mut self, time_ns: u64) {
        if self.current.newest_ns == 0 {
            self.current.first_ns = time_ns;
            return;
        }
        let number = self.current.number + 1;
        if let Ok(file) = open_segment(&self.folder, number) {
            self.file = file;
            self.closed.push_back(self.current);
            self.current = Segment { number, first_ns: time_ns, ..Segment::default() };
        }
    }

    /// Removes segments of which the streams have everything (all rows before `first_pending`) and that are too old, or
    /// too many for so many processes.
    pub(crate) fn trim(&mut self, now_ns: u64, first_pending: u64, processes: usize) {
        let allowed = BASE_BYTES + PROCESS_BYTES * processes as u64;
        while let Some(oldest) = self.closed.front() {
            let total: u64 =
                self.current.bytes + self.closed.iter().map(|segment| segment.bytes).sum::<u64>();
            let expendable = now_ns.saturating_sub(oldest.newest_ns) > RING_NS || total > allowed;
            if oldest.last_order >= first_pending || !expendable {
                break;
            }
            let _ = std::fs::remove_file(self.folder.join(segment_name(oldest.number)));
            self.closed.pop_front();
        }
    }
}

fn open_segment(folder: &Utf8Path, number: u32) -> io::Result<FrameFile> {
    let mut file = FrameFile::create(&folder.join(segment_name(number)))?;
    file.append(&[MARK, &crate::SCHEMA.to_le_bytes()].concat())?;
    Ok(file)
}

fn segment_name(number: u32) -> String {
    format!("ring-{number}.log")
}

/// Number of the segment with this file name.
pub(crate) fn segment_number(name: &str) -> Option<u32> {
    name.strip_prefix("ring-")?.strip_suffix(".log")?.parse().ok()
}

/// The segments in the folder, oldest first.
pub(crate) fn segments(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| segment_number(entry.file_name())).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| folder.join(segment_name(number))).collect()
}

/// Every row in the ring that can be read, oldest first.
pub(crate) fn read_ring(folder: &Utf8Path, problems: &mut Vec<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    for path in segments(folder) {
        match read_bounded(&path) {
            Ok(bytes) => read_segment(&path, &bytes, &mut rows, problems),
            // Its rows have just gone to the streams.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (),
            Err(error) => problems.push(format!("`{path}` cannot be read: {error}")),
        }
    }
    rows
}

fn read_segment(path: &Utf8Path, bytes: &[u8], rows: &mut Vec<Row>, problems: &mut Vec<String>) {
    let mut frames = Vec::new();
    let rest = read_frames(bytes, |frame| frames.push(frame));
    let schema =
        frames.first().and_then(|head| head.strip_prefix(MARK)?.try_into().ok()).map(u32::from_le_bytes);
    match schema {
        Some(schema) if schema <= crate::SCHEMA => {
            let before = rows.len();
            rows.extend(frames[1..].iter().filter_map(|frame| Row::decode(frame)));
            let unknown = frames.len() - 1 - (rows.len() - before);
            if unknown > 0 {
                problems.push(format!("`{path}` holds {unknown} records that this caulk cannot read"));
            }
        }
        Some(_) => problems.push(format!("`{path}` was written by a later caulk; upgrade to read it")),
        // A segment that has just been made, or was cut to nothing.
        None if frames.is_empty() => (),
        None => problems.push(format!("`{path}` is not a ring of caulk")),
    }
    if rest > 0 {
        problems.push(format!("`{path}` stops in the middle of a record at byte {}", bytes.len() - rest));
    }
}

/// The file's bytes; of a file that is far too long to be ours, the first of them.
pub(crate) fn read_bounded(path: &Utf8Path) -> io::Result<Vec<u8>> {
    const LONGEST: u64 = 64 << 20;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::record::Record;
    use caulk_core::Sample;

    const SECOND: u64 = 1_000_000_000;

    fn row(order: u64, seconds: u64) -> Row {
        Row { order, record: Record::Sample(Sample { time_ns: seconds * SECOND, ..Sample::default() }) }
    }

    /// Pushes one row a second and trims; returns the order of the oldest row that is left.
    fn check(seconds: u64, first_pending: u64) -> u64 {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(guard.path()).unwrap();
        let mut ring = Ring::create(folder).unwrap();
        for second in 0..seconds {
            ring.push(&row(second, 1000 + second)).unwrap();
            ring.trim((1000 + second) * SECOND, first_pending.min(second), 1);
        }
        let mut problems = Vec::new();
        let rows = read_ring(folder, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        assert!(rows.windows(2).all(|two| two[0].order + 1 == two[1].order));
        assert_eq!(rows.last().unwrap().order, seconds - 1);
        rows[0].order
    }

    #[test]
    fn the_last_ten_minutes_stay_and_hardly_more() {
        assert_eq!(check(500, u64::MAX), 0);
        let oldest = check(3000, u64::MAX);
        assert!((3000 - 600 - 240..=3000 - 600).contains(&oldest), "{oldest}");
    }

    #[test]
    fn rows_that_no_stream_has_stay() {
        assert!((0..=100).contains(&check(3000, 100)));
    }

    #[test]
    fn a_later_schema_is_told() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(guard.path()).unwrap();
        let mut file = FrameFile::create(&folder.join("ring-1.log")).unwrap();
        file.append(&[MARK, &99_u32.to_le_bytes()].concat()).unwrap();
        file.append(&row(0, 1).encode()).unwrap();
        let mut problems = Vec::new();
        assert!(read_ring(folder, &mut problems).is_empty());
        assert!(problems[0].contains("later caulk"), "{problems:?}");
    }
}
