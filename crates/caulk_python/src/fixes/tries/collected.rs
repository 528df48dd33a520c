//! When the collector of cycles comes by.

use super::arrays::imported;
use super::library::is_call_of;
use super::places::at_loop_end;
use super::unread::left_out;
use crate::index::CallRecord;
use crate::lines::Lines;
use crate::query::spot;
use crate::sites::{EditTry, TryKind};

/// The collector is left on.
pub(crate) fn left_on(file: &Lines<'_>) -> Vec<EditTry> {
    let disables = file.index.calls.iter().filter(|call| is_call_of(file, call, "gc", "disable"));
    disables
        .filter_map(|call| {
            let statement = file.index.statements[call.place.statement].range;
            let edit = (statement == call.range).then(|| left_out(file, statement)).flatten()?;
            let description = "Leave the collector of cycles on: no `gc.disable()`.".to_owned();
            Some(EditTry { kind: TryKind::Collect, description, edits: vec![edit] })
        })
        .collect()
}

/// `gc.collect()` at the end of the outermost loop that makes the objects around a line, in its own function.
pub(super) fn by_the_loop(file: &Lines<'_>, line: u32) -> Option<EditTry> {
    let calls = file.index.calls.iter().map(|call| call.place);
    let mut here = calls.filter(|place| spot(file, place.statement).covers(line));
    by_loop(file, here.find_map(|place| around(file, place.block))?)
}

/// The same for the outermost loop around calls of a function.
pub(crate) fn by_calls(file: &Lines<'_>, function: &str) -> Option<EditTry> {
    by_loop(file, calls_of(file, function).find_map(|call| around(file, call.place.block))?)
}

/// The functions that call a function, or make an object if it is a constructor.
pub(crate) fn callers(file: &Lines<'_>, function: &str) -> Vec<String> {
    calls_of(file, function).map(|call| file.index.function_name(call.place.scope)).collect()
}

fn calls_of<'m>(file: &Lines<'m>, function: &str) -> impl Iterator<Item = &'m CallRecord> {
    let of_class = function.strip_suffix(".__init__").unwrap_or(function);
    let last = of_class.rsplit('.').next().unwrap_or_default().to_owned();
    file.index.calls.iter().filter(move |call| call.callee.last_name() == Some(last.as_str()))
}

fn by_loop(file: &Lines<'_>, at: usize) -> Option<EditTry> {
    let (gc, new) = imported(file, "gc", "gc", "import gc");
    let collect = format!("{gc}.collect()");
    let edits = new.into_iter().chain([at_loop_end(file, at, &collect)?]).collect();
    let header = spot(file, file.index.loops[at].statement);
    let description = format!(
        "Let the collector run at the end of each turn of the loop of line {}: `{collect}`.",
        header.line
    );
    Some(EditTry { kind: TryKind::Collect, description, edits })
}

/// The outermost loop around a block.
fn around(file: &Lines<'_>, block: usize) -> Option<usize> {
    // A comprehension has no end to put a line at.
    let in_place = |at: &usize| file.index.statements[file.index.loops[*at].statement].header;
    file.index.loops_around(block).filter(in_place).last()
}
