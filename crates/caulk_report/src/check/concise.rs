//! One line per finding, for people who know the rules and for editors that parse lines.

use caulk_core::{Applicability, no_command};

use super::{CheckReport, fixable, message, place, severity, text};
use crate::TextOptions;
use crate::page::{Page, Tone, harmless};

/// `file:line:column: severity[rule] message`, then a summary unless `quiet`.
pub fn concise(report: &CheckReport, options: &TextOptions, quiet: bool) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let fix = match fixable(finding) {
            Some(Applicability::Safe) => " [--fix]",
            Some(_) => " [--unsafe-fixes]",
            None => "",
        };
        let place = place::of(finding, &report.cells);
        let label = format!("{}[{}]", severity(finding.severity), finding.class);
        line(&mut out, &format!("{place}: {label} {}{fix}", message(finding)));
    }
    let others = report.problems.iter().map(|problem| ("problem", problem));
    let notices = report.notices.iter().map(|notice| ("note", notice)).filter(|_| !quiet);
    for (label, problem) in others.chain(notices) {
        let place = place::short(&problem.file, problem.line, problem.column, &report.cells);
        line(&mut out, &format!("{place}: {label} {}", problem.message));
    }
    if !quiet {
        let mut page = Page::new(options.color, options.width);
        for line in text::summary_lines(report) {
            page.prose((Tone::Plain, ""), Tone::Plain, &line);
        }
        out.push_str(&page.finish());
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(&no_command(&harmless(text)));
    out.push('\n');
}
