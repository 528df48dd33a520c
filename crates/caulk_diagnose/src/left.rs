//! What the command left behind: processes that live on, segments of shared memory that nobody removed.

use caulk_core::{Bytes, Evidence, Finding, LeakClass, Recording, Severity};

use crate::fix;

/// Names that are told.
const TOLD: usize = 5;

/// One finding for each kind. A program that was killed could not clean up: then it is advice.
pub(crate) fn findings(recording: &Recording) -> Vec<Finding> {
    let left = &recording.info.left;
    let killed = recording.info.death.as_ref().is_none_or(|death| death.signal.is_some());
    let severity = if killed { Severity::Info } else { Severity::Warning };
    let mut findings = Vec::new();
    if !left.processes.is_empty() {
        let bytes = left.processes.iter().map(|process| process.rss_bytes).sum();
        let names = left.processes.iter().map(|process| format!("{} ({})", process.name, process.pid));
        let what = counted(left.processes.len(), "process lives", "processes live");
        let message = format!("{what} on after the program has ended, with {} resident", Bytes(bytes));
        findings.push(finding(LeakClass::OrphanProcess, severity, message, names.collect()));
    }
    if !left.segments.is_empty() {
        let bytes = left.segments.iter().map(|segment| segment.bytes).sum();
        let names = left.segments.iter().map(|segment| format!("/dev/shm/{}", segment.name));
        let what = counted(left.segments.len(), "segment", "segments");
        let message =
            format!("{what} of shared memory, {} in all, stayed when the program had ended", Bytes(bytes));
        findings.push(finding(LeakClass::SharedMemoryLeft, severity, message, names.collect()));
    }
    findings
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn finding(class: LeakClass, severity: Severity, message: String, names: Vec<String>) -> Finding {
    let more = names.len().saturating_sub(TOLD);
    let mut text = names.into_iter().take(TOLD).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    Finding {
        severity,
        message,
        evidence: vec![Evidence { kind: "left".into(), text }],
        fix: Some(fix::of(class, None, "")),
        ..Finding::of(class)
    }
}
