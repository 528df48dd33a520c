//! What to change, as the tool's other half makes it: the edits of [`caulk_python::Module`] at the place of a pattern.

use caulk_core::{Applicability, Fix};
use caulk_python::{GrowSite, Location, Module, Project, Window, detaches_safely};

/// The file of a place, indexed for edits.
pub(crate) fn module(project: &Project, at: Location) -> Module {
    let file = project.file(at.file);
    Module::parse(file.path(), file.text())
}

/// The change of what a statement stores in, or binds to, an expression.
pub(crate) fn of_stored(
    project: &Project,
    statement: Location,
    container: Location,
    change: impl Fn(&Module, &GrowSite) -> Option<Fix>,
) -> Option<Fix> {
    let module = module(project, container);
    let written = project.text(container).split_whitespace().collect::<Vec<_>>().join(" ");
    let sites = module.grows_at(project.line(statement));
    let same = |site: &&GrowSite| site.container.split_whitespace().eq(written.split_whitespace());
    change(&module, sites.iter().find(same)?)
}

/// What a statement stores, without its graph: safe where it is proved that nothing looks at the graph.
pub(crate) fn detached(project: &Project, statement: Location, container: Location) -> Option<Fix> {
    let mut fix = of_stored(project, statement, container, Module::detach_fix)?;
    if fix.applicability == Applicability::Unsafe && detaches_safely(project, &fix) {
        fix.applicability = Applicability::Safe;
    }
    Some(fix)
}

/// A limit that the code sets for a container and never reads.
pub(crate) fn unused_window(project: &Project, container: Location, function: &str) -> Option<Window> {
    let facts = module(project, container).facts(project.text(container), function);
    facts.windows.into_iter().find(names_a_limit).filter(|_| facts.bounds.iter().all(|bound| !bound.called))
}

/// `self.loss_window`, `MAX_ROWS`, but not `value_max`.
fn names_a_limit(window: &Window) -> bool {
    const LIMITS: &[&str] = &["window", "maxlen", "maxsize", "limit", "capacity", "keep", "horizon"];
    let name = window.expression.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    name.trim_start_matches('_').starts_with("max") || name.split('_').any(|word| LIMITS.contains(&word))
}
