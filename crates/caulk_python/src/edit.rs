//! Edits as text: replacing an expression, adding a line, importing a name.

use caulk_core::{Edit, Position};
use ruff_text_size::{TextRange, TextSize};

use crate::lines::Lines;
use crate::text::Source;

/// Text with edits applied; their `file` is not looked at. `None` where a position does not exist or edits overlap.
pub fn apply(text: &str, edits: &[Edit]) -> Option<String> {
    let source = Source::new(text.to_owned());
    let mut ranges = Vec::new();
    for edit in edits {
        let (start, end) = (source.offset(edit.start)?, source.offset(edit.end)?);
        if end < start {
            return None;
        }
        ranges.push((start.to_usize(), end.to_usize(), edit.content.as_str()));
    }
    // Stable: of insertions at one place, the first given comes first.
    ranges.sort_by_key(|&(start, end, _)| (start, end));
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, content) in ranges {
        changed.push_str(text.get(at..start)?);
        changed.push_str(content);
        at = end;
    }
    changed.push_str(text.get(at..)?);
    Some(changed)
}

/// Replaces a range.
pub(crate) fn replace(file: &Lines<'_>, range: TextRange, content: impl Into<String>) -> Edit {
    Edit {
        file: file.path().to_owned(),
        start: file.source.position(range.start()),
        end: file.source.position(range.end()),
        content: content.into(),
    }
}

/// Inserts at an offset.
pub(crate) fn insert(file: &Lines<'_>, at: TextSize, content: impl Into<String>) -> Edit {
    replace(file, TextRange::empty(at), content)
}

/// A line behind a statement, indented as it is. `None` where the statement shares its lines with another.
pub(crate) fn line_after(file: &Lines<'_>, statement: TextRange, line: &str) -> Option<Edit> {
    alone(file, statement)?;
    let last = file.source.line_of(statement.end());
    let indentation = file.source.indentation(statement.start());
    let at = end_of_line(file, last)?;
    let newline = file.source.newline();
    let inner = line.replace('\n', &format!("{newline}{indentation}"));
    Some(insert(file, at, format!("{newline}{indentation}{inner}")))
}

/// A line in front of a statement, likewise.
pub(crate) fn line_before(file: &Lines<'_>, statement: TextRange, line: &str) -> Option<Edit> {
    alone(file, statement)?;
    let indentation = file.source.indentation(statement.start());
    Some(insert(file, statement.start(), format!("{line}{}{indentation}", file.source.newline())))
}

/// Removes the lines of something that stands alone on them.
pub(crate) fn remove_lines(file: &Lines<'_>, range: TextRange) -> Option<Edit> {
    alone(file, range)?;
    let (first, last) = (file.source.line_of(range.start()), file.source.line_of(range.end()));
    file.source.line(last + 1)?;
    Some(Edit {
        file: file.path().to_owned(),
        start: Position { line: first, column: 1 },
        end: Position { line: last + 1, column: 1 },
        content: String::new(),
    })
}

/// The edit that imports something, unless the name is there already.
pub(crate) fn import(file: &Lines<'_>, name: &str, line: &str) -> Option<Edit> {
    if file.index.imports.contains_key(name) {
        return None;
    }
    let newline = file.source.newline();
    if let Some(last) = file.index.last_import {
        let range = file.index.statements[last].range;
        if alone(file, range).is_some() {
            return line_after(file, range, line);
        }
    }
    // In front of the first statement that is no docstring.
    if let Some(docstring) = file.index.docstring.filter(|range| alone(file, *range).is_some()) {
        return line_after(file, docstring, line);
    }
    // Behind a `#!` line, an encoding comment and other comments at the top.
    let first = file.index.statements.first().map_or(TextSize::default(), |first| first.range.start());
    let at = file.source.offset(Position { line: file.source.line_of(first), column: 1 })?;
    Some(insert(file, at, format!("{line}{newline}")))
}

fn end_of_line(file: &Lines<'_>, line: u32) -> Option<TextSize> {
    let columns = file.source.line(line)?.chars().count() as u32;
    file.source.offset(Position { line, column: columns + 1 })
}

/// Some where a statement has its lines for itself, comments aside.
fn alone(file: &Lines<'_>, statement: TextRange) -> Option<()> {
    starts_line(file, statement)?;
    let end = end_of_line(file, file.source.line_of(statement.end()))?;
    let after = file.source.slice(TextRange::new(statement.end(), end.max(statement.end()))).trim();
    (after.is_empty() || after.starts_with('#')).then_some(())
}

/// Some where nothing stands before a statement on its line.
pub(crate) fn starts_line(file: &Lines<'_>, statement: TextRange) -> Option<()> {
    let line = file.source.line_of(statement.start());
    let start = file.source.offset(Position { line, column: 1 })?;
    let before = file.source.slice(TextRange::new(start.min(statement.start()), statement.start()));
    before.trim_start_matches('\u{feff}').trim().is_empty().then_some(())
}
