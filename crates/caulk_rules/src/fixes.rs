//! What to change, as the tool's other half makes it: the edits of [`caulk_python::Module`] at the place of a pattern.

use caulk_core::Fix;
use caulk_python::{GrowSite, Location, Module, Project};

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
