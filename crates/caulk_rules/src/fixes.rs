//! What to change at the place of a pattern: the edits of [`caulk_python::Lines`].

use caulk_core::{Applicability, Fix};
use caulk_python::{Analysis, GrowSite, Lines, Location, Window, detaches_safely};

/// The change at the line of a place.
pub(crate) fn at_line<'a>(
    analysis: &'a Analysis,
    at: Location,
    change: impl Fn(&Lines<'a>, u32) -> Option<Fix>,
) -> Option<Fix> {
    change(&analysis.lines(at.file), analysis.project().line(at))
}

/// The change of what a statement stores in, or binds to, an expression.
pub(crate) fn of_stored<'a>(
    analysis: &'a Analysis,
    statement: Location,
    container: Location,
    change: impl Fn(&Lines<'a>, &GrowSite) -> Option<Fix>,
) -> Option<Fix> {
    let (project, lines) = (analysis.project(), analysis.lines(container.file));
    let written = project.text(container);
    let sites = lines.grows_at(project.line(statement));
    let same = |site: &&GrowSite| site.container.split_whitespace().eq(written.split_whitespace());
    change(&lines, sites.iter().find(same)?)
}

/// What a statement stores, without its graph: safe where it is proved that nothing looks at the graph.
pub(crate) fn detached(analysis: &Analysis, statement: Location, container: Location) -> Option<Fix> {
    let mut fix = of_stored(analysis, statement, container, Lines::detach_fix)?;
    if fix.applicability == Applicability::Unsafe && detaches_safely(analysis.project(), &fix) {
        fix.applicability = Applicability::Safe;
    }
    Some(fix)
}

/// A limit that the code sets for a container and never reads.
pub(crate) fn unused_window(analysis: &Analysis, container: Location, function: &str) -> Option<Window> {
    let facts = analysis.lines(container.file).facts(analysis.project().text(container), function);
    facts.windows.into_iter().find(names_a_limit).filter(|_| facts.bounds.iter().all(|bound| !bound.called))
}

/// `self.loss_window`, `MAX_ROWS`, but not `value_max`.
fn names_a_limit(window: &Window) -> bool {
    const LIMITS: &[&str] = &["window", "maxlen", "maxsize", "limit", "capacity", "keep", "horizon"];
    let name = window.expression.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    name.trim_start_matches('_').starts_with("max") || name.split('_').any(|word| LIMITS.contains(&word))
}
