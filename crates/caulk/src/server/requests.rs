//! Answers to an editor's questions, from what was seen last.

use caulk_core::LeakClass;
use lsp_types::{
    CodeActionOrCommand, CodeActionParams, Hover, HoverContents, HoverParams, MarkupContent, MarkupKind,
    Position, Range,
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

/// What can be done about the findings in a range.
pub(super) fn code_actions(shown: &[Shown], params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
    let wanted = params.context.only.as_deref();
    let quick = |kind: &lsp_types::CodeActionKind| "quickfix".starts_with(kind.as_str());
    if wanted.is_some_and(|kinds| !kinds.iter().any(quick)) {
        return Vec::new();
    }
    let here = shown.iter().filter(|shown| overlap(shown.diagnostic.range, params.range));
    here.flat_map(|shown| &shown.actions).cloned().map(CodeActionOrCommand::CodeAction).collect()
}

fn contains(range: Range, at: Position) -> bool {
    range.start <= at && at <= range.end
}

fn overlap(a: Range, b: Range) -> bool {
    a.start <= b.end && b.start <= a.end
}
