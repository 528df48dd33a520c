//! Chains of objects, each of which keeps the one before.

use crate::edit::line_after;
use crate::lines::Lines;
use crate::query::statements_at;
use crate::sites::{EditTry, TryKind};

/// The newest object keeps the one before it, and that one no other: `state.previous.previous = None`.
pub(crate) fn cut(file: &Lines<'_>, line: u32, newest: &str, link: &str) -> Option<EditTry> {
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_') && !text.is_empty();
    // An attribute: a variable that a function closes over is none.
    let text = file.source.text();
    let is_attribute = text.contains(&format!(".{link}")) || text.contains(&format!("    {link}:"));
    if !is_attribute || !is_name(link) || !newest.split('.').all(is_name) {
        return None;
    }
    let statement = statements_at(file, line).into_iter().find(|at| !file.index.statements[*at].header)?;
    let before = format!("{newest}.{link}");
    let lines = format!("if {before} is not None:\n    {before}.{link} = None");
    let edit = line_after(file, file.index.statements[statement].range, &lines)?;
    let description = format!("Keep the one before alone: `{before}.{link} = None`.");
    Some(EditTry { kind: TryKind::Bound, description, edits: vec![edit] })
}
