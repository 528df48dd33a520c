//! Where lines can be added, and how statements get below a header.

use std::ops::RangeInclusive;

use caulk_core::{Edit, Position};
use ruff_text_size::{TextRange, TextSize};

use crate::edit::{insert, line_before, replace, starts_line};
use crate::lines::Lines;
use crate::sites::{GrowSite, Holder};

/// A line at the end of a loop's body.
pub(super) fn at_loop_end(file: &Lines<'_>, at: usize, line: &str) -> Option<Edit> {
    let record = &file.index.loops[at];
    let header = file.index.statements[record.statement].range;
    let inside = |range: &TextRange| range.start() >= header.end() && record.range.contains_range(*range);
    let first = file
        .index
        .statements
        .iter()
        .map(|statement| statement.range)
        .filter(inside)
        .min_by_key(|range| range.start())?;
    starts_line(file, first)?;
    let indentation = file.source.indentation(first.start()).to_owned();
    after_line(file, record.range.end(), &indentation, line)
}

/// A line at the end of a function, before its last `return`.
pub(super) fn at_function_end(file: &Lines<'_>, scope: usize, line: &str) -> Option<Edit> {
    let record = &file.index.scopes[scope];
    let first = file.index.statements[record.first?].range;
    starts_line(file, first)?;
    if let Some(tail) = record.tail {
        return line_before(file, file.index.statements[tail].range, line);
    }
    let indentation = file.source.indentation(first.start()).to_owned();
    after_line(file, record.range.end(), &indentation, line)
}

/// A line in front of a compound statement.
pub(super) fn above(file: &Lines<'_>, range: TextRange, line: &str) -> Option<Edit> {
    starts_line(file, range)?;
    let indentation = file.source.indentation(range.start());
    Some(insert(file, range.start(), format!("{line}{}{indentation}", file.source.newline())))
}

/// A line behind the one in which something ends.
fn after_line(file: &Lines<'_>, end: TextSize, indentation: &str, line: &str) -> Option<Edit> {
    let at = end_of_line(file, file.source.line_of(end))?;
    let rest = file.source.slice(TextRange::new(end.min(at), at)).trim();
    let newline = file.source.newline();
    (rest.is_empty() || rest.starts_with('#'))
        .then(|| insert(file, at, format!("{newline}{indentation}{line}")))
}

fn end_of_line(file: &Lines<'_>, line: u32) -> Option<TextSize> {
    let column = file.source.line(line)?.chars().count() as u32 + 1;
    file.source.offset(Position { line, column })
}

/// Loops at whose end what a site gathers has been used: around the growth, or around calls of the function that makes it,
/// innermost first. Each with the container as code there writes it.
pub(super) fn loops_of(file: &Lines<'_>, site: &GrowSite) -> Vec<(usize, String)> {
    let Some(op) = file.index.ops.get(site.op) else { return Vec::new() };
    loops_using(file, op.place.block, &site.spot.function, &site.container, site.holder)
}

/// The same for an object that a function uses by this name.
pub(super) fn loops_using(
    file: &Lines<'_>,
    block: usize,
    function: &str,
    object: &str,
    holder: Holder,
) -> Vec<(usize, String)> {
    let mut places: Vec<(usize, String)> =
        file.index.loops_around(block).map(|at| (at, object.to_owned())).collect();
    let name = function.rsplit('.').next().unwrap_or_default();
    for call in file.index.calls.iter().filter(|call| call.callee.last_name() == Some(name)) {
        let text = file.source.inline(call.callee_range);
        // Keys are variables of the function.
        let there = match (holder, object.strip_prefix("self."), text.rsplit_once('.')) {
            _ if has_keys(object) => continue,
            (Holder::Attribute, Some(rest), Some((receiver, _))) => format!("{receiver}.{rest}"),
            (Holder::Global, ..) => object.to_owned(),
            _ => continue,
        };
        places.extend(file.index.loops_around(call.place.block).map(|at| (at, there.clone())));
    }
    places
}

/// Whether an expression has a subscript that is no constant.
fn has_keys(object: &str) -> bool {
    let constant = |key: &str| key.starts_with(|c: char| c == '"' || c == '\'' || c.is_ascii_digit());
    object.split('[').skip(1).any(|key| !constant(key))
}

/// A header instead of what starts at an offset, with the lines from the first to the last one below it. `None` if a string may
/// reach over a line: its text would change.
pub(super) fn below(
    file: &Lines<'_>,
    start: TextSize,
    lines: RangeInclusive<u32>,
    header: &str,
) -> Option<Edit> {
    starts_line(file, TextRange::empty(start))?;
    let range = TextRange::new(start, end_of_line(file, *lines.end())?);
    let text = file.source.slice(range);
    if text.contains("\"\"\"") || text.contains("'''") {
        return None;
    }
    let deeper = if file.source.indentation(start).contains('\t') { "\t" } else { "    " };
    let mut content = header.to_owned();
    for line in lines {
        let line = file.source.line(line)?;
        content.push_str(file.source.newline());
        content.push_str(if line.trim().is_empty() { "" } else { deeper });
        content.push_str(line);
    }
    Some(replace(file, range, content))
}
