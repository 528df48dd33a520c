//! Which line of a traced hit is looked at: a library's statement grows what the program's own line has called it for.

use caulk_core::wire::TraceHit;
use caulk_core::{ChainStep, Site, SiteRole};
use caulk_python::Spot;

use crate::files::Files;

/// A statement in a file of a library.
#[derive(Clone)]
pub(crate) struct Reached {
    path: String,
    spot: Spot,
}

impl Reached {
    /// The statement of a library that grows it, where the line to look at calls it.
    pub(crate) fn behind(files: &Files<'_>, hit: &TraceHit) -> Option<Self> {
        let source = files.source(&hit.file).filter(|_| blamed(hit).0 != hit.file)?;
        let spot = source.lines().statement_at(hit.line)?.spot;
        Some(Self { path: hit.file.clone(), spot })
    }

    pub(crate) fn site(&self, files: &Files<'_>) -> Site {
        self.spot.site(&files.display(&self.path), SiteRole::Grows)
    }

    pub(crate) fn step(&self, files: &Files<'_>) -> ChainStep {
        let Spot { line, text, .. } = &self.spot;
        let note = "grows here".into();
        ChainStep { file: files.display(&self.path), line: *line, text: text.clone(), note }
    }
}

/// The line to look at: the innermost of the program's own, else the one that grows it.
pub(crate) fn blamed(hit: &TraceHit) -> (&str, u32) {
    if hit.user_line > 0 && !hit.user_file.is_empty() {
        (&hit.user_file, hit.user_line)
    } else {
        (&hit.file, hit.line)
    }
}
