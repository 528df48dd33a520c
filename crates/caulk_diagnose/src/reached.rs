//! Which line of a traced hit is looked at: a library's statement grows what the program's own line has called it for.

use caulk_core::wire::TraceHit;
use caulk_core::{Link, LinkEvent, Site, SiteRole};
use caulk_python::{Bound, BoundKind, Spot, limit_name};

use crate::files::Files;
use crate::process::Process;

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

    /// The most elements that the library's own code leaves in what the statement grows: by its length, or by that of another
    /// container from which it takes elements at the same time. The program may give the number by keyword.
    pub(crate) fn most(&self, files: &Files<'_>, process: &Process<'_>) -> Option<u64> {
        let source = files.source(&self.path)?;
        let lines = source.lines();
        let grow = lines.statement_at(self.spot.line)?.grow?;
        let taken_out = |name: &str| {
            let facts = lines.facts(name, &self.spot.function);
            facts.bounds.into_iter().filter(|bound| bound.called && bound.kind != BoundKind::LengthTest)
        };
        let given = |bound: &Bound| {
            let name = limit_name(bound.conditions.last()?)?;
            let sources = process.files().into_iter().filter_map(|path| files.source(path));
            sources.filter_map(|source| source.lines().given_as(name)).max()
        };
        let most = |name: &str| taken_out(name).filter_map(|bound| bound.most.max(given(&bound))).max();
        let measured = |bound: Bound| {
            let (_, rest) = bound.conditions.last()?.split_once("len(")?;
            Some(rest.split_once(')')?.0.to_owned())
        };
        most(&grow.container)
            .or_else(|| taken_out(&grow.container).filter_map(measured).find_map(|other| most(&other)))
    }

    pub(crate) fn site(&self, files: &Files<'_>) -> Site {
        self.spot.site(&files.display(&self.path), SiteRole::Grows)
    }

    pub(crate) fn step(&self, files: &Files<'_>) -> Link {
        let Spot { line, text, .. } = &self.spot;
        Link { file: files.display(&self.path), line: *line, text: text.clone(), event: LinkEvent::Grows }
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
