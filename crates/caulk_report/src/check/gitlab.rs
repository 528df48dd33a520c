//! GitLab's code quality report.

use std::collections::BTreeMap;

use caulk_check::Entry;
use caulk_core::{Diagnostic, Severity};
use serde_json::json;

use super::{CheckReport, message};
use crate::{ascii, cells};

/// A JSON array with one entry per finding.
pub fn gitlab(report: &CheckReport) -> String {
    let marks = fingerprints(&report.findings);
    let entries: Vec<_> = report
        .findings
        .iter()
        .zip(marks)
        .filter_map(|(finding, mark)| {
            let site = finding.sites.first()?;
            let severity = match finding.severity {
                Severity::Error => "major",
                Severity::Warning => "minor",
                Severity::Info => "info",
            };
            let first = report.cells.place(&site.file, site.line).line;
            let last = report.cells.place(&site.file, site.end_line).line;
            Some(json!({
                "description": format!("{}: {}", finding.class, message(finding)),
                "check_name": finding.class,
                "fingerprint": mark,
                "severity": severity,
                "location": {"path": cells::file(&site.file), "lines": {"begin": first, "end": last}},
            }))
        })
        .collect();
    ascii::plain(&format!("{:#}\n", json!(entries)))
}

/// Marks that stay the same while lines move, one for each finding.
pub(super) fn fingerprints(findings: &[Diagnostic]) -> Vec<String> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    let mark = |finding: &Diagnostic| {
        let entry = Entry::of(finding, str::to_owned)?;
        let before = seen.entry(entry.fingerprint(0)).or_default();
        *before += 1;
        Some(format!("{:016x}", entry.fingerprint(*before - 1)))
    };
    findings.iter().map(mark).map(Option::unwrap_or_default).collect()
}
