//! Edits to try for a finding besides its own fix.

use caulk_check::Texts;
use caulk_core::{Applicability, Finding, Fix, Group, LeakClass};
use caulk_python::{Analysis, EditTry, Project, SourceFile, TryKind};

/// Edits at the lines of a finding, in an order that its class suggests. If other places have the same pattern, the same kind of
/// edit is made there, too.
pub(crate) fn alternatives(finding: &Finding, texts: &Texts) -> Vec<Fix> {
    let mut found: Vec<EditTry> = Vec::new();
    for site in &finding.sites {
        let Some(text) = texts.get(&site.file) else { continue };
        let project = Project::new([SourceFile { path: site.file.clone(), text: text.clone() }]);
        let Some(file) = project.ids().next() else { continue };
        let analysis = Analysis::new(project);
        let lines = analysis.lines(file);
        let mut tries = lines.tries(site.line, &site.function);
        let twins = finding.twins.iter().filter(|twin| twin.file == site.file);
        let others: Vec<Vec<EditTry>> =
            twins.map(|twin| lines.tries(twin.line, &lines.function_at(twin.line))).collect();
        let together: Vec<EditTry> =
            tries.iter().filter_map(|one| with_twins(&tries, one, &others)).collect();
        tries.splice(0..0, together);
        found.extend(tries);
    }
    let graphs = finding.pinned.as_ref().is_some_and(|pinned| pinned.graph_nodes > 0);
    found.retain(|one| graphs || finding.class.group() == Group::Graph || !is_about_graphs(one));
    found.retain(|one| is_about_views(finding.class) || !copies(one));
    found.retain(|one| is_about_workers(finding.class) || one.kind != TryKind::Array);
    found.retain(|one| finding.class == LeakClass::ReferenceCycle || one.kind != TryKind::Collect);
    let found = by_turns(found, &order(finding.class.group()));
    let fix = |one: EditTry| Fix {
        applicability: Applicability::Unsafe,
        description: one.description,
        edits: one.edits,
    };
    found.into_iter().map(fix).collect()
}

/// The first edit of each kind, then the second ones: what is refused for its kind costs no more than one run in a row.
fn by_turns(found: Vec<EditTry>, order: &[TryKind]) -> Vec<EditTry> {
    let mut ranked: Vec<(usize, Option<usize>, EditTry)> = Vec::new();
    for one in found {
        let before = ranked.iter().filter(|(_, _, other)| other.kind == one.kind).count();
        ranked.push((before, order.iter().position(|kind| *kind == one.kind), one));
    }
    ranked.sort_by_key(|(turn, kind, _)| (*turn, *kind));
    ranked.into_iter().map(|(_, _, one)| one).collect()
}

/// An edit with the ones at other places that come at the same position of their kind.
fn with_twins(tries: &[EditTry], one: &EditTry, others: &[Vec<EditTry>]) -> Option<EditTry> {
    let of_kind = |tries: &[EditTry]| -> Vec<EditTry> {
        tries.iter().filter(|other| other.kind == one.kind).cloned().collect()
    };
    let at = of_kind(tries).iter().position(|other| other == one)?;
    let mut all = one.clone();
    for twin in others.iter().filter_map(|other| of_kind(other).get(at).cloned()) {
        let new: Vec<_> = twin.edits.into_iter().filter(|edit| !all.edits.contains(edit)).collect();
        all.edits.extend(new);
    }
    (all.edits.len() > one.edits.len()).then_some(all)
}

/// Whether an edit takes away graphs and nothing else.
fn is_about_graphs(one: &EditTry) -> bool {
    let ends = |content: &str| content.ends_with(".detach()") || content.contains("no_grad()");
    one.kind == TryKind::Value && one.edits.iter().any(|edit| ends(edit.content.trim_end()))
}

/// Whether copies help against it.
fn is_about_views(class: LeakClass) -> bool {
    class == LeakClass::ViewPinsStorage || class.group() == Group::Graph
}

/// Whether workers copy what they read.
fn is_about_workers(class: LeakClass) -> bool {
    matches!(class, LeakClass::WorkerCopyOnWrite | LeakClass::WorkerMemoryGrows)
}

fn copies(one: &EditTry) -> bool {
    let ends = |content: &str| content.ends_with(".clone()") || content.ends_with(".copy()");
    one.kind == TryKind::Value && one.edits.iter().any(|edit| ends(&edit.content))
}

/// Kinds of edits, the most promising first.
fn order(group: Group) -> [TryKind; 7] {
    use TryKind::{Array, Bound, Clear, Collect, Place, Release, Value};
    match group {
        Group::Graph => [Value, Clear, Bound, Release, Place, Array, Collect],
        Group::Reference | Group::Figure | Group::Resource => {
            [Collect, Release, Bound, Clear, Place, Value, Array]
        }
        Group::Loading => [Array, Bound, Clear, Release, Place, Value, Collect],
        _ => [Bound, Clear, Value, Release, Place, Array, Collect],
    }
}

#[cfg(test)]
mod tests;
