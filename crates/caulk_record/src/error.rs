//! Why a recording cannot be made, read or found.

use std::fmt;
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
    /// Somebody else has put it there.
    #[error(
        "`{path}` is {what} of another user (uid {owner}), which is not followed\nhint: remove it, or choose another \
         folder with `--output DIR` or CAULK_HOME"
    )]
    Foreign {
        /// The link or the folder.
        path: Utf8PathBuf,
        /// Which it is.
        what: &'static str,
        /// Its owner.
        owner: u32,
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
    #[error("failed to open recording `{path}`{}", remedy(source))]
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
    /// The folder with the runs is there, and what is in it cannot be said.
    #[error(
        "recordings in `{path}` cannot be read\nhint: `ls -ld` shows whose that is; have its owner let you read it, or \
         name another folder with CAULK_HOME"
    )]
    Unreadable {
        /// The folder.
        path: Utf8PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Several runs have that in their names.
    #[error("`{name}` fits {} runs{}\nhint: write more of one of these names", candidates.len(), listed(candidates))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The runs that fit, newest first.
        candidates: Vec<Candidate>,
    },
}

/// A run that a name may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub id: String,
    /// When it began, RFC 3339; empty where that cannot be read.
    pub started: String,
    /// What was run.
    pub command: Vec<String>,
}

impl fmt::Display for Candidate {
    /// `20261121-100300-train  2026-11-21 10:03:00  python train.py`, on one line whatever is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ROOM: usize = 60;
        let command = self.command.join(" ").replace(char::is_control, " ");
        let cut = if command.chars().count() > ROOM { "…" } else { "" };
        let command: String = command.chars().take(ROOM).collect();
        // The seconds, without their fraction and the zone: whoever looks for a run knows the day by his own clock.
        let started: String = self.started.chars().take(19).collect::<String>().replace('T', " ");
        let started = if started.is_empty() { "cannot be read" } else { &started };
        write!(f, "{}  {started:<19}  {command}{cut}", self.id)
    }
}

/// Where the folder is there, and somebody else's.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "\nhint: `ls -ld` shows whose that is; have its owner let you read it"
        }
        _ => "",
    }
}

/// One below the other, as many as a person looks at.
fn listed(candidates: &[Candidate]) -> String {
    const SHOWN: usize = 20;
    let mut lines: Vec<String> =
        candidates.iter().take(SHOWN).map(|candidate| format!("\n{candidate}")).collect();
    if candidates.len() > SHOWN {
        lines.push(format!("\nand {} older ones", candidates.len() - SHOWN));
    }
    lines.concat()
}

/// The first few names, after what to do with them.
fn offer(what: &str, names: &[String]) -> String {
    const SHOWN: usize = 8;
    let list: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    format!("{what} {}{more}", list.join(", "))
}
