//! The folder of a prepared set: a log that says what is there, tables that follow from it.
//!
//! A line of the log is written and synced after the clips that it names have been moved to their places. So whatever kills the
//! program, the log names whole clips only; what it does not name is made again, to the same bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::record::{Head, Record};
use serde::Serialize;

use crate::error::{StoreError, io_error};
use crate::lock::{self, Lock};
use crate::log::{Logged, difference, mend, read_logs};
use crate::partial;
use crate::shard::Shard;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Store {
    folder: Utf8PathBuf,
    shard: Shard,
    log: File,
    failed: File,
    _lock: Lock,
}

impl Store {
    /// Opens or makes a folder for clips made in one way, and says what is there already, of all shards.
    ///
    /// # Errors
    /// If another program writes to it, or it holds clips of other settings.
    pub(crate) fn open(
        folder: &Utf8Path,
        shard: Shard,
        head: &Head,
    ) -> Result<(Self, Vec<Record>), StoreError> {
        fs::create_dir_all(folder).map_err(io_error("make", folder))?;
        let turn = lock::turn(folder)?;
        let lock = Lock::take(folder, shard, &turn)?;
        if lock.alone {
            partial::sweep(folder);
        }
        let path = folder.join(shard.file("clips", ".jsonl"));
        mend(&path)?;
        let logged = read_logs(folder)?;
        if let Some(old) = &logged.head
            && let Some(difference) = difference(old, head)
        {
            return Err(StoreError::Other { path, difference });
        }
        let is_new = fs::metadata(&path).map_or(true, |data| data.len() == 0);
        let log =
            OpenOptions::new().create(true).append(true).open(&path).map_err(io_error("open", &path))?;
        // Videos that failed are tried again, so the list begins anew.
        let failed = folder.join(shard.file("failed", ".jsonl"));
        let failed = File::create(&failed).map_err(io_error("open", &failed))?;
        let mut store = Self { folder: folder.to_owned(), shard, log, failed, _lock: lock };
        if is_new {
            store.append(head)?;
        }
        Ok((store, logged.records))
    }

    /// Writes one line of the log to the disk.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn append(&mut self, line: &impl Serialize) -> Result<(), StoreError> {
        let path = self.folder.join(self.shard.file("clips", ".jsonl"));
        let write = |log: &mut File| {
            log.write_all((serde_json::to_string(line)? + "\n").as_bytes())?;
            log.sync_data()
        };
        write(&mut self.log).map_err(io_error("write to", &path))
    }

    /// Lists a video that gave no clips. The list is put in order at the end; nobody relies on it before.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn fail(&mut self, line: &impl Serialize) -> Result<(), StoreError> {
        let write = |failed: &mut File| failed.write_all((serde_json::to_string(line)? + "\n").as_bytes());
        write(&mut self.failed)
            .map_err(io_error("write to", &self.folder.join(self.shard.file("failed", ".jsonl"))))
    }

    /// What the log has to keep, whoever works on it now: all that it says, and where nobody else is, what other logs say.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(crate) fn kept(&self) -> Result<Vec<Record>, StoreError> {
        if self.shard.count == 1 {
            return Ok(read_logs(&self.folder)?.records);
        }
        let mut own = Logged::default();
        own.read(&self.folder.join(self.shard.file("clips", ".jsonl")))?;
        Ok(own.records)
    }

    /// Writes the log anew, in the order that is given, so that it tells nothing of how often the program was stopped.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn settle<'r>(
        &mut self,
        head: &Head,
        records: impl Iterator<Item = &'r Record>,
    ) -> Result<(), StoreError> {
        let lines = records.map(serde_json::to_string);
        let lines: Result<Vec<String>, _> =
            std::iter::once(serde_json::to_string(head)).chain(lines).collect();
        let path = self.folder.join(self.shard.file("clips", ".jsonl"));
        let text = lines.map_err(io::Error::from).map_err(io_error("write", &path))?.join("\n") + "\n";
        partial::replace(&path, self.shard, &text).map_err(io_error("write", &path))
    }

    /// Replaces a file of the folder.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        partial::replace(&path, self.shard, text).map_err(io_error("write", &path))
    }

    /// Replaces a file that each shard has for itself.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn replace_own(&self, name: &str, ending: &str, text: &str) -> Result<(), StoreError> {
        self.replace(&self.shard.file(name, ending), text)
    }

    /// Waits until no other shard is at the tables, which follow from the logs of all.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn turn(&self) -> Result<File, StoreError> {
        lock::turn(&self.folder)
    }

    /// Opens a table to which rows are appended as they come.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn appending(&self, name: &str) -> Result<File, StoreError> {
        let path = self.folder.join(name);
        OpenOptions::new().append(true).open(&path).map_err(io_error("open", &path))
    }
}
