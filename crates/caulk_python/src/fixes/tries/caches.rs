//! Dicts with a bound. Entries of a cache that are gone are computed again, so the program does the same; of other dicts they are
//! lost.

use crate::edit::{line_after, replace};
use crate::index::{Action, Decorator, Op};
use crate::lines::Lines;
use crate::path::Path;
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};

/// Entries to keep: as many as `functools.lru_cache` by default, then few.
const BOUNDS: [u32; 2] = [128, 16];

/// Whether the same function looks for an entry before it stores one.
pub(super) fn is_cache(file: &Lines<'_>, site: &GrowSite) -> bool {
    let stores = matches!(site.kind, GrowKind::Subscript | GrowKind::SetDefault) && !site.element;
    let Some(op) = file.index.ops.get(site.op).filter(|_| stores) else { return false };
    let function = file.index.function_scope(op.place.scope);
    // Sums that begin with an entry are not made again.
    let is_part = |path: &Path| {
        path.root == op.path.root
            && path.steps.len() > op.path.steps.len()
            && path.steps.starts_with(&op.path.steps)
    };
    let changes = |other: &Op| matches!(other.action, Action::Grow(_)) && is_part(&other.path);
    let mut ops = file.index.ops.iter();
    !ops.clone().any(changes)
        && ops.any(|other| {
            other.action == Action::Lookup
                && other.path == op.path
                && file.index.function_scope(other.place.scope) == function
                && other.place.offset < op.place.offset
        })
}

/// The oldest entry of a dict goes where there are more than enough.
pub(super) fn bounded(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    if !matches!(site.kind, GrowKind::Subscript | GrowKind::SetDefault) || site.element {
        return Vec::new();
    }
    let Some(op) = file.index.ops.get(site.op) else { return Vec::new() };
    let statement = file.index.statements[op.place.statement].range;
    if file.source.slice(statement).starts_with("return") {
        return Vec::new();
    }
    let kept = &site.container;
    let what = if is_cache(file, site) {
        "Keep the newest"
    } else if file.index.ops.iter().any(|other| other.action == Action::Lookup && other.path == op.path) {
        // Code that asks for an entry fails if it is gone.
        return Vec::new();
    } else {
        "Keep no more than the last"
    };
    let bound = |most: u32| {
        let oldest = format!("{kept}.pop(next(iter({kept})))");
        let lines = format!("while len({kept}) > {most}:\n    {oldest}");
        Some(EditTry {
            kind: TryKind::Bound,
            description: format!("{what} {most} entries of `{kept}`: `{oldest}`."),
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
    if !text.split('(').next().is_some_and(|name| name.ends_with("lru_cache")) {
        return Vec::new();
    }
    let bound = |most: u32| {
        let limits = [("maxsize=None", format!("maxsize={most}")), ("(None", format!("({most}"))];
        let (none, limit) = limits.into_iter().find(|(none, _)| text.contains(none))?;
        let content = text.replacen(none, &limit, 1);
        let description = format!("Keep the {most} results that were used last: `{content}`.");
        Some(EditTry {
            kind: TryKind::Bound,
            description,
            edits: vec![replace(file, decorator.range, content)],
        })
    };
    BOUNDS.into_iter().filter_map(bound).collect()
}
