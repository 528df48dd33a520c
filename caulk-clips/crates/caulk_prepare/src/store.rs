//! The folder of a prepared set: a log that says what is there, tables that follow from it.
//!
//! A line of the log is written and synced after the clips that it names have been moved to their places. So whatever kills the
//! program, the log names whole clips only; what it does not name is made again, to the same bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::record::{Head, Record};
use serde::Serialize;

use crate::lock::{self, Lock};
use crate::log::{Logged, difference, mend, read_logs};
use crate::partial;

/// Which part of the videos one program prepares: every `count`-th from the `index`-th on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// Programs that share the work.
    pub count: u32,
}

impl Shard {
    /// Whether the video at that place of the manifest is in this part.
    pub(crate) fn has(self, at: usize) -> bool {
        at as u64 % u64::from(self.count.max(1)) == u64::from(self.index)
    }

    /// Names of files that each shard has for itself.
    pub(crate) fn file(self, name: &str, ending: &str) -> String {
        if self.count == 1 {
            format!("{name}{ending}")
        } else {
            format!("{name}-{}-of-{}{ending}", self.index, self.count)
        }
    }
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses.
    #[error("failed to {what} `{path}`")]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: Utf8PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else is at it.
    #[error("another `caulk clips prepare` is writing to `{0}`")]
    Busy(Utf8PathBuf),
    /// Others divide the set otherwise.
    #[error(
        "`{folder}` is being written to in {there} shards, not in {here}\nhint: wait until they are done, or divide by {there}"
    )]
    Divided {
        /// The folder.
        folder: Utf8PathBuf,
        /// How many shards those have who are there.
        there: u32,
        /// How many this one has.
        here: u32,
    },
    /// The clips that are there were made otherwise.
    #[error(
        "`{path}` holds clips of other settings: {difference}\nhint: use the same settings, or another folder"
    )]
    Other {
        /// The log.
        path: Utf8PathBuf,
        /// What differs.
        difference: String,
    },
    /// Not a log of this program.
    #[error("`{path}`, line {line}, is no line of a log: {reason}")]
    Broken {
        /// The log.
        path: Utf8PathBuf,
        /// Where.
        line: usize,
        /// Why.
        reason: String,
    },
}

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

pub(crate) fn io_error<'a>(
    what: &'static str,
    path: &'a Utf8Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io { what, path: path.to_owned(), source }
}
