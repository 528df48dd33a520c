//! The end of a recording: streams and ring become Parquet, table by table.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use arrow_array::RecordBatch;
use camino::{Utf8Path, Utf8PathBuf};
use parquet::errors::ParquetError;

use crate::index::{self, Index, Mark};
use crate::parquet_file::TableFile;
use crate::pending::Pending;
use crate::record::{Record, Row};
use crate::ring::{read_ring, segments};
use crate::stream::each_batch;
use crate::tables::Table;

/// Rows per batch of those that come from memory.
const CHUNK: usize = 1024;

/// Why a table could not be finished, and which.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) path: Utf8PathBuf,
    pub(crate) source: io::Error,
    /// Rows that waited, and for which there was no space in the stream either.
    pub(crate) left: u64,
}

/// Finishes every table that can be finished; of the others, keeps the stream, with what waited for it where possible.
/// Says the first failure.
pub(crate) fn tables(
    folder: &Utf8Path,
    pending: &mut [Pending],
    index: &mut Index,
) -> Result<(), Unfinished> {
    let (mut result, mut left) = (Ok(()), 0);
    let (batches, mut finished) = (index::read(folder, &mut Vec::new()), Vec::new());
    for part in pending {
        let (table, path) = (part.table, folder.join(part.table.parquet()));
        match table_file(&Source { folder, pending: part, marks: &batches }) {
            Ok(marks) => {
                for mark in &marks {
                    index.add(mark);
                }
                finished.extend(marks);
                result = result.and(remove(part.stream.path()).map_err(|error| (path, error)));
            }
            Err(error) => {
                let _ = remove(&folder.join(TableFile::new_name(table)));
                if !part.rows.is_empty() {
                    match part.stream.append(&part.rows) {
                        Ok(mark) => index.add(&mark),
                        Err(_) => left += part.rows.len() as u64,
                    }
                }
                result = result.and(Err((path, io_error(error))));
            }
        }
    }
    // While a table is a stream, the ring may have rows that it has not.
    result.map_err(|(path, source)| Unfinished { path, source, left })?;
    index.replace(&finished);
    let remove = |path: &Utf8PathBuf| {
        remove(path).map_err(|source| Unfinished { path: path.clone(), source, left: 0 })
    };
    segments(folder).iter().try_for_each(remove)
}

/// Where a table's rows are: in its stream, and waiting in memory.
struct Source<'a> {
    folder: &'a Utf8Path,
    pending: &'a Pending,
    marks: &'a [Mark],
}

impl Source<'_> {
    fn each_batch(
        &self,
        each: impl FnMut(RecordBatch) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        each_batch(self.folder, self.pending.table, self.marks, &mut Vec::new(), each)
    }

    fn each_rows(
        &self,
        mut each: impl FnMut(Vec<Row>) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        self.each_batch(|batch| {
            let mut rows = Vec::new();
            self.pending.table.decode(&batch, &mut rows)?;
            each(rows)
        })
    }
}

fn table_file(source: &Source<'_>) -> Result<Vec<Mark>, ParquetError> {
    let table = source.pending.table;
    let mut file = TableFile::create(source.folder, table)?;
    match table {
        Table::Samples | Table::System => looks(source, &mut file)?,
        Table::Processes => processes(source, &mut file)?,
        _ => {
            source.each_batch(|batch| file.write(&batch))?;
            write_rows(&mut file, table, &source.pending.rows)?;
        }
    }
    file.finish()
}

fn write_rows(file: &mut TableFile, table: Table, rows: &[Row]) -> Result<(), ParquetError> {
    rows.chunks(CHUNK).try_for_each(|rows| file.write(&table.encode(rows)))
}

/// From the stream what is older than the ring, then everything in the ring: the last minutes at their full rate.
fn looks(source: &Source<'_>, file: &mut TableFile) -> Result<(), ParquetError> {
    let table = source.pending.table;
    let mut recent = read_ring(source.folder, &mut Vec::new());
    let oldest = recent.first().map_or(u64::MAX, |row| row.order);
    recent.retain(|row| Table::of(&row.record) == table);
    let known: HashSet<u64> = recent.iter().map(|row| row.order).collect();
    let mut later: Vec<Row> = source.pending.rows.clone();
    source.each_rows(|rows| {
        let (old, new): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.order < oldest);
        later.extend(new);
        write_rows(file, table, &old)
    })?;
    // The ring misses rows that came while it could not be written.
    recent.extend(later.into_iter().filter(|row| !known.contains(&row.order)));
    recent.sort_by_key(|row| row.order);
    write_rows(file, table, &recent)
}

/// The last record of each process.
fn processes(source: &Source<'_>, file: &mut TableFile) -> Result<(), ParquetError> {
    let (table, pending) = (source.pending.table, source.pending);
    let mut last: HashMap<(u32, u64), u64> = HashMap::new();
    let mut note = |rows: &[Row]| {
        for row in rows {
            let newest = last.entry(key(row)).or_default();
            *newest = row.order.max(*newest);
        }
    };
    source.each_rows(|rows| {
        note(&rows);
        Ok(())
    })?;
    note(&pending.rows);
    let keep = |rows: Vec<Row>| -> Vec<Row> {
        rows.into_iter().filter(|row| last.get(&key(row)) == Some(&row.order)).collect()
    };
    source.each_rows(|rows| write_rows(file, table, &keep(rows)))?;
    write_rows(file, table, &keep(pending.rows.clone()))
}

fn key(row: &Row) -> (u32, u64) {
    match &row.record {
        Record::Process(process) => (process.pid, process.first_ns),
        _ => (0, 0),
    }
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

/// Removes a file that may be gone already.
fn remove(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
