//! How often each rule found something.

use std::collections::BTreeMap;

use caulk_core::{LeakClass, Severity};
use serde_json::json;

use super::{CheckReport, fixable, severity};

struct Count {
    class: LeakClass,
    severity: Severity,
    number: usize,
    fixable: usize,
}

fn counts(report: &CheckReport) -> Vec<Count> {
    let mut by_class: BTreeMap<LeakClass, Count> = BTreeMap::new();
    for finding in &report.findings {
        let new = Count { class: finding.class, severity: finding.severity, number: 0, fixable: 0 };
        let count = by_class.entry(finding.class).or_insert(new);
        count.number += 1;
        count.severity = count.severity.max(finding.severity);
        count.fixable += usize::from(fixable(finding).is_some());
    }
    let mut counts: Vec<Count> = by_class.into_values().collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.number));
    counts
}

/// A line per rule, the most frequent first.
pub fn statistics(report: &CheckReport) -> String {
    let line = |count: &Count| {
        let fixable = match count.fixable {
            0 => String::new(),
            number => format!("  ({number} fixable)"),
        };
        format!("{:>5}  {:7}  {}{fixable}\n", count.number, severity(count.severity), count.class)
    };
    counts(report).iter().map(line).collect()
}

/// The same for programs.
pub fn statistics_json(report: &CheckReport) -> String {
    let counts: Vec<_> = counts(report)
        .iter()
        .map(|count| {
            json!({"class": count.class, "severity": count.severity, "count": count.number, "fixable": count.fixable})
        })
        .collect();
    format!("{:#}\n", json!(counts))
}
