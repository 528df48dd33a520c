//! What a call of torch keeps by design, written so that it does not.

use ruff_text_size::TextSize;

use super::arrays::imported;
use super::places::at_loop_end;
use crate::edit::{insert, line_before, replace};
use crate::index::CallRecord;
use crate::lines::Lines;
use crate::sites::{EditTry, TryKind};

/// A profiler that records one turn of the loop behind it, after one to warm up.
pub(super) fn profiles_once(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let root = call.callee.root_name()?;
    let from = file.index.imports.get(root).map(String::as_str).unwrap_or_default();
    let is_profiler = call.callee.last_name() == Some("profile") && from.starts_with("torch");
    if !is_profiler || call.arguments.iter().any(|argument| argument.name.as_deref() == Some("schedule")) {
        return None;
    }
    let made = file.index.assignments.iter().find(|assignment| assignment.value == Some(call.range))?;
    let name = file.source.inline(made.target_range);
    let behind = file.index.loops.iter().enumerate().filter(|(_, record)| {
        let header = &file.index.statements[record.statement];
        header.header && header.scope == call.place.scope && record.range.start() > call.range.end()
    });
    let (at, _) = behind.min_by_key(|(_, record)| record.range.start())?;
    let (torch, new) = imported(file, "torch", "torch", "import torch.profiler");
    let schedule = format!("schedule={torch}.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)");
    let separator = if call.arguments.is_empty() { "" } else { ", " };
    let end = call.range.end() - TextSize::of(')');
    let line = format!("{name}.step()");
    let own = [insert(file, end, format!("{separator}{schedule}")), at_loop_end(file, at, &line)?];
    let edits = new.into_iter().chain(own).collect();
    let description = format!("Record one turn of the loop, not all: a schedule, and `{line}` in the loop.");
    Some(EditTry { kind: TryKind::Release, description, edits })
}

/// Groups that came after an optimizer's first are dropped with their state before another one is added.
pub(super) fn forgets_groups(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let text = file.source.inline(call.callee_range);
    let optimizer = text.strip_suffix(".add_param_group")?;
    let statement = file.index.statements[call.place.statement].range;
    let indentation = file.source.indentation(statement.start());
    let newline = file.source.newline();
    let lines = [
        format!("for group in {optimizer}.param_groups[1:]:"),
        "    for parameter in group[\"params\"]:".to_owned(),
        format!("        {optimizer}.state.pop(parameter, None)"),
        format!("del {optimizer}.param_groups[1:]"),
    ];
    let edit = line_before(file, statement, &lines.join(&format!("{newline}{indentation}")))?;
    let description = format!("Drop the groups that were added before: `del {optimizer}.param_groups[1:]`.");
    Some(EditTry { kind: TryKind::Release, description, edits: vec![edit] })
}

/// Workers that end with the epoch of their loader.
pub(super) fn workers_end(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let persistent =
        call.arguments.iter().find(|argument| argument.name.as_deref() == Some("persistent_workers"))?;
    if persistent.value.text.trim() == "False" {
        return None;
    }
    let description = "Let the workers end with each epoch: `persistent_workers=False`.".to_owned();
    Some(EditTry {
        kind: TryKind::Release,
        description,
        edits: vec![replace(file, persistent.value.range, "False")],
    })
}
