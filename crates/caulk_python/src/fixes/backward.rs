//! Containers whose contents a backward pass needs: to detach them would stop the training of what made them.

use std::collections::HashSet;

use crate::facts::owner;
use crate::index::{Action, Place};
use crate::lines::Lines;
use crate::query::{last_name, owned};
use crate::sites::{GrowKind, GrowSite, Owner};

/// Functions and methods that leave the graph of a tensor behind.
const PLAIN: [&str; 4] = ["len", "float", "int", "range"];
const DETACHING: [&str; 5] = ["item", "tolist", "numpy", "detach", "detach_"];

/// The line at which `backward()` is called on what was computed of the container's contents, in a function that reads them.
pub(crate) fn needs(file: &Lines<'_>, site: &GrowSite) -> Option<u32> {
    let name = last_name(&site.container);
    let owner = owner(file, &site.container, &site.spot.function);
    let mut functions: Vec<Option<usize>> = Vec::new();
    for (path, place) in file.index.reads.iter().filter(|(path, _)| path.last_name() == Some(name)) {
        let function = file.index.function_scope(place.scope);
        let mine = || {
            let meanings = file.resolver.meanings(file.index, path, *place, false);
            owner == Owner::Any || meanings.iter().any(|meaning| owned(file, meaning, &owner))
        };
        if !functions.contains(&function) && mine() {
            functions.push(function);
        }
    }
    functions.into_iter().find_map(|function| passes(file, function, name))
}

/// Follows what is computed of a name through the assignments of one function, or of the file's own code, to a call of
/// `backward`.
fn passes(file: &Lines<'_>, function: Option<usize>, name: &str) -> Option<u32> {
    let index = file.index;
    let here = |place: &Place| index.function_scope(place.scope) == function;
    let plain = |place: &Place| {
        let around = index.calls.iter().filter(|call| call.range.contains(place.offset));
        let of_statement = index.calls.iter().filter(|call| call.place.statement == place.statement);
        around.filter_map(|call| call.callee.plain()).any(|callee| PLAIN.contains(&callee))
            || of_statement.filter_map(|call| call.callee.last_name()).any(|name| DETACHING.contains(&name))
    };
    let reads: Vec<_> = index.reads.iter().filter(|(_, place)| here(place) && !plain(place)).collect();
    let (mut names, mut statements) = (HashSet::from([name]), HashSet::new());
    loop {
        let before = statements.len();
        let of_names = reads.iter().filter(|(path, _)| {
            [path.root_name(), path.last_name()].into_iter().flatten().any(|part| names.contains(part))
        });
        statements.extend(of_names.map(|(_, place)| place.statement));
        if statements.len() == before {
            break;
        }
        let bound = index.assignments.iter().filter(|bound| statements.contains(&bound.place.statement));
        names.extend(bound.filter_map(|bound| bound.target.last_name()));
        let added = index.ops.iter().filter(|op| statements.contains(&op.place.statement));
        let added = added.filter(|op| matches!(op.action, Action::Grow(GrowKind::AugAdd | GrowKind::Rebind)));
        names.extend(added.filter_map(|op| op.path.last_name()));
    }
    let calls = index.calls.iter().filter(|call| here(&call.place));
    let mut passes = calls.filter(|call| {
        let is_pass = matches!(call.callee.last_name(), Some("backward" | "manual_backward"));
        let of_name = call.callee.root_name().is_some_and(|root| names.contains(root));
        is_pass && (of_name || statements.contains(&call.place.statement))
    });
    passes.next().map(|call| file.source.line_of(call.range.start()))
}
