//! Why a recording cannot be made, read or found.

use std::io;

use camino::Utf8PathBuf;

/// Why a recording cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder cannot be made or written to.
    #[error(
        "failed to create the recording's folder `{path}`\nhint: choose another with `--output DIR`, or set CAULK_HOME"
    )]
    Create {
        /// What was to be made.
        path: Utf8PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// There is a recording in the folder.
    #[error(
        "`{path}` already holds a recording\nhint: choose another folder with `--output DIR`, or remove this one"
    )]
    Occupied {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// A file cannot be written. While recording this is said once; the program is not disturbed.
    #[error(
        "failed to write the recording's `{path}`; what happens until it can be written again may be missing from the \
         report\nhint: make room where it lies"
    )]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The tables could not be brought into their final form; the recording can be read as it is.
    #[error(
        "failed to finish the recording's `{path}`; it can be read, but takes more space than it should\nhint: make \
         room where it lies before the next run"
    )]
    Finish {
        /// The file.
        path: Utf8PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The folder or its head cannot be opened.
    #[error("failed to open recording `{path}`")]
    Open {
        /// The folder or `run.json`.
        path: Utf8PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The folder holds neither a head nor a table.
    #[error("`{path}` holds no recording\nhint: `caulk runs` lists those there are")]
    Foreign {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// A later version wrote it.
    #[error(
        "recording `{path}` has schema {schema}, this caulk reads up to {}\nhint: written by caulk {caulk}; upgrade",
        crate::SCHEMA
    )]
    Newer {
        /// The folder.
        path: Utf8PathBuf,
        /// Its schema.
        schema: u64,
        /// Version of caulk that wrote it.
        caulk: String,
    },
}

/// Why a run is not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// There are no runs.
    #[error("no runs recorded in `{home}`\nhint: record one with `caulk run -- COMMAND`, or set CAULK_HOME")]
    Empty {
        /// The home folder.
        home: Utf8PathBuf,
    },
    /// No run has that name.
    #[error("no run `{name}` in `{home}`\nhint: {}", offer("there is", candidates))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The home folder.
        home: Utf8PathBuf,
        /// The newest runs there are.
        candidates: Vec<String>,
    },
    /// Several runs have that beginning or end.
    #[error("`{name}` fits {} runs\nhint: {}", candidates.len(), offer("write more of", candidates))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The runs that fit, newest first.
        candidates: Vec<String>,
    },
}

/// The first few names, after what to do with them.
fn offer(what: &str, names: &[String]) -> String {
    const SHOWN: usize = 8;
    let list: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    format!("{what} {}{more}", list.join(", "))
}
