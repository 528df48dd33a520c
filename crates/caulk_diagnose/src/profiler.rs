//! Memory that a profiler of torch's fills, because nobody stops it.

use caulk_core::{Confidence, Evidence, Finding, Growth, LeakClass, Series, Severity, Site, SiteRole};

use crate::process::Process;
use crate::verdicts::{Judged, unit_name};
use crate::{Files, fix};

/// Calls that make or begin one.
const MAKERS: [&str; 2] = ["profile", "_KinetoProfile"];

/// The profiler, where it is on all the time and growth of which so much is `open` is in no container.
pub(crate) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
) -> Option<Finding> {
    let (scale, class) = (judged.scale?, LeakClass::ProfilerLeftOn);
    process.notes.iter().find(|note| note.code == "profiler-on")?;
    let unit = scale.verdict_unit();
    let rate = caulk_core::Bytes::signed(open);
    Some(Finding {
        confidence: Confidence::Likely,
        severity: Severity::Error,
        message: format!("{rate} per {} of events: {}", unit_name(unit), class.summary()),
        sites: maker(files, process).into_iter().collect(),
        process: process.reference(),
        growth: Some(Growth::of_bytes(unit, Series::InUse, open, scale.per_epoch(open))),
        evidence: vec![Evidence {
            kind: "profiler".into(),
            text: "torch's profiler was on at every look, and no container accounts for the growth".into(),
        }],
        fix: Some(fix::of(class, None, "")),
        ..Finding::of(class)
    })
}

/// The line that makes it.
fn maker(files: &Files<'_>, process: &Process<'_>) -> Option<Site> {
    process.files().into_iter().find_map(|path| {
        let module = files.module(path)?;
        let call = MAKERS.iter().flat_map(|name| module.calls(name)).next()?;
        Some(call.spot.site(&files.display(path), SiteRole::Grows))
    })
}
