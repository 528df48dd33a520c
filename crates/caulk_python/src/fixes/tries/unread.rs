//! Entries that a file stores and never reads: not kept at all.

use caulk_core::Edit;
use ruff_text_size::{TextRange, TextSize};

use crate::edit::{remove_lines, replace};
use crate::index::{Action, CallRecord, Nature, Op};
use crate::lines::Lines;
use crate::path::{Path, Step};
use crate::query::last_name;
use crate::sites::{EditTry, GrowKind, GrowSite, TryKind};

/// Ways to find attributes by a computed name.
const REFLECTION: [&str; 5] = ["getattr(", "vars(", "__dict__", "state_dict(", "buffers("];

/// The value is made and not stored, if the file does no more than make and fill the container.
pub(super) fn not_kept(file: &Lines<'_>, site: &GrowSite) -> Option<EditTry> {
    let adds = matches!(site.kind, GrowKind::Append | GrowKind::Add | GrowKind::Subscript);
    let op = file.index.ops.get(site.op).filter(|_| adds)?;
    let name = last_name(&site.container);
    if is_read(file, name) {
        return None;
    }
    let key = site.key.as_deref().unwrap_or_default();
    let description = format!("Nothing reads `{}`: do not keep what is stored in it.", site.container);
    edit(
        file,
        file.index.statements[op.place.statement].range,
        &[key, &site.value.as_ref()?.text],
        description,
    )
}

/// The same of `setattr(self, f"seen_{n}", value)` and `self.register_buffer(f"seen_{n}", value)`, if the file looks up no
/// attribute by a computed name.
pub(super) fn not_set(file: &Lines<'_>, call: &CallRecord) -> Option<EditTry> {
    let named = match (call.callee.last_name()?, call.arguments.as_slice()) {
        ("setattr", [_, name, value]) | ("register_buffer", [name, value, ..]) => Some((name, value)),
        _ => None,
    };
    let (name, value) = named.filter(|(name, _)| !name.value.text.starts_with(['"', '\'']))?;
    let statement = file.index.statements[call.place.statement].range;
    if statement != call.range || REFLECTION.iter().any(|way| file.source.text().contains(way)) {
        return None;
    }
    let description = format!("Nothing reads attributes by such names: do not set {}.", name.value.text);
    edit(file, statement, &["", &value.value.text], description)
}

/// Instead of a statement, those of its expressions that call something.
fn edit(file: &Lines<'_>, statement: TextRange, parts: &[&str], description: String) -> Option<EditTry> {
    let calls: Vec<&str> = parts.iter().copied().filter(|part| part.contains('(')).collect();
    let edit = match calls.as_slice() {
        [] => left_out(file, statement)?,
        calls => replace(file, statement, calls.join("; ")),
    };
    Some(EditTry { kind: TryKind::Drop, description, edits: vec![edit] })
}

/// A statement left out; `pass` where its block has no other.
pub(super) fn left_out(file: &Lines<'_>, statement: TextRange) -> Option<Edit> {
    if has_neighbour(file, statement) {
        return remove_lines(file, statement);
    }
    Some(replace(file, statement, "pass"))
}

/// Whether the file has the name anywhere but where it is bound to something empty, or gets longer.
fn is_read(file: &Lines<'_>, name: &str) -> bool {
    let fills = |action: Action| match action {
        Action::Grow(kind) => {
            matches!(kind, GrowKind::Append | GrowKind::Add | GrowKind::Subscript | GrowKind::Assign)
        }
        action => action == Action::Reset,
    };
    let mine = file.index.ops.iter().filter(|op| op.path.last_name() == Some(name));
    let (filled, other): (Vec<&Op>, Vec<&Op>) = mine.partition(|op| fills(op.action));
    let is_known = |at: TextSize| filled.iter().any(|op| op.container.start() == at);
    let names = |path: &Path| {
        path.root_name() == Some(name)
            || path
                .steps
                .iter()
                .any(|step| matches!(step, Step::Attr(known) | Step::Key(known) if known == name))
    };
    let bound =
        file.index.assignments.iter().filter(|assignment| assignment.target.last_name() == Some(name));
    !other.is_empty()
        || file.index.named_reads.contains(name)
        || bound.into_iter().any(|assignment| assignment.nature != Nature::Empty)
        || file.index.reads.iter().any(|(path, place)| names(path) && !is_known(place.offset))
        || file.index.calls.iter().any(|call| names(&call.callee) && !is_known(call.callee_range.start()))
}

/// Whether a statement of the same indentation stands before or behind it.
fn has_neighbour(file: &Lines<'_>, statement: TextRange) -> bool {
    let (first, last) = (file.source.line_of(statement.start()), file.source.line_of(statement.end()));
    let own = file.source.indentation(statement.start());
    let is_beside = |line: Option<&str>| {
        let line = line.unwrap_or_default();
        line.strip_prefix(own).is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    };
    is_beside(file.source.line(first - 1)) || is_beside(file.source.line(last + 1))
}
