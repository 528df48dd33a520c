//! What the command left behind: processes that live on, segments of shared memory that nobody removed.

use caulk_core::{Cause, Evidence, Recording};

use crate::claim::{Observed, Standing};

/// Names that are told.
const TOLD: usize = 5;

/// One finding for each kind. A program that was killed could not clean up: then it is advice.
pub(crate) fn findings(recording: &Recording) -> Vec<Observed> {
    let left = &recording.info.left;
    let killed = recording.info.death.as_ref().is_none_or(|death| death.signal.is_some());
    let standing = if killed { Standing::Light } else { Standing::Whole };
    let mut findings = Vec::new();
    if !left.processes.is_empty() {
        let bytes = left.processes.iter().map(|process| process.rss_bytes).sum();
        let names = left.processes.iter().map(|process| format!("{} ({})", process.name, process.pid));
        let cause = Cause::ProcessesLeft { count: left.processes.len(), bytes };
        findings.push(finding(standing, cause, names.collect()));
    }
    if !left.segments.is_empty() {
        let bytes = left.segments.iter().map(|segment| segment.bytes).sum();
        let names = left.segments.iter().map(|segment| format!("/dev/shm/{}", segment.name));
        let cause = Cause::SegmentsLeft { count: left.segments.len(), bytes };
        findings.push(finding(standing, cause, names.collect()));
    }
    findings
}

fn finding(standing: Standing, cause: Cause, mut names: Vec<String>) -> Observed {
    let more = names.len().saturating_sub(TOLD);
    names.truncate(TOLD);
    Observed { standing, evidence: vec![Evidence::Left { names, more }], ..Observed::of(cause) }
}
