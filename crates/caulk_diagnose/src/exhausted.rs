//! A program that ended for want of memory: the line that allocated most of what was there at the last look, however few
//! looks there were.

use caulk_core::wire::NoteCode;
use caulk_core::{Cause, Recording};

use crate::claim::{Claim, Observed, Standing, Witness};
use crate::files::Files;
use crate::heap::{self, held, is_of_user};
use crate::native;
use crate::process::Process;

/// Part of all that was sampled which the line must have.
const MOST: f64 = 0.5;
/// Bytes that it must have: less is not what memory ran out of.
const LEAST: f64 = 64.0 * 1024.0 * 1024.0;

/// The line, where nothing else was found that harms.
pub(crate) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    recording: &Recording,
    found: &[Claim],
) -> Option<Observed> {
    let failed = recording.info.death.as_ref().is_some_and(|death| death.code.is_some_and(|code| code != 0));
    let said = process.notes.iter().any(|note| note.code == NoteCode::MemoryError);
    let harms = |finding: &Claim| finding.weighs();
    if !failed || !said || found.iter().any(harms) {
        return None;
    }
    let whole = process.heaps.last()?.bytes as f64;
    let at_last = |ids: &[u32]| held(process, ids).last().map_or(0.0, |holding| holding.live.bytes);
    let lines = heap::by_line(process).into_iter().map(|(place, ids)| (at_last(&ids), place, ids));
    let (bytes, (file, line), ids) = lines.max_by(|a, b| a.0.total_cmp(&b.0))?;
    if bytes < LEAST.max(MOST * whole) || !is_of_user(file) {
        return None;
    }
    let function = process.stacks[ids.first()?]
        .frames
        .iter()
        .find(|frame| (frame.file.as_str(), frame.line) == (file, line));
    let site = native::site(files, file, line, function.map_or("", |frame| &frame.function));
    let kept = files
        .source(file)
        .and_then(|source| source.lines().grows_at(line).into_iter().find(|site| site.kind.grows()));
    let stored = kept.as_ref().map(|kept| kept.container.clone());
    Some(Observed {
        witness: Witness::HeapLine,
        standing: Standing::Whole,
        container: kept.map_or_else(|| site.text.clone(), |kept| kept.container),
        sites: vec![site],
        process: process.reference(),
        ..Observed::of(Cause::Exhausted { bytes: bytes as u64, whole: whole as u64, stored })
    })
}
