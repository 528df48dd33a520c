//! Why a folder of clips cannot be used.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

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

pub(crate) fn io_error<'a>(
    what: &'static str,
    path: &'a Utf8Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io { what, path: path.to_owned(), source }
}
