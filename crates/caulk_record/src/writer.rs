//! Recording: every record to the ring at once, to its table's stream in batches, to Parquet at the end.

use std::collections::HashMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::{Message, NoteCode};
use caulk_core::{AgentEvent, GpuSample, Note, ProcessRecord, RunInfo, Sample, SystemSample};

use crate::finish::Unfinished;
use crate::index::Index;
use crate::pending::Pending;
use crate::record::{Record, Row};
use crate::ring::Ring;
use crate::tables::Table;
use crate::thin::Thin;
use crate::{WriteError, finish, head, home, private, redact};

/// A process that is only seen again goes to the ring so often, in nanoseconds.
const SEEN_NS: u64 = 1_000_000_000;

/// A recording that is being made.
///
/// Times come with the records; the newest one seen is the present. Taking a record never fails: what cannot be written
/// is held for a while and then given up, which the next [`Writer::flush`] says once and `run.json` at the end.
#[derive(Debug)]
pub struct Writer {
    folder: Utf8PathBuf,
    ring: Option<Ring>,
    /// Something that waits for its batch is not in the ring: it would be lost if the recorder were killed now.
    exposed: bool,
    index: Index,
    thin: Thin,
    tables: Vec<Pending>,
    /// Where in `tables` a process's record waits, and up to which time the ring has it.
    processes: HashMap<(u32, u64), (usize, u64)>,
    next_order: u64,
    now_ns: u64,
    failure: Option<WriteError>,
    warned: bool,
    lost: u64,
    reason: String,
}

impl Writer {
    /// Makes the folder (for its owner alone) and its `run.json`, which says that the run is not complete. A home folder
    /// that does not exist yet gets a `.gitignore` over everything in it.
    ///
    /// # Errors
    /// [`WriteError::Create`] if the folder cannot be made or written to, [`WriteError::Occupied`] if a recording is
    /// there already, [`WriteError::Foreign`] if somebody else has put the folder there.
    pub fn create(folder: &Utf8Path, info: &RunInfo) -> Result<Self, WriteError> {
        let failed = |source| WriteError::Create { path: folder.to_owned(), source };
        home::prepare(folder, folder)?;
        if !private::make(folder).map_err(failed)? {
            private::refuse_foreign(folder)?;
        }
        if crate::reader::holds_recording(folder) {
            return Err(WriteError::Occupied { path: folder.to_owned() });
        }
        let info = RunInfo { complete: false, ..head::cleaned(info) };
        head::write(folder, &info).map_err(failed)?;
        let pending = |table| Pending::new(folder, table);
        let mut writer = Self {
            folder: folder.to_owned(),
            ring: None,
            exposed: false,
            index: Index::create(folder),
            thin: Thin::default(),
            tables: Table::ALL.map(pending).into(),
            processes: HashMap::new(),
            next_order: 0,
            now_ns: info.start_ns,
            failure: None,
            warned: false,
            lost: 0,
            reason: String::new(),
        };
        match Ring::create(folder) {
            Ok(ring) => writer.ring = Some(ring),
            Err(error) => writer.fail(folder.join("ring-1.log"), error),
        }
        Ok(writer)
    }

    /// The folder of the recording.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Takes a look at a process. All of the last ten minutes stay, of the time before the highest and the fullest of
    /// every [`WINDOW_NS`](crate::WINDOW_NS).
    pub fn sample(&mut self, sample: &Sample) {
        self.take(Record::Sample(*sample));
    }

    /// Takes a look at the surroundings; kept as samples are.
    pub fn system(&mut self, sample: &SystemSample) {
        self.take(Record::System(*sample));
    }

    /// Takes a look at a GPU. All of them stay: they are few.
    pub fn gpu(&mut self, sample: &GpuSample) {
        self.take(Record::Gpu(sample.clone()));
    }

    /// Takes what an agent said. All of it stays, but for secrets in the arguments of a `Hello`.
    pub fn event(&mut self, event: &AgentEvent) {
        let mut event = event.clone();
        if let Message::Hello(hello) = &mut event.message {
            hello.argv = redact(&hello.argv);
        }
        self.take(Record::Event(event));
    }

    /// Takes what is known of a process; the last record of a process (of equal `pid` and `first_ns`) counts. May be
    /// called as often as anything changes; a mere `last_ns` is gathered in memory for up to a second.
    pub fn process(&mut self, process: &ProcessRecord) {
        let key = (process.pid, process.first_ns);
        let pending = &mut self.tables[Table::Processes as usize];
        let place = pending.rows.len();
        let (place, ring_ns) = self.processes.entry(key).or_insert((place, process.last_ns));
        let Some(Row { order, record: Record::Process(old) }) = pending.rows.get_mut(*place) else {
            return self.take(Record::Process(process.clone()));
        };
        let only_seen_again = ProcessRecord { last_ns: process.last_ns, ..old.clone() } == *process;
        old.clone_from(process);
        if only_seen_again && process.last_ns < ring_ns.saturating_add(SEEN_NS) {
            return;
        }
        *ring_ns = process.last_ns;
        *order = self.next_order;
        self.next_order += 1;
        let row = Row { order: *order, record: Record::Process(process.clone()) };
        self.push_ring(&row);
    }

    /// Makes sure that what was taken survives the recorder, and writes the batches that are due. Cheap when none is:
    /// once a second and at every boundary is fine.
    ///
    /// # Errors
    /// [`WriteError::Write`] the first time that something could not be written, and never again.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.close_windows(self.now_ns);
        for index in 0..self.tables.len() {
            if self.tables[index].is_due(self.now_ns, self.exposed) {
                self.write_batch(index);
            }
        }
        self.exposed &= self.tables.iter().any(|pending| !pending.rows.is_empty());
        if self.ring.is_none() {
            self.ring = Ring::create(&self.folder).ok();
        }
        let first = self.tables.iter().filter_map(Pending::first_order).chain(self.thin.first_order()).min();
        if let Some(ring) = &mut self.ring {
            ring.trim(self.now_ns, first.unwrap_or(u64::MAX), self.thin.processes());
        }
        self.outcome()
    }

    /// Writes a new `run.json`, still not complete.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn update_info(&mut self, info: &RunInfo) -> Result<(), WriteError> {
        self.write_head(&RunInfo { complete: false, ..head::cleaned(info) });
        self.outcome()
    }

    /// Brings the tables into their final form, and writes `run.json` for the last time. A table for which there is no
    /// space stays a stream, and the recording stays incomplete, but readable.
    ///
    /// # Errors
    /// [`WriteError::Finish`] or [`WriteError::Write`] if something could not be written and nothing was said before.
    pub fn finish(mut self, info: &RunInfo) -> Result<(), WriteError> {
        self.close_windows(u64::MAX);
        // The ring's file is closed before it is removed: on some network file systems that matters.
        self.ring = None;
        let finished = finish::tables(&self.folder, &mut self.tables, &mut self.index);
        let complete = finished.is_ok();
        if let Err(Unfinished { path, source, left }) = finished {
            // What waits is in the ring, unless that could not be written either.
            self.lost += if self.exposed { left } else { 0 };
            self.reason = source.to_string();
            self.failure.get_or_insert(WriteError::Finish { path, source });
        }
        let mut info = RunInfo { complete, ..head::cleaned(info) };
        if self.lost > 0 {
            let text = format!(
                "{} records of this run could not be written ({}): the report rests on the others. Make room, or record \
                 elsewhere with `--output DIR`",
                self.lost, self.reason
            );
            info.notes.push(Note::new(NoteCode::RecordsLost, text));
        }
        self.write_head(&info);
        self.outcome()
    }

    fn write_head(&mut self, info: &RunInfo) {
        if let Err(error) = head::write(&self.folder, info) {
            self.fail(self.folder.join(head::HEAD), error);
        }
    }

    fn take(&mut self, record: Record) {
        self.now_ns = self.now_ns.max(record.time_ns());
        let row = Row { order: self.next_order, record };
        self.next_order += 1;
        self.push_ring(&row);
        let mut closed = Vec::new();
        self.thin.push(row, &mut |row| closed.push(row));
        for row in closed {
            self.wait(row);
        }
    }

    fn close_windows(&mut self, now_ns: u64) {
        let mut closed = Vec::new();
        self.thin.close(now_ns, &mut |row| closed.push(row));
        for row in closed {
            self.wait(row);
        }
    }

    fn push_ring(&mut self, row: &Row) {
        match self.ring.as_mut().map(|ring| ring.push(row).map_err(|error| (ring.path(), error))) {
            Some(Ok(())) => (),
            Some(Err((path, error))) => {
                self.exposed = true;
                self.fail(path, error);
            }
            None => self.exposed = true,
        }
    }

    /// Adds the row to those that wait for a batch.
    fn wait(&mut self, row: Row) {
        let pending = &mut self.tables[Table::of(&row.record) as usize];
        let given_up = pending.push(row, self.now_ns);
        self.lost += given_up;
        if given_up > 0 && pending.table == Table::Processes {
            self.processes.clear(); // Their places have changed.
        }
    }

    fn write_batch(&mut self, index: usize) {
        let pending = &mut self.tables[index];
        match pending.write(self.now_ns) {
            Ok(mark) => {
                self.index.add(&mark);
                if pending.table == Table::Processes {
                    self.processes.clear();
                }
            }
            Err(error) => {
                let path = pending.stream.path().to_owned();
                self.fail(path, error);
            }
        }
    }

    fn fail(&mut self, path: Utf8PathBuf, source: io::Error) {
        self.reason = source.to_string();
        if !self.warned {
            self.failure.get_or_insert(WriteError::Write { path, source });
        }
    }

    /// What went wrong since the last time, unless it was said before.
    fn outcome(&mut self) -> Result<(), WriteError> {
        let failure = self.failure.take().filter(|_| !self.warned);
        self.warned |= failure.is_some();
        failure.map_or(Ok(()), Err)
    }
}
