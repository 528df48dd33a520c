//! Caches with a bound: what is not there any more is computed again, so that the program does what it did.

use caulk_core::Edit;

use crate::edit::{line_after, replace};
use crate::index::{Action, Decorator};
use crate::lines::Lines;
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};

/// Entries to keep: as many as `functools.lru_cache` by default, then few.
const BOUNDS: [u32; 2] = [128, 16];

/// Whether the same function looks for an entry before it stores one.
pub(super) fn is_cache(file: &Lines<'_>, site: &GrowSite) -> bool {
    let stores = matches!(site.kind, GrowKind::Subscript | GrowKind::SetDefault) && !site.element;
    let Some(op) = file.index.ops.get(site.op).filter(|_| stores) else { return false };
    let function = file.index.function_scope(op.place.scope);
    file.index.ops.iter().any(|other| {
        other.action == Action::Lookup
            && other.path == op.path
            && file.index.function_scope(other.place.scope) == function
            && other.place.offset < op.place.offset
    })
}

/// The oldest entry goes where there are more than enough.
pub(super) fn bounded(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    if !is_cache(file, site) {
        return Vec::new();
    }
    let Some(op) = file.index.ops.get(site.op) else { return Vec::new() };
    let statement = file.index.statements[op.place.statement].range;
    if file.source.slice(statement).starts_with("return") {
        return Vec::new();
    }
    let kept = &site.container;
    let bound = |most: u32| {
        let oldest = format!("{kept}.pop(next(iter({kept})))");
        let lines = format!("while len({kept}) > {most}:\n    {oldest}");
        Some(EditTry {
            kind: TryKind::Bound,
            description: format!("Keep the newest {most} entries of the cache `{kept}`: `{oldest}`."),
            edits: vec![line_after(file, statement, &lines)?],
        })
    };
    BOUNDS.into_iter().filter_map(bound).collect()
}

/// A bound for the decorator that remembers all results of a function: `lru_cache(maxsize=128)`.
pub(super) fn limited(file: &Lines<'_>, function: &str) -> Vec<EditTry> {
    let Some(decorated) = file.decorated(function) else { return Vec::new() };
    let mut decorators = file.index.scopes.iter().flat_map(|scope| &scope.decorators);
    let line = |decorator: &&Decorator| file.source.line_of(decorator.range.start()) == decorated.spot.line;
    let Some(decorator) = decorators.find(line) else { return Vec::new() };
    let text = file.source.slice(decorator.range);
    let Some((name, _)) = text.trim_start_matches('@').split_once('(') else { return Vec::new() };
    if !name.ends_with("lru_cache") {
        return Vec::new();
    }
    let at = if text.starts_with('@') { "@" } else { "" };
    let bound = |most: u32| {
        let content = format!("{at}{name}(maxsize={most})");
        let edits: Vec<Edit> = vec![replace(file, decorator.range, content.clone())];
        let description = format!("Keep the newest {most} results: `{content}`.");
        EditTry { kind: TryKind::Bound, description, edits }
    };
    BOUNDS.into_iter().map(bound).collect()
}
