//! Checking sources on disk: settings, projects, and what is found in them.

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Diagnostic;
use caulk_source::absolute;

pub(crate) mod baseline;
mod cache;
mod config;
mod fixes;
mod link;
pub(crate) mod observed;
pub(crate) mod patch;
mod project;
mod report;
pub(crate) mod rewrite;
mod settings;
pub(crate) mod silence;
pub(crate) mod spot;
mod targets;
pub(crate) mod watch;

pub(crate) use fixes::Changes;
pub(crate) use project::{Buffers, Found, Project};
pub(crate) use report::Collected;
pub(crate) use settings::Settings;
pub(crate) use targets::{STDIN, targets};

use crate::cli::{FileArgs, RuleArgs};

/// Patterns in some files that ran and in what they import, whatever the settings of their projects leave out; none where
/// a project cannot be read. Nothing is kept for the next time: who runs a program has named no place for that.
pub(crate) fn patterns(directory: &Utf8Path, files: &[Utf8PathBuf]) -> Vec<Diagnostic> {
    let rules = RuleArgs { isolated: true, ..RuleArgs::default() };
    let mut collected = Collected::default();
    let projects = targets(directory, files, &rules, &FileArgs::default(), &Buffers::new());
    for mut project in projects.unwrap_or_default() {
        project.reported = project.imported_by(files.iter().map(|file| absolute(directory, file)));
        collected.add(&project, project.check(None));
    }
    collected.finish().findings
}

/// What is found in one text, for tests.
#[cfg(test)]
pub(crate) fn found_in(path: &str, text: &str) -> Vec<caulk_core::Diagnostic> {
    let selection = caulk_check::Selection::standard();
    caulk_check::check(caulk_check::Job::of_text(path, text, &selection)).diagnostics
}
