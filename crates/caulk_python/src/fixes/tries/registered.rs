//! Hooks and callbacks of an object: kept where the object removes others, or taken off by what they call.

use ruff_text_size::TextRange;

use super::library::is_call_of;
use super::places::above;
use crate::edit::{insert, replace, starts_line};
use crate::index::{CallRecord, Scope, ScopeKind};
use crate::lines::Lines;
use crate::path::{Root, Step};
use crate::query::of_one_family;
use crate::sites::{EditTry, TryKind};

/// A handle goes to those that an object removes: `self.handles.append(layer.register_forward_hook(f))`.
pub(super) fn kept_with_others(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let name = call.callee.last_name()?;
    let statement = file.index.statements[call.place.statement].range;
    let method = &file.index.scopes[file.index.function_scope(call.place.scope)?];
    let has_self = method.parameters.first().is_some_and(|first| first.name == "self");
    if !(name.starts_with("register_") && name.contains("hook")) || statement != call.range || !has_self {
        return None;
    }
    let handles = removed(file, &method.name)?;
    let edits = vec![
        insert(file, call.range.start(), format!("self.{handles}.append(")),
        insert(file, call.range.end(), ")"),
    ];
    let description = format!("Keep the handle with those that are removed: `self.{handles}.append(...)`.");
    Some(EditTry { kind: TryKind::Release, description, edits })
}

/// The attribute whose elements a method of the class removes: `for handle in self.handles: handle.remove()`, `self.handles.pop().remove()`.
fn removed(file: &Lines<'_>, method: &str) -> Option<String> {
    let removes = |call: &&CallRecord| {
        let function = file.index.function_name(call.place.scope);
        call.callee.last_name() == Some("remove")
            && call.arguments.is_empty()
            && of_one_family(file, &function, method)
    };
    file.index.calls.iter().filter(removes).find_map(|call| {
        if let [Step::Attr(handles), Step::Attr(pop), Step::Call, Step::Attr(_)] =
            call.callee.steps.as_slice()
        {
            let own = call.callee.root_name() == Some("self") && pop == "pop";
            return own.then(|| handles.clone());
        }
        let [Step::Attr(_)] = call.callee.steps.as_slice() else { return None };
        let around = file.index.loops_around(call.place.block).map(|at| &file.index.loops[at]);
        around.filter(|record| Some(record.target.as_str()) == call.callee.root_name()).find_map(|record| {
            let handles = record.iter.trim().strip_prefix("self.")?;
            handles.chars().all(|c| c.is_alphanumeric() || c == '_').then(|| handles.to_owned())
        })
    })
}

/// The method that is to run at the end takes itself off when it runs: `atexit.unregister(self.close)`.
pub(super) fn taken_off_by_itself(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let [method] = call.arguments.as_slice() else { return None };
    let [Step::Attr(name)] = method.path.steps.as_slice() else { return None };
    let own = method.path.root == Root::Name("self".to_owned());
    if !own || !is_call_of(file, call, "atexit", "register") {
        return None;
    }
    let function = &file.index.scopes[file.index.function_scope(call.place.scope)?];
    let (class, _) = function.name.rsplit_once('.')?;
    let wanted = format!("{class}.{name}");
    let is_it = |scope: &&Scope| scope.kind == ScopeKind::Function && scope.name == wanted;
    let first = file.index.statements[file.index.scopes.iter().find(is_it)?.first?].range;
    let called = file.source.slice(call.callee_range);
    let module = called.strip_suffix("register").filter(|module| !module.is_empty())?;
    let line = format!("{module}unregister(self.{name})");
    let description = format!("Take it off when it runs: `{line}`.");
    let edits = vec![first_line(file, first, &line)?];
    Some(EditTry { kind: TryKind::Release, description, edits })
}

/// A line in front of a function's first statement, behind its description.
fn first_line(file: &Lines<'_>, first: TextRange, line: &str) -> Option<caulk_core::Edit> {
    let text = file.source.slice(first);
    if !text.trim_start_matches(['r', 'R']).starts_with(['"', '\'']) {
        return above(file, first, line);
    }
    starts_line(file, first)?;
    let indentation = file.source.indentation(first.start());
    Some(replace(file, first, format!("{text}{}{indentation}{line}", file.source.newline())))
}
