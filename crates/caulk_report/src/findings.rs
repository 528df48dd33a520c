//! How much of each finding a report shows: the most harmful in detail, the rest on one line each.

use caulk_core::{Finding, Severity};

use crate::Report;
use crate::finding::{self, Detail};
use crate::page::{Page, Tone};

/// Lines of the first finding, and of the second.
const LINES: [usize; 2] = [20, 12];

/// Findings on one line each.
const LISTED: usize = 10;

/// Writes the findings: all in full, or the first two within their lines and the rest in a list. Leaks come before advice.
pub(crate) fn write(page: &mut Page, report: &Report, full: bool) {
    let (advice, leaks): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(|finding| finding.severity == Severity::Info);
    let mut all = leaks.into_iter().chain(advice);
    if full {
        for finding in all {
            page.gap();
            finding::finding(page, finding, &report.excerpts, Detail::Full);
        }
        return;
    }
    for (most, finding) in LINES.into_iter().zip(all.by_ref()) {
        page.gap();
        within(page, most, finding, report);
    }
    list(page, &all.collect::<Vec<_>>());
}

/// Writes as much of a finding as has room.
fn within(page: &mut Page, most: usize, finding: &Finding, report: &Report) {
    let part = |detail| {
        let mut part = page.part();
        finding::finding(&mut part, finding, &report.excerpts, detail);
        part
    };
    let part = if finding.severity == Severity::Info {
        let mut part = page.part();
        finding::short(&mut part, finding);
        part
    } else {
        let usual = Some(part(Detail::Usual)).filter(|part| part.lines() <= most);
        usual.unwrap_or_else(|| part(Detail::Brief))
    };
    if part.lines() <= most {
        page.add(&part, most);
    } else {
        page.add(&part, most - 1);
        page.line(&[(Tone::Quiet, "  ...")]);
    }
}

/// Writes one line for each.
fn list(page: &mut Page, rest: &[&Finding]) {
    if rest.is_empty() {
        return;
    }
    page.gap();
    for finding in rest.iter().take(LISTED) {
        finding::line(page, finding);
    }
    if let Some(more) = rest.len().checked_sub(LISTED).filter(|more| *more > 0) {
        page.line(&[(Tone::Quiet, &format!("and {more} more"))]);
    }
}
