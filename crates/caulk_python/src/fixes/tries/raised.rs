//! Exceptions that are kept: without the traceback, which keeps the variables of every frame that it came through.

use ruff_text_size::TextRange;

use crate::edit::replace;
use crate::index::{Assignment, Nature, Place};
use crate::lines::Lines;
use crate::sites::{EditTry, TryKind};

/// `.with_traceback(None)` wherever this file stores what an `except` clause has caught: in attributes, entries, objects.
pub(crate) fn without_frames(file: &Lines<'_>) -> Option<EditTry> {
    let caught: Vec<&Assignment> = file
        .index
        .assignments
        .iter()
        .filter(|assignment| assignment.nature == Nature::Caught && assignment.target.plain().is_some())
        .collect();
    let is_caught = |range: TextRange, place: Place| {
        let function = file.index.function_scope(place.scope);
        let handles = file.index.conditions(place.block).iter().any(|test| test.starts_with("except"));
        let name = file.source.slice(range);
        handles
            && caught.iter().any(|assignment| {
                assignment.target.plain() == Some(name)
                    && file.index.function_scope(assignment.place.scope) == function
            })
            && !function
                .is_some_and(|function| shows_frames(file.source.slice(file.index.scopes[function].range)))
    };
    let mut kept: Vec<TextRange> = Vec::new();
    for assignment in &file.index.assignments {
        // A variable that gets it goes with the function.
        let lasts = assignment.target.plain().is_none();
        let Some(value) = assignment.value.filter(|_| lasts && assignment.nature != Nature::Caught) else {
            continue;
        };
        if is_caught(value, assignment.place) {
            kept.push(value);
        }
    }
    for op in &file.index.ops {
        kept.extend(op.value.iter().map(|value| value.range).filter(|range| is_caught(*range, op.place)));
    }
    kept.sort_by_key(|range| range.start());
    kept.dedup();
    let content = |range: &TextRange| format!("{}.with_traceback(None)", file.source.slice(*range));
    let first = content(kept.first()?);
    Some(EditTry {
        kind: TryKind::Value,
        description: format!("Keep exceptions without the frames that they came through: `{first}`."),
        edits: kept.iter().map(|range| replace(file, *range, content(range))).collect(),
    })
}

/// Whether a function raises again what it caught, or prints its frames: these would be gone, too.
fn shows_frames(function: &str) -> bool {
    let raises = function.lines().any(|line| line.trim() == "raise");
    raises || [".exception(", "exc_info", "traceback."].iter().any(|word| function.contains(word))
}
