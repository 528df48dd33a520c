//! Exceptions that are kept: without the traceback, which keeps the variables of every frame that it came through.

use ruff_text_size::TextRange;

use crate::edit::replace;
use crate::index::{Assignment, Nature};
use crate::lines::Lines;
use crate::path::Path;
use crate::sites::{EditTry, TryKind};

/// `.with_traceback(None)` wherever this file stores what an `except` clause has caught: in attributes, entries, objects.
pub(crate) fn without_frames(file: &Lines<'_>) -> Option<EditTry> {
    let caught: Vec<&Assignment> = file
        .index
        .assignments
        .iter()
        .filter(|assignment| assignment.nature == Nature::Caught && assignment.target.plain().is_some())
        .collect();
    let is_caught = |path: &Path, scope: usize| {
        let function = file.index.function_scope(scope);
        path.steps.is_empty()
            && caught.iter().any(|assignment| {
                assignment.target == *path && file.index.function_scope(assignment.place.scope) == function
            })
    };
    let mut kept: Vec<TextRange> = Vec::new();
    for assignment in &file.index.assignments {
        // A variable that gets it goes with the function.
        let lasts = assignment.target.plain().is_none();
        let Some(value) = assignment.value.filter(|_| lasts && assignment.nature != Nature::Caught) else {
            continue;
        };
        let source = assignment.source.as_ref();
        if source.is_some_and(|source| is_caught(source, assignment.place.scope)) {
            kept.push(value);
        }
    }
    for op in &file.index.ops {
        let Some(value) = &op.value else { continue };
        let caught = value.reads.len() == 1 && is_caught(&value.reads[0], op.place.scope);
        if caught && value.reads[0].plain() == Some(value.text.as_str()) {
            kept.push(value.range);
        }
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
