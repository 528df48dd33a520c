//! Checking sources on disk: settings, projects, and what is found in them.

pub(crate) mod baseline;
mod cache;
mod config;
mod fixes;
pub(crate) mod observed;
mod project;
mod report;
mod settings;
pub(crate) mod silence;
mod targets;
pub(crate) mod watch;

pub(crate) use fixes::Changes;
pub(crate) use project::{Found, Project};
pub(crate) use report::Collected;
pub(crate) use settings::Settings;
pub(crate) use targets::{Buffers, STDIN, targets};

/// What is found in one text, for tests.
#[cfg(test)]
pub(crate) fn found_in(path: &str, text: &str) -> Vec<caulk_core::Diagnostic> {
    let selection = caulk_check::Selection::standard();
    caulk_check::check(caulk_check::Job::of_text(path, text, &selection)).diagnostics
}
