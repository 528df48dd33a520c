//! Rows on their way to a table's stream: they wait for their neighbours.

use std::io;

use camino::Utf8Path;

use crate::index::Mark;
use crate::record::Row;
use crate::stream::Stream;
use crate::tables::Table;

/// Rows wait at most so long, in nanoseconds ...
const BATCH_NS: u64 = 30_000_000_000;
/// ... or until there are so many. The ring has them meanwhile.
const BATCH_ROWS: usize = 1024;
/// Processes change seldom, and a batch of a few is nearly all overhead.
const PROCESS_BATCH_NS: u64 = 300_000_000_000;
/// While a stream cannot be written: time between attempts, in nanoseconds, ...
const RETRY_NS: u64 = 10_000_000_000;
/// ... and rows that are held for it.
const HELD_ROWS: usize = 8192;

/// A table's stream, and the rows that are not in it yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) table: Table,
    pub(crate) stream: Stream,
    pub(crate) rows: Vec<Row>,
    since_ns: u64,
    retry_ns: Option<u64>,
}

impl Pending {
    pub(crate) fn new(folder: &Utf8Path, table: Table) -> Self {
        Self { table, stream: Stream::new(folder, table), rows: Vec::new(), since_ns: 0, retry_ns: None }
    }

    /// Adds a row. Returns how many had to go for it: the oldest, because what comes before a death matters most.
    pub(crate) fn push(&mut self, row: Row, now_ns: u64) -> u64 {
        if self.rows.is_empty() {
            self.since_ns = now_ns;
        }
        self.rows.push(row);
        if self.rows.len() <= HELD_ROWS {
            return 0;
        }
        self.rows.drain(..HELD_ROWS / 2).len() as u64
    }

    /// Number of the oldest row.
    pub(crate) fn first_order(&self) -> Option<u64> {
        self.rows.iter().map(|row| row.order).min()
    }

    /// Whether a batch should be written now; in a hurry, any is due.
    pub(crate) fn is_due(&self, now_ns: u64, hurry: bool) -> bool {
        let patience = if self.table == Table::Processes { PROCESS_BATCH_NS } else { BATCH_NS };
        let waited = now_ns.saturating_sub(self.since_ns) >= patience;
        match self.retry_ns {
            _ if self.rows.is_empty() => false,
            Some(retry_ns) => now_ns >= retry_ns,
            None => hurry || waited || self.rows.len() >= BATCH_ROWS,
        }
    }

    /// Writes the rows as one batch and says where it lies; keeps them for another attempt if that fails.
    pub(crate) fn write(&mut self, now_ns: u64) -> io::Result<Mark> {
        let result = self.stream.append(&self.rows);
        self.retry_ns = result.is_err().then(|| now_ns.saturating_add(RETRY_NS));
        if result.is_ok() {
            self.rows.clear();
        }
        result
    }
}
