//! A run in the home folder: where, what, how large.

use camino::Utf8PathBuf;
use caulk_core::RunInfo;
use jiff::Timestamp;

use crate::error::{Candidate, ReadError};

/// A run in the home folder.
#[derive(Debug)]
pub struct RunEntry {
    /// Its folder.
    pub folder: Utf8PathBuf,
    /// Its head, or why that cannot be read.
    pub info: Result<RunInfo, ReadError>,
    /// Size of its files, in bytes.
    pub bytes: u64,
}

impl RunEntry {
    /// Name of the folder: `<time>-<name>`.
    pub fn id(&self) -> &str {
        self.folder.file_name().unwrap_or_default()
    }

    /// Sorts by start, within a second by the machine's clock; what cannot be read by the time in its name, which is as
    /// good within a time zone.
    pub fn age(&self) -> (Option<Timestamp>, u64, &str) {
        let info = self.info.as_ref().ok();
        let started = info.and_then(|info| info.started.parse::<Timestamp>().ok());
        (started, info.map_or(0, |info| info.start_ns), self.id())
    }
}

impl Candidate {
    /// What to show of a run.
    pub(crate) fn of(run: &RunEntry) -> Self {
        let info = run.info.as_ref().ok();
        Self {
            id: run.id().to_owned(),
            started: info.map_or_else(String::new, |info| info.started.clone()),
            command: info.map_or_else(Vec::new, |info| info.target.command.clone()),
        }
    }
}
