//! Answers to an editor's questions, from what was seen last.

use std::collections::HashMap;

use caulk_core::LeakClass;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Hover, HoverContents, HoverParams,
    MarkupContent, MarkupKind, Position, Range, TextEdit, Uri, WorkspaceEdit,
};

use super::convert::Shown;

/// The page of the rule whose finding is under the pointer.
pub(super) fn hover(shown: &[Shown], params: &HoverParams) -> Option<Hover> {
    let at = params.text_document_position_params.position;
    let here: Vec<&Shown> = shown.iter().filter(|shown| contains(shown.diagnostic.range, at)).collect();
    let mut classes: Vec<LeakClass> = here.iter().filter_map(|shown| shown.class).collect();
    classes.dedup();
    let pages: Vec<&str> =
        classes.into_iter().filter_map(caulk_rules::rule).map(|rule| rule.explanation).collect();
    if pages.is_empty() {
        return None;
    }
    let contents = MarkupContent { kind: MarkupKind::Markdown, value: pages.join("\n---\n") };
    let range = here.first().map(|shown| shown.diagnostic.range);
    Some(Hover { contents: HoverContents::Markup(contents), range })
}

/// All safe fixes of a file at once: what editors do on saving, where the user wants that.
pub(super) const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.caulk");

/// What can be done about the findings in a range, and about the whole file.
pub(super) fn code_actions(shown: &[Shown], params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
    let wanted = params.context.only.as_deref();
    let mut actions = Vec::new();
    if wanted.is_none_or(|kinds| kinds.iter().any(|kind| includes(kind, &CodeActionKind::QUICKFIX))) {
        let here = shown.iter().filter(|shown| overlap(shown.diagnostic.range, params.range));
        actions.extend(here.flat_map(|shown| &shown.actions).cloned());
    }
    // Nobody who asks what can be done here means the rest of the file.
    if wanted.is_some_and(|kinds| kinds.iter().any(|kind| includes(kind, &FIX_ALL))) {
        actions.extend(fix_all(shown));
    }
    actions.into_iter().map(CodeActionOrCommand::CodeAction).collect()
}

/// `source` includes `source.fixAll`, but not `sourcery`.
fn includes(kind: &CodeActionKind, other: &CodeActionKind) -> bool {
    let rest = other.as_str().strip_prefix(kind.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || kind.as_str().is_empty())
}

/// Safe fixes whose edits do not touch each other; the others are offered again when these are in.
#[expect(clippy::mutable_key_type, reason = "the protocol's type; the URIs are never changed")]
fn fix_all(shown: &[Shown]) -> Option<CodeAction> {
    let mut all: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    let safe = |action: &&CodeAction| action.is_preferred == Some(true);
    for action in shown.iter().filter_map(|shown| shown.actions.iter().find(safe)) {
        let changes = action.edit.as_ref().and_then(|edit| edit.changes.as_ref())?;
        let free = |(uri, edits): (&Uri, &Vec<TextEdit>)| {
            let taken = all.get(uri).map(Vec::as_slice).unwrap_or_default();
            edits
                .iter()
                .all(|edit| taken.iter().all(|other| other == edit || !overlap(other.range, edit.range)))
        };
        if changes.iter().all(free) {
            for (uri, edits) in changes {
                let taken = all.entry(uri.clone()).or_default();
                // The same edit in two fixes, such as an import, is one edit.
                let new: Vec<_> = edits.iter().filter(|edit| !taken.contains(edit)).cloned().collect();
                taken.extend(new);
            }
        }
    }
    (!all.is_empty()).then(|| CodeAction {
        title: "caulk: fix all that is safe to fix".to_owned(),
        kind: Some(FIX_ALL),
        edit: Some(WorkspaceEdit { changes: Some(all), ..WorkspaceEdit::default() }),
        ..CodeAction::default()
    })
}

fn contains(range: Range, at: Position) -> bool {
    range.start <= at && at <= range.end
}

fn overlap(a: Range, b: Range) -> bool {
    a.start <= b.end && b.start <= a.end
}
