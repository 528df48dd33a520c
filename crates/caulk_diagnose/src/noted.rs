//! What libraries note of every thread and every child process: it grows with them, and is not why they hold anything.

use crate::claim::Observed;

/// Modules that note every thread and every child process, and what must be tidied up when it ends.
const NOTING: [&str; 3] = ["threading.", "multiprocessing.", "concurrent.futures."];

/// Is it what a library notes of each thread or child?
pub(crate) fn is_noted(finding: &Observed) -> bool {
    is_noted_in(&finding.holder)
}

/// Is this path to a holder that of such a note?
pub(crate) fn is_noted_in(holder: &str) -> bool {
    NOTING.iter().any(|module| holder.starts_with(module))
}
