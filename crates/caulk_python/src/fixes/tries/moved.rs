//! What a loop makes again in each turn, made once before it.

use crate::edit::remove_lines;
use crate::index::Place;
use crate::lines::Lines;
use crate::query::{grows_at, statements_at};
use crate::sites::{EditTry, GrowKind, TryKind};

use super::places::above;

/// The statement of a line in front of the loop that has it in its body, unless it reads what the loop binds.
pub(super) fn out_of_loop(file: &Lines<'_>, line: u32) -> Option<EditTry> {
    let makes = |kind| matches!(kind, GrowKind::Register | GrowKind::Assign);
    if !grows_at(file, line).iter().all(|site| makes(site.kind)) {
        return None;
    }
    let statement = statements_at(file, line).into_iter().find(|at| !file.index.statements[*at].header)?;
    let place = file.index.calls.iter().map(|call| call.place).find(|place| place.statement == statement)?;
    let at = file.index.blocks[place.block].repeats?;
    let record = &file.index.loops[at];
    let range = file.index.statements[statement].range;
    let inside = file
        .index
        .statements
        .iter()
        .filter(|other| record.range.contains_range(other.range) && other.range != range);
    // The header is one of them; a body cannot be empty.
    if inside.count() < 2 || reads_of_turn(file, place, at) {
        return None;
    }
    let header = file.index.statements[record.statement].range;
    let text = file.source.slice(range);
    let edits = vec![above(file, header, text)?, remove_lines(file, range)?];
    let loop_line = file.source.line_of(header.start());
    let shown = text.lines().next().unwrap_or_default();
    let description = format!("Make it once, before the loop of line {loop_line}: `{shown}`.");
    Some(EditTry { kind: TryKind::Place, description, edits })
}

/// Whether a statement reads something that is bound in the loop.
fn reads_of_turn(file: &Lines<'_>, place: Place, at: usize) -> bool {
    let record = &file.index.loops[at];
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let mut bound: Vec<&str> = record.target.split(word).filter(|name| !name.is_empty()).collect();
    let assigned = file.index.assignments.iter().filter(|assignment| {
        record.range.contains_range(assignment.target_range) && assignment.place.statement != place.statement
    });
    bound.extend(
        assigned.filter_map(|assignment| assignment.target.root_name()).filter(|name| *name != "self"),
    );
    let text = file.source.slice(file.index.statements[place.statement].range);
    text.split(word).any(|name| bound.contains(&name))
}
