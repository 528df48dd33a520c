//! Old output of runs: what may go, and removing it.
//!
//! [`plan`] looks and touches nothing; [`remove`] does what a plan says. Neither ever leaves the project's root or follows
//! a link, and neither touches what git tracks, archives, videos, tables or what was written a moment ago.

mod error;
mod kept;
mod plan;
mod remove;
mod tracked;

use std::time::Duration;

use camino::Utf8PathBuf;

pub use error::CleanError;
pub use plan::{Cleanup, Kept, LATELY, Old, plan};
pub use remove::{Removed, remove};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The project's root.
    pub root: Utf8PathBuf,
    /// Folders with output, relative to the root.
    pub folders: Vec<Utf8PathBuf>,
    /// Patterns of files to keep, as in `.gitignore`, relative to the root.
    pub keep: Vec<String>,
    /// What was written less long ago stays: a training may still be writing.
    pub older_than: Duration,
}
