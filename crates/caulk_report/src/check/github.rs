//! Annotations of GitHub Actions: `::error file=...,line=...::message`.

use caulk_core::{Diagnostic, Severity, steers};

use super::{CheckReport, message, place};
use crate::{Cells, cells};

/// One workflow command per finding and per problem.
pub fn github(report: &CheckReport) -> String {
    let findings = report.findings.iter().map(|finding| annotation(finding, &report.cells));
    let problems = report.problems.iter().map(|problem| {
        let line = problem.line.map_or(String::new(), |line| format!(",line={line}"));
        let text = place::problem(problem, &report.cells);
        format!("::warning title=caulk,file={}{line}::{}\n", property(&problem.file), data(&text))
    });
    findings.chain(problems).collect()
}

fn annotation(finding: &Diagnostic, cells: &Cells) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let title = format!("caulk ({})", finding.class);
    let place = finding.sites.first().map_or(String::new(), |site| {
        let (first, last) = (cells.place(&site.file, site.line), cells.place(&site.file, site.end_line));
        let file = property(cells::file(&site.file));
        format!(",file={file},line={},endLine={},col={}", first.line, last.line, site.column)
    });
    let text = format!("{}: {} {}", place::of(finding, cells), finding.class, message(finding));
    format!("::{command} title={}{place}::{}\n", property(&title), data(&text))
}

/// Text behind `::`. Line ends are written as a runner reads them; what else would steer a terminal is taken out.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    text.replace(|c| steers(c) && c != '\t', "\u{FFFD}")
}

/// Text of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
