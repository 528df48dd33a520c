//! Edits to try for a finding besides its own fix.

use caulk_check::Texts;
use caulk_core::{Applicability, Cause, Finding, Fix, Group, LeakClass};
use caulk_python::{Analysis, EditTry, Project, SourceFile, TryKind};

/// Calls that are followed outwards from the function that makes a cycle to a loop.
const MOST_CALLS: usize = 4;

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
        tries.extend(chain(finding).and_then(|(newest, link)| lines.cut_chain(site.line, newest, link)));
        let twins = finding.twins.iter().filter(|twin| twin.file == site.file);
        let others: Vec<Vec<EditTry>> =
            twins.map(|twin| lines.tries(twin.line, &lines.function_at(twin.line))).collect();
        let together: Vec<EditTry> =
            tries.iter().filter_map(|one| with_twins(&tries, one, &others)).collect();
        tries.splice(0..0, together);
        found.extend(tries);
    }
    in_any_file(finding, texts, &mut found);
    if is_named_elsewhere(finding, texts) {
        found.retain(|one| one.kind != TryKind::Drop);
    }
    let graphs = finding.pinned.as_ref().is_some_and(|pinned| pinned.graph_nodes > 0);
    found.retain(|one| graphs || finding.class.group() == Group::Graph || !is_about_graphs(one));
    found.retain(|one| is_about_views(finding.class) || !copies(one));
    found.retain(|one| are_small(finding) || !makes_numbers(one));
    // A function is no tensor, whatever it keeps.
    found.retain(|one| finding.class != LeakClass::CallbackKeepsTensor || one.kind != TryKind::Value);
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

/// Edits for classes whose cause may be far from the line that grows, in whichever file; those of the finding's own files come
/// first. A collector that is switched off is left on before all.
fn in_any_file(finding: &Finding, texts: &Texts, found: &mut Vec<EditTry>) {
    let cycles = finding.class == LeakClass::ReferenceCycle;
    let figures = finding.class == LeakClass::FigureNotClosed;
    if !cycles && !figures && finding.class != LeakClass::ExceptionKeepsFrames {
        return;
    }
    let project = |(path, text): (&String, &String)| {
        Analysis::new(Project::new([SourceFile { path: path.clone(), text: text.clone() }]))
    };
    let is_own = |path: &String| finding.sites.iter().any(|site| site.file == *path);
    let (own, others): (Vec<_>, Vec<_>) = texts.iter().partition(|(path, _)| is_own(path));
    let files: Vec<Analysis> = own.into_iter().chain(others).map(project).collect();
    let lines = || files.iter().filter_map(|file| Some(file.lines(file.project().ids().next()?)));
    if figures {
        found.extend(lines().flat_map(|lines| lines.close_saved()));
        return;
    }
    if !cycles {
        found.extend(lines().filter_map(|lines| lines.without_frames()));
        return;
    }
    found.splice(0..0, lines().flat_map(|lines| lines.collector_left_on()));
    let mut functions: Vec<String> = finding.sites.iter().map(|site| site.function.clone()).collect();
    for _ in 0..MOST_CALLS {
        let by_loop =
            |function: &String| lines().filter_map(|lines| lines.collected_by_loop(function)).collect();
        let loops: Vec<EditTry> = functions.iter().flat_map::<Vec<EditTry>, _>(by_loop).collect();
        if !loops.is_empty() {
            found.extend(loops);
            return;
        }
        let callers = |function: &String| lines().flat_map(|lines| lines.callers(function)).collect();
        functions = functions.iter().flat_map::<Vec<String>, _>(callers).collect();
        functions.sort_unstable();
        functions.dedup();
    }
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

/// The newest object of a chain as its line writes it, and the attribute that refers to the one before.
fn chain(finding: &Finding) -> Option<(&str, &str)> {
    let Cause::Grows(grows) = &finding.cause else { return None };
    Some((&grows.container, grows.link.as_deref()?))
}

/// Whether other files than the one that fills the container have its name: they may read it.
fn is_named_elsewhere(finding: &Finding, texts: &Texts) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let name = finding.container.rsplit(|c| !is_word(c)).next().filter(|name| !name.is_empty());
    let is_here = |file: &str| finding.sites.iter().any(|site| site.file == file);
    let has = |text: &str, name: &str| text.split(|c| !is_word(c)).any(|word| word == name);
    name.is_some_and(|name| texts.iter().any(|(file, text)| !is_here(file) && has(text, name)))
}

/// Whether an edit takes away graphs and nothing else.
fn is_about_graphs(one: &EditTry) -> bool {
    let ends = |content: &str| content.ends_with(".detach()") || content.contains("no_grad()");
    one.kind == TryKind::Value && one.edits.iter().any(|edit| ends(edit.content.trim_end()))
}

/// A tensor of one number with all that belongs to it, in bytes: the Python object, its storage and their blocks.
const NUMBER: f64 = 1024.0;

/// Whether each element may be one number. True if a graph is behind it, or the count is unknown.
fn are_small(finding: &Finding) -> bool {
    let Cause::Grows(grows) = &finding.cause else { return finding.class.group() == Group::Graph };
    let graphs = finding.pinned.as_ref().is_some_and(|pinned| pinned.graph_nodes > 0);
    graphs || grows.elements <= 0.0 || grows.rate.bytes <= NUMBER * grows.elements
}

fn makes_numbers(one: &EditTry) -> bool {
    one.kind == TryKind::Value && one.edits.iter().any(|edit| edit.content.starts_with("float("))
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
fn order(group: Group) -> [TryKind; 8] {
    use TryKind::{Array, Bound, Clear, Collect, Drop, Place, Release, Value};
    match group {
        Group::Graph => [Value, Drop, Clear, Bound, Release, Place, Array, Collect],
        Group::Reference | Group::Figure | Group::Resource => {
            [Collect, Release, Drop, Bound, Clear, Place, Value, Array]
        }
        Group::Loading => [Drop, Array, Bound, Clear, Release, Place, Value, Collect],
        _ => [Drop, Bound, Clear, Value, Release, Place, Array, Collect],
    }
}

#[cfg(test)]
mod tests;
