//! Code that makes no backward pass, run without graphs.

use caulk_core::Edit;
use ruff_text_size::TextRange;

use super::places::{above, below};
use crate::edit::import;
use crate::index::Scope;
use crate::lines::Lines;
use crate::query::statements_at;
use crate::sites::{EditTry, TryKind};

/// Calls are followed so deep in search of a backward pass.
const DEEPEST: usize = 3;

/// `no_grad` for the function of a line, for functions that call it, and around the loops of the line.
pub(super) fn without_graphs(file: &Lines<'_>, line: u32, function: &str) -> Vec<EditTry> {
    let mut found: Vec<EditTry> = Vec::new();
    if !function.is_empty() && function != "<module>" {
        let name = function.rsplit('.').next();
        let calls_it = |scope: &Scope| {
            file.index.calls.iter().any(|call| {
                call.callee.last_name() == name && scope.range.contains(call.callee_range.start())
            })
        };
        let own = file.index.scopes.iter().filter(|scope| scope.name == function);
        let callers = file.index.scopes.iter().filter(|scope| {
            scope.kind == crate::index::ScopeKind::Function && scope.name != function && calls_it(scope)
        });
        found.extend(own.chain(callers).filter_map(|scope| decorated(file, scope)));
    }
    found.extend(around_loop(file, line));
    found
}

fn decorated(file: &Lines<'_>, scope: &Scope) -> Option<EditTry> {
    if scope.no_grad || trains(file, scope.range, DEEPEST) {
        return None;
    }
    let (torch, needed) = torch(file);
    let decorator = format!("@{torch}.no_grad()");
    let edit = above(file, scope.range, &decorator)?;
    Some(EditTry {
        kind: TryKind::Value,
        description: format!("Compute without graphs in `{}`: `{decorator}`.", scope.name),
        edits: std::iter::once(edit).chain(needed).collect(),
    })
}

/// `with torch.no_grad():` around the outermost loop that makes no backward pass.
fn around_loop(file: &Lines<'_>, line: u32) -> Option<EditTry> {
    let statement = statements_at(file, line).into_iter().next()?;
    let place =
        file.index.ops.iter().map(|op| op.place).chain(file.index.calls.iter().map(|call| call.place));
    let place = place.into_iter().find(|place| place.statement == statement)?;
    if file.index.without_grad(place) {
        return None;
    }
    let record = file
        .index
        .loops_around(place.block)
        .map(|at| &file.index.loops[at])
        .take_while(|record| !trains(file, record.range, DEEPEST))
        .last()?;
    let (torch, needed) = torch(file);
    let header = format!("with {torch}.no_grad():");
    let (first, last) = (record.range.start(), record.range.end());
    let lines = file.source.line_of(first)..=file.source.line_of(last);
    let description = format!("Compute without graphs in the loop of line {}: `{header}`.", lines.start());
    let edit = below(file, first, lines, &header)?;
    Some(EditTry { kind: TryKind::Value, description, edits: std::iter::once(edit).chain(needed).collect() })
}

/// Whether code makes a backward pass, itself or in a function of this file that it calls.
fn trains(file: &Lines<'_>, range: TextRange, depth: usize) -> bool {
    let calls = file.index.calls.iter().filter(|call| range.contains(call.callee_range.start()));
    let mut called = Vec::new();
    for name in calls.filter_map(|call| call.callee.last_name()) {
        if matches!(name, "backward" | "step" | "grad") {
            return true;
        }
        if !called.contains(&name) {
            called.push(name);
        }
    }
    depth > 0
        && file.index.scopes.iter().any(|scope| {
            let name = scope.name.rsplit('.').next().unwrap_or_default();
            scope.range != range && called.contains(&name) && trains(file, scope.range, depth - 1)
        })
}

/// The name of torch here, and the edit that imports it.
fn torch(file: &Lines<'_>) -> (String, Option<Edit>) {
    match file.index.imports.iter().find(|(_, from)| *from == "torch") {
        Some((name, _)) => (name.clone(), None),
        None => ("torch".to_owned(), import(file, "torch", "import torch")),
    }
}
