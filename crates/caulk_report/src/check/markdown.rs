//! Findings as Markdown: a comment on a change, a summary of a job.

use std::fmt::Write as _;

use caulk_core::{Diagnostic, Problem, no_command};

use super::{CheckReport, message, place, severity};
use crate::page::harmless;

/// The summary, then one item for each finding with its place and what to change, then the problems.
pub fn markdown(report: &CheckReport, summary: &[String]) -> String {
    let mut out = String::from("### caulk\n\n");
    for line in summary {
        out.push_str(&plain(line));
        out.push('\n');
    }
    if !report.findings.is_empty() {
        out.push('\n');
    }
    for finding in &report.findings {
        out.push_str(&item(report, finding));
    }
    if !report.problems.is_empty() {
        out.push('\n');
    }
    for problem in &report.problems {
        let Problem { file, line, column, message } = problem;
        let place = place::short(file, *line, *column, &report.cells);
        _ = writeln!(out, "- problem in {}: {}", code(&place), plain(message));
    }
    out
}

fn item(report: &CheckReport, finding: &Diagnostic) -> String {
    let place = code(&place::of(finding, &report.cells));
    let (severity, class) = (severity(finding.severity), finding.class);
    let mut item = format!("- **{severity}** `{class}` {place}: {}\n", plain(message(finding)));
    if let Some(fix) = &finding.fix {
        _ = writeln!(item, "  - change: {}", plain(&fix.description));
    }
    item
}

/// A place as code. A name may hold backticks: then it is plain text.
fn code(place: &str) -> String {
    let place = plain(place);
    if place.contains('`') { place } else { format!("`{place}`") }
}

/// Text on one line that starts no HTML, link to a person or command of a runner.
fn plain(text: &str) -> String {
    let text = no_command(&harmless(text)).replace('\n', " ");
    let mut inside = false;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        inside ^= letter == '`';
        match letter {
            '<' if !inside => out.push_str("&lt;"),
            '@' if !inside => out.push_str("&#64;"),
            _ => out.push(letter),
        }
    }
    out
}
