//! An array instead of a list: reading an entry writes to no reference count, so that workers copy no page of it.

use caulk_core::Edit;
use ruff_text_size::{TextRange, TextSize};

use crate::edit::{import, replace};
use crate::lines::Lines;
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};

/// An array of what a list holds; and one of its entries as bytes, if the program reads them one by one.
pub(super) fn arrays(file: &Lines<'_>, site: &GrowSite) -> Vec<EditTry> {
    let Some(value) = site.value.as_ref().filter(|_| site.kind == GrowKind::Assign && site.collection) else {
        return Vec::new();
    };
    let kept = &site.container;
    let (numpy, array) = imported(file, "numpy", "np", "import numpy as np");
    let whole = format!("{numpy}.array({})", value.text);
    let plain = EditTry {
        kind: TryKind::Array,
        description: format!("Keep an array in `{kept}` instead of a list: `{numpy}.array(...)`."),
        edits: array.iter().cloned().chain([replace(file, value.range, whole)]).collect(),
    };
    let (pickle, bytes) = imported(file, "pickle", "pickle", "import pickle");
    let packed = format!("{numpy}.array([{pickle}.dumps(entry) for entry in {}])", value.text);
    let unpacked = entries_read(file, kept, value.range).map(|read| EditTry {
        kind: TryKind::Array,
        description: format!("Keep the entries of `{kept}` as one array of bytes: `{pickle}.dumps(entry)`."),
        edits: array
            .into_iter()
            .chain(bytes)
            .chain([replace(file, value.range, packed)])
            .chain(
                read.into_iter().map(|range| {
                    replace(file, range, format!("{pickle}.loads({})", file.source.slice(range)))
                }),
            )
            .collect(),
    });
    std::iter::once(plain).chain(unpacked).collect()
}

/// The name of a module here, and the edit that imports it.
pub(super) fn imported(file: &Lines<'_>, module: &str, usual: &str, line: &str) -> (String, Option<Edit>) {
    match file.index.imports.iter().find(|(_, from)| *from == module) {
        Some((name, _)) => (name.clone(), None),
        None => (usual.to_owned(), import(file, usual, line)),
    }
}

/// Where single entries are read: `self.rows[index]`. `None` if the container is used in another way than these and `len`.
fn entries_read(file: &Lines<'_>, container: &str, made: TextRange) -> Option<Vec<TextRange>> {
    let text = file.source.text();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let mut found = Vec::new();
    for (at, _) in text.match_indices(container) {
        let (before, rest) = (&text[..at], &text[at + container.len()..]);
        if before.ends_with(word) || rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let is_made = rest.trim_start().starts_with('=') && text[at..made.start().to_usize()].len() < 200;
        if at < made.start().to_usize() && is_made || before.ends_with("len(") && rest.starts_with(')') {
            continue;
        }
        let end = subscript_end(rest)?;
        let start = TextSize::try_from(at).ok()?;
        let length = TextSize::try_from(container.len() + end).ok()?;
        found.push(TextRange::at(start, length));
    }
    (!found.is_empty()).then_some(found)
}

/// The length of a subscript that is no slice.
fn subscript_end(rest: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in rest.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            ':' if depth == 1 => return None,
            _ => {}
        }
        if depth == 0 {
            let assigned = rest[at + 1..].trim_start();
            let is_stored = assigned.starts_with('=') && !assigned.starts_with("==");
            return (c == ']' && !is_stored).then_some(at + 1);
        }
    }
    None
}
