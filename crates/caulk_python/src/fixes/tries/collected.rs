//! When the collector of cycles comes by.

use super::arrays::imported;
use super::library::is_call_of;
use super::places::at_loop_end;
use crate::edit::remove_lines;
use crate::lines::Lines;
use crate::query::spot;
use crate::sites::{EditTry, TryKind};

/// Calls that are followed outwards from the function that makes a cycle to a loop.
const MOST_CALLS: usize = 4;

/// What a file can do for cycles that a function of another file makes: leave the collector on, or call it by the loop.
pub(crate) fn collects(file: &Lines<'_>, function: &str) -> Vec<EditTry> {
    let mut found = left_on(file);
    found.extend(calling(file, function).and_then(|at| by_loop(file, at)));
    found
}

/// The collector is left on.
pub(super) fn left_on(file: &Lines<'_>) -> Vec<EditTry> {
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

/// `gc.collect()` at the end of the outermost loop that makes the objects around a line.
pub(super) fn by_the_loop(file: &Lines<'_>, line: u32, function: &str) -> Option<EditTry> {
    let calls = file.index.calls.iter().map(|call| call.place);
    let mut here = calls.filter(|place| spot(file, place.statement).covers(line));
    let at = here.find_map(|place| around(file, place.block)).or_else(|| calling(file, function))?;
    by_loop(file, at)
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

/// The outermost loop around the nearest calls that lead to a function.
fn calling(file: &Lines<'_>, function: &str) -> Option<usize> {
    let mut names = vec![function.to_owned()];
    for _ in 0..MOST_CALLS {
        let mut callers: Vec<String> = Vec::new();
        for name in &names {
            let of_class = name.strip_suffix(".__init__").unwrap_or(name);
            let last = of_class.rsplit('.').next();
            for call in file.index.calls.iter().filter(|call| call.callee.last_name() == last) {
                if let Some(at) = around(file, call.place.block) {
                    return Some(at);
                }
                callers.push(file.index.function_name(call.place.scope));
            }
        }
        names = callers;
    }
    None
}
