//! Reading a recording: complete, still growing, left by a recorder that was killed, or damaged.

use std::collections::HashMap;
use std::convert::Infallible;

use camino::Utf8Path;
use caulk_core::{ProcessRecord, Recording, RunInfo};

use crate::head::{self, HEAD};
use crate::index::{self, Mark};
use crate::record::{Record, Row};
use crate::ring::{read_ring, segments};
use crate::stream::each_batch;
use crate::tables::Table;
use crate::{ReadError, parquet_file};

/// Reads what a run left. What cannot be read is said in [`Recording::problems`].
///
/// # Errors
/// [`ReadError`] if there is no recording at all, it cannot be opened, or a later version wrote it.
pub fn read(folder: &Utf8Path) -> Result<Recording, ReadError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut problems = Vec::new();
        let info = open(folder, &mut problems)?;
        let (rows, whole) = read_rows(folder, info.complete, &mut problems);
        if whole || tries == TRIES {
            return Ok(assemble(info, rows, problems));
        }
    }
}

/// Attempts to overtake a writer that moves things on while they are read.
const TRIES: u32 = 4;

/// All rows, some of them twice, and whether none can have been missed.
///
/// It moves rows from the ring to a stream to Parquet; following them, none is missed that was there at the first look.
/// What it takes after that may be in one table and not yet in another: a second look at the ring fills the gaps, if it
/// goes back to where the first one ended.
fn read_rows(folder: &Utf8Path, complete: bool, problems: &mut Vec<String>) -> (Vec<Row>, bool) {
    let was_open = !segments(folder).is_empty();
    let mut rows = read_ring(folder, problems);
    let seen = rows.last().map_or(0, |row| row.order);
    let marks = index::read(folder, problems);
    for table in Table::ALL {
        rows.append(&mut read_stream(folder, table, &marks, problems));
        match parquet_file::read(folder, table, &marks, problems) {
            Some(mut finished) => rows.append(&mut finished),
            None if complete && table.is_always_there() => {
                problems.push(format!("`{}` is missing", folder.join(table.parquet())));
            }
            None => (),
        }
    }
    if !was_open {
        return (rows, true);
    }
    let mut newer = read_ring(folder, &mut Vec::new());
    let joins = newer.first().map_or(!segments(folder).is_empty(), |row| row.order <= seen + 1);
    rows.append(&mut newer);
    (rows, joins)
}

/// Reads `run.json` alone.
///
/// # Errors
/// As [`read`].
pub fn read_info(folder: &Utf8Path) -> Result<RunInfo, ReadError> {
    open(folder, &mut Vec::new())
}

fn open(folder: &Utf8Path, problems: &mut Vec<String>) -> Result<RunInfo, ReadError> {
    let metadata = folder.metadata();
    metadata.map_err(|source| ReadError::Open { path: folder.to_owned(), source })?;
    if let Some(info) = head::read(folder, problems)? {
        return Ok(info);
    }
    if holds_recording(folder) {
        problems.push(format!("`{}` is missing", folder.join(HEAD)));
        return Ok(RunInfo::default());
    }
    Err(ReadError::Foreign { path: folder.to_owned() })
}

/// Whether there is anything of a recording in the folder.
pub(crate) fn holds_recording(folder: &Utf8Path) -> bool {
    let holds = |name: &str| folder.join(name).is_file();
    let table = |table: &Table| holds(&table.stream()) || holds(&table.parquet());
    holds(HEAD) || !segments(folder).is_empty() || Table::ALL.iter().any(table)
}

fn read_stream(folder: &Utf8Path, table: Table, marks: &[Mark], problems: &mut Vec<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut damage = None;
    let Ok(()) = each_batch(folder, table, marks, problems, |batch| {
        damage = damage.take().or(table.decode(&batch, &mut rows).err());
        Ok::<_, Infallible>(())
    });
    problems.extend(damage.map(|error| format!("`{}`: {error}", folder.join(table.stream()))));
    rows
}

/// Brings the rows in order, each once, to their places.
pub(crate) fn assemble(info: RunInfo, mut rows: Vec<Row>, problems: Vec<String>) -> Recording {
    rows.sort_by_key(|row| row.order);
    // A number belongs to one record; rows of foreign tables without numbers would all have zero.
    rows.dedup_by(|a, b| a.order == b.order && Table::of(&a.record) == Table::of(&b.record));
    let mut recording = Recording { info, problems, ..Recording::default() };
    let mut places: HashMap<(u32, u64), usize> = HashMap::new();
    for row in rows {
        match row.record {
            Record::Sample(sample) => recording.samples.push(sample),
            Record::System(sample) => recording.system.push(sample),
            Record::Event(event) => recording.events.push(event),
            Record::Gpu(sample) => recording.gpus.push(sample),
            Record::Process(process) => keep_last(&mut recording.processes, &mut places, process),
        }
    }
    recording.samples.sort_by_key(|sample| sample.time_ns);
    recording.system.sort_by_key(|sample| sample.time_ns);
    recording.gpus.sort_by_key(|sample| sample.time_ns);
    recording.processes.sort_by_key(|process| (process.first_ns, process.pid));
    recording
}

fn keep_last(
    processes: &mut Vec<ProcessRecord>,
    places: &mut HashMap<(u32, u64), usize>,
    process: ProcessRecord,
) {
    let place = *places.entry((process.pid, process.first_ns)).or_insert(processes.len());
    match processes.get_mut(place) {
        Some(known) => *known = process,
        None => processes.push(process),
    }
}
