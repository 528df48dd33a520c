//! What a call of the standard library keeps by design, written so that it does not.

use super::arrays::imported;
use crate::edit::{remove_lines, replace};
use crate::index::CallRecord;
use crate::lines::Lines;
use crate::query::{last_name, spot};
use crate::sites::{EditTry, GrowSite, TryKind};

/// Entries of a queue that got a bound; a producer waits beyond that.
const QUEUE_BOUND: usize = 16;

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

/// The collector of cycles is left on.
pub(super) fn collects(file: &Lines<'_>) -> Vec<EditTry> {
    let disables = file.index.calls.iter().filter(|call| is_call_of(file, call, "gc", "disable"));
    disables
        .filter_map(|call| {
            let statement = file.index.statements[call.place.statement].range;
            let edit = (statement == call.range).then(|| remove_lines(file, statement)).flatten()?;
            let description = "Leave the collector of cycles on: no `gc.disable()`.".to_owned();
            Some(EditTry { kind: TryKind::Collect, description, edits: vec![edit] })
        })
        .collect()
}

/// Whether a call is of this function of this module.
fn is_call_of(file: &Lines<'_>, call: &CallRecord, module: &str, function: &str) -> bool {
    if call.callee.last_name() != Some(function) {
        return false;
    }
    let from = call.callee.root_name().and_then(|root| file.index.imports.get(root));
    let whole = format!("{module}.{function}");
    from.is_some_and(|from| *from == whole || from == module && call.callee.steps.len() == 1)
}
