//! What a call of the standard library keeps by design, written so that it does not.

use ruff_text_size::TextRange;

use super::arrays::imported;
use crate::edit::{insert, line_after, replace};
use crate::index::CallRecord;
use crate::lines::Lines;
use crate::query::{last_name, spot};
use crate::sites::{EditTry, GrowSite, TryKind};

/// Entries of a queue that got a bound; a producer waits beyond that.
const QUEUE_BOUND: usize = 16;
/// Methods of loggers that take a format and its arguments.
const LEVELS: [&str; 7] = ["debug", "info", "warning", "error", "critical", "exception", "fatal"];

/// The call that makes the queue that a site fills, if a queue it is.
pub(super) fn queue<'m>(file: &'m Lines<'_>, site: &GrowSite) -> Option<&'m CallRecord> {
    let name = last_name(&site.container);
    let assignments = file.index.assignments.iter();
    let made = assignments.filter(|assignment| assignment.target.last_name() == Some(name));
    made.filter_map(|assignment| assignment.value)
        .filter_map(|value| file.index.calls.iter().find(|call| call.range == value))
        .find(|call| call.callee.last_name().is_some_and(|maker| maker.ends_with("Queue")))
}

/// A queue with a bound: it has no `clear`, and what is put in must come out as it is.
pub(super) fn bounded(file: &Lines<'_>, made: &CallRecord) -> Option<EditTry> {
    if !made.arguments.is_empty() {
        return None;
    }
    let content = format!("{}(maxsize={QUEUE_BOUND})", file.source.slice(made.callee_range));
    let description = format!("Give the queue a bound: `{content}`. `put` waits if it is full.");
    let edits = vec![replace(file, made.range, content)];
    Some(EditTry { kind: TryKind::Bound, description, edits })
}

/// A generator that begins again instead of `itertools.cycle`, which keeps all entries of the first pass. For a cycle that a
/// line makes, or reads under its name.
pub(super) fn begins_again(file: &Lines<'_>, line: u32) -> Vec<EditTry> {
    let text = file.line(line).unwrap_or_default();
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let is_read = |call: &CallRecord| {
        let target = file.index.assignments.iter().find(|assignment| assignment.value == Some(call.range));
        let name = target.and_then(|assignment| assignment.target.last_name());
        name.is_some_and(|name| text.split(word).any(|read| read == name))
    };
    let cycles = file.index.calls.iter().filter(|call| is_call_of(file, call, "itertools", "cycle"));
    cycles
        .filter(|call| spot(file, call.place.statement).covers(line) || is_read(call))
        .filter_map(|call| {
            let [items] = call.arguments.as_slice() else { return None };
            let (itertools, new) = imported(file, "itertools", "itertools", "import itertools");
            let content =
                format!("(item for _ in {itertools}.count() for item in {})", items.value.text.trim());
            let description = format!("Begin again instead of keeping all entries: `{content}`.");
            let edits = new.into_iter().chain([replace(file, call.range, content)]).collect();
            Some(EditTry { kind: TryKind::Release, description, edits })
        })
        .collect()
}

/// A mock forgets its calls after each of a line.
pub(super) fn forgets_calls(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let mocks = ["unittest.mock", "mock"];
    let is_here = file.index.imports.values().any(|from| mocks.iter().any(|mock| from.starts_with(mock)));
    let statement = file.index.statements[call.place.statement].range;
    if !is_here || call.callee.steps.is_empty() || statement != call.range {
        return None;
    }
    let line = format!("{}.reset_mock()", call.callee.root_name().filter(|name| *name != "self")?);
    let edit = line_after(file, statement, &line)?;
    let description = format!("Let the mock forget the call: `{line}`.");
    Some(EditTry { kind: TryKind::Release, description, edits: vec![edit] })
}

/// A call logs its text, not the arguments of the text.
pub(super) fn logs_text(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let level = call.callee.last_name().filter(|name| LEVELS.contains(name))?;
    let by_position = call.arguments.iter().all(|argument| argument.name.is_none() && !argument.starred);
    let [format, first, others @ ..] = call.arguments.as_slice() else { return None };
    if !by_position || !format.value.text.starts_with(['"', '\'']) || call.callee.steps.is_empty() {
        return None;
    }
    let last = others.last().unwrap_or(first);
    let arguments = file.source.slice(TextRange::new(first.value.range.start(), last.value.range.end()));
    let comma = if others.is_empty() { "," } else { "" };
    let range = TextRange::new(format.value.range.start(), last.value.range.end());
    let content = format!("{} % ({arguments}{comma})", format.value.text);
    let description = format!("Make the text before the call of `{level}`: `{content}`.");
    Some(EditTry { kind: TryKind::Value, description, edits: vec![replace(file, range, content)] })
}

/// One job after another, instead of jobs that wait in a pool with their arguments.
pub(super) fn waits(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let statement = file.index.statements[call.place.statement].range;
    let submits = call.callee.last_name() == Some("submit") && !call.callee.steps.is_empty();
    if !submits || statement != call.range {
        return None;
    }
    let edits = vec![insert(file, call.range.end(), ".result()")];
    let description = "Wait for each job before the next one is handed over: `.result()`.".to_owned();
    Some(EditTry { kind: TryKind::Bound, description, edits })
}

/// Whether a call is of this function of this module.
pub(super) fn is_call_of(file: &Lines<'_>, call: &CallRecord, module: &str, function: &str) -> bool {
    if call.callee.last_name() != Some(function) {
        return false;
    }
    let from = call.callee.root_name().and_then(|root| file.index.imports.get(root));
    let whole = format!("{module}.{function}");
    from.is_some_and(|from| *from == whole || from == module && call.callee.steps.len() == 1)
}
