//! When a container is emptied, or an entry leaves it.

use super::places::{at_function_end, at_loop_end, loops_of};
use crate::edit::{line_after, replace, starts_line};
use crate::index::{Action, Op};
use crate::lines::Lines;
use crate::path::{Path, Step};
use crate::query::{last_name, spot};
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};

/// `clear()` at the end of the loops around the growth, or around calls of the function that makes it.
pub(super) fn clears(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    if site.element || adds_up(site) {
        return Vec::new();
    }
    let fix = |(at, container): (usize, String)| {
        let line = format!("{container}.clear()");
        let header = spot(file, file.index.loops[at].statement);
        let edit = at_loop_end(file, at, &line)?;
        let description = format!("Empty it at the end of the loop of line {}: `{line}`.", header.line);
        Some(EditTry { kind: TryKind::Clear, description, edits: vec![edit] })
    };
    loops_of(file, site).into_iter().filter_map(fix).collect()
}

/// Sums and joined arrays have no `clear`.
fn adds_up(site: &GrowSite) -> bool {
    let sums =
        matches!(site.kind, GrowKind::Register | GrowKind::Rebind | GrowKind::Assign | GrowKind::AugAdd);
    sums && !(site.kind == GrowKind::AugAdd && site.adds_elements())
}

/// `clear()` behind the value that a function returns from a container that another function fills.
pub(super) fn clears_after_reading(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    if adds_up(site) {
        return Vec::new();
    }
    let name = last_name(&site.container);
    let reader = |scope: &crate::index::Scope| {
        let counts = scope.name.ends_with("__len__");
        let tail = scope.tail.filter(|_| scope.name != site.spot.function && !counts)?;
        let range = file.index.statements[tail].range;
        starts_line(file, range)?;
        let read = file
            .index
            .reads
            .iter()
            .find(|(path, place)| place.statement == tail && path.last_name() == Some(name));
        let (path, _) = read?;
        let value = file.source.slice(range).strip_prefix("return ")?.trim();
        let container = match path.steps.as_slice() {
            [] => name.to_owned(),
            [Step::Attr(_)] => format!("{}.{name}", path.root_name()?),
            _ => return None,
        };
        let indentation = file.source.indentation(range.start());
        let separator = format!("{}{indentation}", file.source.newline());
        let clear = format!("{container}.clear()");
        let lines = [format!("result = {value}"), clear.clone(), "return result".to_owned()];
        let description = format!("Empty it once `{}` has used it: `{clear}`.", scope.name);
        let edits = vec![replace(file, range, lines.join(&separator))];
        Some(EditTry { kind: TryKind::Clear, description, edits })
    };
    file.index.scopes.iter().filter_map(reader).collect()
}

/// `clear()` in the methods of the class that empty other attributes, or else use this one: wherever these are called.
pub(super) fn clears_in_class(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let Some(name) = site.container.strip_prefix("self.").filter(|name| !name.contains(['.', '['])) else {
        return Vec::new();
    };
    let scopes = &file.index.scopes;
    let class = scopes.iter().find(|scope| scope.name == site.spot.function).and_then(|scope| scope.class);
    if class.is_none() || site.element || adds_up(site) {
        return Vec::new();
    }
    let line = format!("self.{name}.clear()");
    let is_method = |at: usize| {
        let scope = &scopes[at];
        let special = scope.name.rsplit('.').next().is_some_and(|name| name.starts_with("__"));
        scope.class == class && scope.name != site.spot.function && !special
    };
    let is_own =
        |path: &Path| path.root_name() == Some("self") && matches!(path.steps.as_slice(), [Step::Attr(_)]);
    let ops = || {
        file.index.ops.iter().filter_map(|op| {
            let at = file.index.function_scope(op.place.scope).filter(|at| is_method(*at))?;
            is_own(&op.path).then_some((at, op))
        })
    };
    let is_this = |path: &Path| is_own(path) && path.last_name() == Some(name);
    let empties = |op: &Op| matches!(op.action, Action::Clear | Action::Reset);
    let emptied: Vec<usize> =
        ops().filter(|(_, op)| empties(op) && is_this(&op.path)).map(|(at, _)| at).collect();
    let beside = ops().filter(|(at, op)| empties(op) && !emptied.contains(at)).filter_map(|(at, op)| {
        let edit = line_after(file, file.index.statements[op.place.statement].range, &line)?;
        let description = format!("Empty it in `{}`, beside others: `{line}`.", scopes[at].name);
        Some((at, description, edit))
    });
    let reads = || file.index.reads.iter().filter(|(path, _)| is_this(path)).map(|(_, place)| place);
    // What a last statement gives back is used after that.
    let gives = |at: usize| reads().any(|place| scopes[at].tail == Some(place.statement));
    let using = reads().filter_map(|place| file.index.function_scope(place.scope));
    let using = using.filter(|at| is_method(*at) && !emptied.contains(at) && !gives(*at));
    let used = using.filter_map(|at| {
        let description = format!("Empty it at the end of `{}`: `{line}`.", scopes[at].name);
        Some((at, description, at_function_end(file, at, &line)?))
    });
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for (at, description, edit) in beside.chain(used) {
        if !seen.contains(&at) {
            seen.push(at);
            found.push(EditTry { kind: TryKind::Clear, description, edits: vec![edit] });
        }
    }
    found
}

/// Whether an expression has the same value when it is evaluated once more: it calls nothing but what only converts.
fn comes_out_again(expression: &str) -> bool {
    const CONVERTS: [&str; 8] = ["str", "int", "float", "id", "hash", "tuple", "repr", "item"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let converts = |(at, _): (usize, &str)| {
        let before = &expression[..at];
        let name = &before[before.trim_end_matches(is_word).len()..];
        name.is_empty() && !before.ends_with([')', ']']) || CONVERTS.contains(&name)
    };
    !expression.contains(":=") && expression.match_indices('(').all(converts)
}

/// The entry that is put in is taken out at the end of the loop around it, else of its function.
pub(super) fn takes_out(file: &Lines<'_>, site: &GrowSite) -> Option<EditTry> {
    let op = file.index.ops.get(site.op).filter(|_| !site.element)?;
    let kept = &site.container;
    let line = match site.kind {
        GrowKind::Subscript | GrowKind::SetDefault => {
            let key = site.key.as_ref().filter(|key| comes_out_again(key))?;
            if key.contains(',') {
                format!("{kept}.pop(({key}), None)")
            } else {
                format!("{kept}.pop({key}, None)")
            }
        }
        GrowKind::Add => format!("{kept}.discard({})", site.value.as_ref()?.text),
        _ => return None,
    };
    let edit = match file.index.loops_around(op.place.block).next() {
        Some(at) => at_loop_end(file, at, &line)?,
        None => at_function_end(file, file.index.function_scope(op.place.scope)?, &line)?,
    };
    Some(EditTry {
        kind: TryKind::Clear,
        description: format!("Take the entry out once it is done with: `{line}`."),
        edits: vec![edit],
    })
}
