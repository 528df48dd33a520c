//! Findings as an editor shows them.

use std::collections::HashMap;

use camino::Utf8PathBuf;
use caulk_core::{Applicability, Diagnostic, Edit, Fix, LeakClass, Problem, Severity};
use lsp_types::{
    CodeAction, CodeActionKind, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location,
    NumberOrString, Range, TextEdit, Uri, WorkspaceEdit,
};

use super::position::{Encoding, Lines};
use super::uri;
use crate::check::Project;

/// One finding of an open file, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Its rule; `None` for notices.
    pub(super) class: Option<LeakClass>,
    pub(super) diagnostic: lsp_types::Diagnostic,
    /// What can be done about it.
    pub(super) actions: Vec<CodeAction>,
}

const SOURCE: &str = "caulk";

/// A finding and its file.
pub(super) fn finding(
    found: &Diagnostic,
    project: &Project,
    encoding: Encoding,
) -> Option<(Utf8PathBuf, Shown)> {
    let site = found.sites.first()?;
    let text = Lines::new(&project.documents.get(&site.file)?.text);
    let diagnostic = lsp_types::Diagnostic {
        range: text.to_end_of_line(site.line, site.column, encoding),
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Info => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(found.class.as_str().to_owned())),
        source: Some(SOURCE.to_owned()),
        message: if found.message.is_empty() {
            found.class.summary().to_owned()
        } else {
            found.message.clone()
        },
        related_information: related(found, project, encoding),
        ..lsp_types::Diagnostic::default()
    };
    let fix = found.fix.as_ref().and_then(|fix| fix_action(fix, &diagnostic, project, encoding));
    let ignore = ignore_action(found, &text, &diagnostic, project, encoding);
    let actions = fix.into_iter().chain(ignore).collect();
    let path = project.names.on_disk(&site.file);
    Some((path, Shown { class: Some(found.class), diagnostic, actions }))
}

/// Suppressions that silence nothing.
pub(super) fn notices(
    notices: &[Problem],
    project: &Project,
    encoding: Encoding,
) -> Vec<(Utf8PathBuf, Shown)> {
    let shown = |notice: &Problem| {
        let text = Lines::new(&project.documents.get(&notice.file)?.text);
        let range = text.to_end_of_line(notice.line?, notice.column.unwrap_or(1), encoding);
        let diagnostic = lsp_types::Diagnostic {
            range,
            severity: Some(DiagnosticSeverity::HINT),
            source: Some(SOURCE.to_owned()),
            message: notice.message.clone(),
            tags: Some(vec![DiagnosticTag::UNNECESSARY]),
            ..lsp_types::Diagnostic::default()
        };
        let path = project.names.on_disk(&notice.file);
        Some((path, Shown { class: None, diagnostic, actions: Vec::new() }))
    };
    notices.iter().filter_map(shown).collect()
}

/// The chain from what makes the value to why it lives on.
fn related(
    found: &Diagnostic,
    project: &Project,
    encoding: Encoding,
) -> Option<Vec<DiagnosticRelatedInformation>> {
    let step = |step: &caulk_core::ChainStep| {
        let text = Lines::new(&project.documents.get(&step.file)?.text);
        let indentation = text.line(step.line).chars().take_while(|c| c.is_whitespace()).count() as u32;
        let range = text.to_end_of_line(step.line, indentation + 1, encoding);
        let uri = uri::of_path(&project.names.on_disk(&step.file))?;
        Some(DiagnosticRelatedInformation { location: Location { uri, range }, message: step.note.clone() })
    };
    let steps: Vec<_> = found.chain.iter().filter_map(step).collect();
    (!steps.is_empty()).then_some(steps)
}

fn fix_action(
    fix: &Fix,
    diagnostic: &lsp_types::Diagnostic,
    project: &Project,
    encoding: Encoding,
) -> Option<CodeAction> {
    if fix.edits.is_empty() || fix.applicability == Applicability::DisplayOnly {
        return None;
    }
    let caution = if fix.applicability == Applicability::Safe { "" } else { " (may change behaviour)" };
    Some(CodeAction {
        title: format!("caulk: {}{caution}", fix.description.trim_end_matches('.')),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![diagnostic.clone()]),
        edit: Some(edit(&fix.edits, project, encoding)?),
        is_preferred: Some(fix.applicability == Applicability::Safe),
        ..CodeAction::default()
    })
}

/// A comment at the end of the line.
fn ignore_action(
    found: &Diagnostic,
    text: &Lines<'_>,
    diagnostic: &lsp_types::Diagnostic,
    project: &Project,
    encoding: Encoding,
) -> Option<CodeAction> {
    let site = found.sites.first()?;
    let line = text.line(site.line);
    // Behind a line that goes on, or has a comment, it would need more thought.
    if line.contains('#') || line.ends_with('\\') {
        return None;
    }
    let end = text.position(site.line, line.chars().count() as u32 + 1, encoding);
    let content = format!("  # caulk: ignore[{}]", found.class);
    let uri = uri::of_path(&project.names.on_disk(&site.file))?;
    let edits = vec![TextEdit { range: Range { start: end, end }, new_text: content }];
    Some(CodeAction {
        title: format!("caulk: ignore `{}` here", found.class),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: Some(vec![diagnostic.clone()]),
        edit: Some(WorkspaceEdit {
            changes: Some(HashMap::from([(uri, edits)])),
            ..WorkspaceEdit::default()
        }),
        ..CodeAction::default()
    })
}

#[expect(clippy::mutable_key_type, reason = "the protocol's type; the URIs are never changed")]
fn edit(edits: &[Edit], project: &Project, encoding: Encoding) -> Option<WorkspaceEdit> {
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for edit in edits {
        let text = Lines::new(&project.documents.get(&edit.file)?.text);
        let at = |position: caulk_core::Position| text.position(position.line, position.column, encoding);
        let range = Range { start: at(edit.start), end: at(edit.end) };
        let uri = uri::of_path(&project.names.on_disk(&edit.file))?;
        changes.entry(uri).or_default().push(TextEdit { range, new_text: edit.content.clone() });
    }
    Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}
