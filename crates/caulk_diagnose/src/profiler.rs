//! Memory that a profiler of torch's fills, because nobody stops it.

use caulk_core::wire::{Note, NoteCode};
use caulk_core::{Cause, Evidence, Rate, Series, Site, SiteRole};

use crate::claim::{Observed, Standing, Witness};
use crate::files::Files;
use crate::judged::Judged;
use crate::process::Process;

/// Notes that say whether one is on.
const CODES: [NoteCode; 2] = [NoteCode::ProfilerOn, NoteCode::ProfilerOff];

/// Is a note of the process's still true, and of use to people? Of those about a profiler the last, where it is on.
pub(crate) fn is_told(process: &Process<'_>, note: &Note) -> bool {
    !CODES.contains(&note.code) || (note.code == NoteCode::ProfilerOn && is_on(process))
}

/// Is it on to the end?
fn is_on(process: &Process<'_>) -> bool {
    let mut states = process.notes.iter().rev().filter(|note| CODES.contains(&note.code));
    states.next().is_some_and(|note| note.code == NoteCode::ProfilerOn)
}

/// The profiler, where it is on all the time and growth of which so much is `open` is in no container.
pub(crate) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
) -> Option<Observed> {
    let scale = judged.scale?;
    if !is_on(process) {
        return None;
    }
    let unit = scale.verdict_unit();
    Some(Observed {
        witness: Witness::OnlyLine,
        standing: Standing::Whole,
        sites: maker(files, process).into_iter().collect(),
        process: process.reference(),
        growth: Some(scale.growth(Series::InUse, open)),
        evidence: vec![Evidence::Profiler],
        ..Observed::of(Cause::Profiler(Rate::new(open, unit)))
    })
}

/// The line that makes it.
fn maker(files: &Files<'_>, process: &Process<'_>) -> Option<Site> {
    process.files().into_iter().find_map(|path| {
        let source = files.source(path)?;
        let is_torch = |callee: &str| callee == "profile" || callee.ends_with("profiler.profile");
        let call = source.lines().calls("profile").into_iter().find(|call| is_torch(&call.callee))?;
        Some(call.spot.site(&files.display(path), SiteRole::Grows))
    })
}
