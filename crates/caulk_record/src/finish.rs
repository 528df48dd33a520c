//! The end of a recording: streams and ring become Parquet, table by table.

use std::collections::{HashMap, HashSet};
use std::io;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use camino::{Utf8Path, Utf8PathBuf};
use parquet::errors::ParquetError;

use crate::parquet_file::TableFile;
use crate::record::{Record, Row};
use crate::ring::{read_ring, segments};
use crate::stream::batches;
use crate::tables::Table;
use crate::writer::{Pending, remove};

/// Rows per batch of those that come from memory.
const CHUNK: usize = 1024;

/// Finishes every table that can be finished; of the others, keeps the stream, with what waited for it where possible.
/// Says the first failure.
pub(crate) fn tables(folder: &Utf8Path, pending: &mut [Pending]) -> Result<(), (Utf8PathBuf, io::Error)> {
    let mut result = Ok(());
    for part in pending {
        let (table, path) = (part.table, folder.join(part.table.parquet()));
        let finished = table_file(folder, part).map_err(io_error).and_then(|()| remove(part.stream.path()));
        if let Err(error) = finished {
            let _ = remove(&folder.join(TableFile::new_name(table)));
            if !path.exists() && !part.rows.is_empty() {
                let _ = part.stream.append(&part.rows);
            }
            result = result.and(Err((path, error)));
        }
    }
    // While a table is a stream, the ring may have rows that it has not.
    result?;
    segments(folder).iter().try_for_each(|path| remove(path).map_err(|error| (path.clone(), error)))
}

fn table_file(folder: &Utf8Path, pending: &Pending) -> Result<(), ParquetError> {
    let table = pending.table;
    let mut file = TableFile::create(folder, table)?;
    match table {
        Table::Samples | Table::System => looks(folder, pending, &mut file)?,
        Table::Processes => processes(folder, pending, &mut file)?,
        _ => {
            for batch in batches(folder, table, &mut Vec::new()) {
                file.write(&batch)?;
            }
            write_rows(&mut file, table, &pending.rows)?;
        }
    }
    file.finish()
}

fn write_rows(file: &mut TableFile, table: Table, rows: &[Row]) -> Result<(), ParquetError> {
    rows.chunks(CHUNK).try_for_each(|rows| file.write(&table.encode(rows)))
}

/// Batch by batch, the rows that `keep` likes.
fn filtered(
    folder: &Utf8Path,
    table: Table,
    mut each: impl FnMut(Vec<Row>) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    for batch in batches(folder, table, &mut Vec::new()) {
        each(decode(table, &batch)?)?;
    }
    Ok(())
}

fn decode(table: Table, batch: &RecordBatch) -> Result<Vec<Row>, ArrowError> {
    let mut rows = Vec::new();
    table.decode(batch, &mut rows)?;
    Ok(rows)
}

/// From the stream what is older than the ring, then everything in the ring: the last minutes at their full rate.
fn looks(folder: &Utf8Path, pending: &Pending, file: &mut TableFile) -> Result<(), ParquetError> {
    let table = pending.table;
    let mut recent = read_ring(folder, &mut Vec::new());
    let oldest = recent.first().map_or(u64::MAX, |row| row.order);
    recent.retain(|row| Table::of(&row.record) == table);
    let known: HashSet<u64> = recent.iter().map(|row| row.order).collect();
    let mut later: Vec<Row> = pending.rows.clone();
    filtered(folder, table, |rows| {
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
fn processes(folder: &Utf8Path, pending: &Pending, file: &mut TableFile) -> Result<(), ParquetError> {
    let table = pending.table;
    let mut last: HashMap<(u32, u64), u64> = HashMap::new();
    let mut note = |rows: &[Row]| {
        for row in rows {
            let newest = last.entry(key(row)).or_default();
            *newest = row.order.max(*newest);
        }
    };
    filtered(folder, table, |rows| {
        note(&rows);
        Ok(())
    })?;
    note(&pending.rows);
    let keep = |rows: Vec<Row>| -> Vec<Row> {
        rows.into_iter().filter(|row| last.get(&key(row)) == Some(&row.order)).collect()
    };
    filtered(folder, table, |rows| write_rows(file, table, &keep(rows)))?;
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
