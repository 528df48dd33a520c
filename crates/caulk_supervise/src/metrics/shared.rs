//! What the supervisor writes and requests read.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::figures::Figures;

/// The figures of a run.
#[derive(Debug)]
pub(super) struct Shared {
    /// Name of the run.
    pub(super) run: String,
    /// Version of caulk.
    pub(super) version: String,
    figures: Mutex<Figures>,
}

impl Shared {
    pub(super) fn new(run: &str, version: &str, figures: Figures) -> Self {
        Self { run: run.to_owned(), version: version.to_owned(), figures: figures.into() }
    }

    /// Figures are whole after every call, also after one that has panicked.
    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
