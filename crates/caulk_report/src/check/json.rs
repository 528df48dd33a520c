//! Findings of a check as a JSON document, by the contract of schema 1.

use caulk_core::{
    ChainStep, Confidence, Diagnostic, Edit, Finding, Fix, Growth, LeakClass, Pinned, Place, Position,
    Problem, ProcessRef, Proof, Scope, Severity, Site, Verdict,
};
use serde::Serialize;

use super::CheckReport;
use crate::shown::{Fact, facts};
use crate::{Cells, ascii};

/// Version of the JSON document of `check`.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    tool: Tool,
    command: &'static str,
    summary: Summary,
    verdicts: [Verdict; 0],
    findings: Vec<Found<'a>>,
    notices: Vec<InCell<Problem>>,
    problems: Vec<InCell<Problem>>,
    unread: Vec<InCell<Problem>>,
    left: Vec<InCell<Problem>>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Summary {
    files: usize,
    unread: usize,
    errors: usize,
    warnings: usize,
    info: usize,
    suppressed: usize,
    known: usize,
    fixed: usize,
}

/// A finding with the keys of those that were observed; what only a run can know is null or empty.
#[derive(Serialize)]
struct Found<'a> {
    class: LeakClass,
    confidence: Confidence,
    scope: Scope,
    severity: Severity,
    proof: Proof,
    message: &'a str,
    sites: Vec<Site>,
    container: &'a str,
    holder: &'a str,
    holder_path: &'a [String],
    chain: Vec<InCell<ChainStep>>,
    process: Option<&'a ProcessRef>,
    growth: Option<&'a Growth>,
    pinned: Option<Pinned>,
    evidence: Vec<Fact<'a>>,
    fix: Option<Change<'a>>,
    twins: Vec<InCell<Place>>,
    more_twins: usize,
}

#[derive(Serialize)]
struct Change<'a> {
    applicability: caulk_core::Applicability,
    description: &'a str,
    edits: Vec<InCell<Edit>>,
}

/// A place, with the cell where it is in a notebook.
#[derive(Serialize)]
struct InCell<T> {
    #[serde(flatten)]
    place: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
}

/// One indented JSON document that ends with a line break.
#[expect(clippy::missing_panics_doc, reason = "plain data is always valid JSON")]
pub fn json(report: &CheckReport) -> String {
    let observed = report.observed.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let document = Document {
        schema: SCHEMA,
        tool: Tool { name: "caulk", version: env!("CARGO_PKG_VERSION") },
        command: "check",
        summary: Summary {
            files: report.files,
            unread: report.unread.len(),
            errors: report.count(Severity::Error),
            warnings: report.count(Severity::Warning),
            info: report.count(Severity::Info),
            suppressed: report.suppressed,
            known: report.known,
            fixed: report.fixed.as_ref().map_or(0, super::FixSummary::total),
        },
        verdicts: [],
        findings: report
            .findings
            .iter()
            .zip(observed)
            .map(|(finding, seen)| found(finding, seen, &report.cells))
            .collect(),
        notices: report.notices.iter().map(|of| problem(of, &report.cells)).collect(),
        problems: report.problems.iter().map(|of| problem(of, &report.cells)).collect(),
        unread: report.unread.iter().map(|of| problem(of, &report.cells)).collect(),
        left: report.left.iter().map(|of| problem(of, &report.cells)).collect(),
    };
    // Values of plain data with string keys: there is nothing in them that JSON cannot hold.
    let mut text = serde_json::to_string_pretty(&document).expect("plain data is valid JSON");
    text.push('\n');
    ascii::plain(&text)
}

fn found<'a>(diagnostic: &'a Diagnostic, seen: Option<&'a Finding>, cells: &Cells) -> Found<'a> {
    Found {
        class: diagnostic.class,
        confidence: diagnostic.confidence,
        scope: diagnostic.scope,
        severity: diagnostic.severity,
        proof: diagnostic.proof,
        message: &diagnostic.message,
        sites: diagnostic.sites.iter().map(|of| site(of, cells)).collect(),
        container: &diagnostic.container,
        holder: seen.map_or("", |seen| &seen.holder),
        holder_path: seen.map_or(&[], |seen| &seen.holder_path),
        chain: diagnostic.chain.iter().map(|step| self::step(step, cells)).collect(),
        process: seen.map(|seen| &seen.process),
        growth: seen.and_then(|seen| seen.growth.as_ref()),
        pinned: seen.and_then(|seen| seen.pinned.clone()),
        evidence: seen.map_or_else(Vec::new, facts),
        fix: diagnostic.fix.as_ref().map(|fix| change(fix, cells)),
        twins: diagnostic.twins.iter().map(|twin| self::twin(twin, cells)).collect(),
        more_twins: diagnostic.more_twins,
    }
}

fn site(of: &Site, cells: &Cells) -> Site {
    let (first, last) = (cells.place(&of.file, of.line), cells.place(&of.file, of.end_line));
    Site { line: first.line, end_line: last.line, cell: first.cell, ..of.clone() }
}

fn step(of: &ChainStep, cells: &Cells) -> InCell<ChainStep> {
    let at = cells.place(&of.file, of.line);
    InCell { place: ChainStep { line: at.line, ..of.clone() }, cell: at.cell }
}

fn twin(of: &Place, cells: &Cells) -> InCell<Place> {
    let at = cells.place(&of.file, of.line);
    InCell { place: Place { line: at.line, ..of.clone() }, cell: at.cell }
}

fn change<'a>(fix: &'a Fix, cells: &Cells) -> Change<'a> {
    let edits = fix.edits.iter().map(|edit| {
        let at = |position: Position| cells.place(&edit.file, position.line);
        let moved = |position: Position| Position { line: at(position).line, ..position };
        let place = Edit { start: moved(edit.start), end: moved(edit.end), ..edit.clone() };
        InCell { place, cell: at(edit.start).cell }
    });
    Change { applicability: fix.applicability, description: &fix.description, edits: edits.collect() }
}

fn problem(of: &Problem, cells: &Cells) -> InCell<Problem> {
    let at = of.line.map(|line| cells.place(&of.file, line));
    let line = at.map(|at| at.line);
    InCell { place: Problem { line, ..of.clone() }, cell: at.and_then(|at| at.cell) }
}
