//! Objects of the program's own classes that a loop makes again and again and nobody closes.

use super::places::{at_function_end, at_loop_end};
use crate::index::{Assignment, Place};
use crate::lines::Lines;
use crate::path::{Path, Step};
use crate::sites::{EditTry, TryKind};

/// Methods that give back what an object holds, by the names that Python's library and torch use for it.
const CLOSING: [&str; 13] = [
    "close",
    "remove",
    "release",
    "shutdown",
    "stop",
    "cleanup",
    "dispose",
    "unregister",
    "unsubscribe",
    "disconnect",
    "teardown",
    "remove_hooks",
    "detach",
];

/// A call of the closing method of the class around a line, where objects of the class are made and not closed.
pub(super) fn closes(file: &Lines<'_>, function: &str) -> Vec<EditTry> {
    let Some((class, _)) = function.split_once('.') else { return Vec::new() };
    let has = |method: &&&str| {
        let name = format!("{class}.{method}");
        file.index.scopes.iter().any(|scope| scope.name == name && scope.parameters.len() == 1)
    };
    let Some(method) = CLOSING.iter().find(has) else { return Vec::new() };
    let made = file.index.assignments.iter().filter(|assignment| {
        let maker = assignment.callee.as_ref().and_then(|callee| callee.plain());
        maker == Some(class) && assignment.target.plain().is_some() && !is_closed(file, assignment, method)
    });
    made.filter_map(|assignment| close(file, assignment, method)).collect()
}

/// The handle of a hook that the constructor of the class around a line keeps as an attribute, removed where an object of the
/// class has been used.
pub(super) fn takes_off(file: &Lines<'_>, function: &str) -> Vec<EditTry> {
    let Some(class) = function.strip_suffix(".__init__") else { return Vec::new() };
    let registers = |path: &Path| {
        path.last_name().is_some_and(|name| name.starts_with("register_") && name.contains("hook"))
    };
    let own =
        |path: &Path| matches!(path.steps.as_slice(), [Step::Attr(_)]) && path.root_name() == Some("self");
    let handles = file.index.assignments.iter().filter(|assignment| {
        own(&assignment.target)
            && file.index.function_name(assignment.place.scope) == function
            && assignment.callee.as_ref().is_some_and(registers)
    });
    let handles: Vec<&str> = handles.filter_map(|assignment| assignment.target.last_name()).collect();
    // Of several hooks each would have to be removed.
    let [handle] = handles.as_slice() else { return Vec::new() };
    let name = class.rsplit('.').next();
    let made = file.index.assignments.iter().filter(|assignment| {
        let maker = assignment.callee.as_ref().and_then(Path::plain);
        maker == name && assignment.target.plain().is_some() && !leaves(file, assignment)
    });
    made.filter_map(|assignment| close(file, assignment, &format!("{handle}.remove"))).collect()
}

/// Whether the object that a variable gets is returned, stored or handed on by the function that made it.
fn leaves(file: &Lines<'_>, made: &Assignment) -> bool {
    let function = file.index.function_scope(made.place.scope);
    let here = |place: Place| file.index.function_scope(place.scope) == function;
    let is_it = |path: &Path| *path == made.target;
    let index = file.index;
    let returned = index.scopes.iter().flat_map(|scope| &scope.returns);
    let mut returned = returned.filter(|(_, place)| here(*place));
    let mut given = index.calls.iter().filter(|call| here(call.place)).flat_map(|call| &call.arguments);
    let mut bound = index.assignments.iter().filter(|other| here(other.place));
    returned.any(|(path, _)| is_it(path))
        || given.any(|argument| is_it(&argument.path) || argument.members.iter().any(is_it))
        || bound.any(|other| other.source.as_ref().is_some_and(is_it))
}

fn is_closed(file: &Lines<'_>, assignment: &Assignment, method: &str) -> bool {
    let function = file.index.function_scope(assignment.place.scope);
    file.index.calls.iter().any(|call| {
        call.callee.last_name() == Some(method)
            && call.callee.root_name() == assignment.target.root_name()
            && file.index.function_scope(call.place.scope) == function
    })
}

/// At the end of the loop that makes it, else of the function.
fn close(file: &Lines<'_>, assignment: &Assignment, method: &str) -> Option<EditTry> {
    let line = format!("{}.{method}()", assignment.target.plain()?);
    let place = assignment.place;
    let edit = match file.index.loops_around(place.block).next() {
        Some(at) => at_loop_end(file, at, &line)?,
        None => at_function_end(file, file.index.function_scope(place.scope)?, &line)?,
    };
    let description = format!("Give it back when it has been used: `{line}`.");
    Some(EditTry { kind: TryKind::Release, description, edits: vec![edit] })
}
