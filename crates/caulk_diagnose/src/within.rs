//! What rises with the steps of each epoch and is freed at its end: the witness that it does, and the line that gathers it.

use caulk_core::wire::{Boundary, TraceHit, Unit};
use caulk_core::{
    Bytes, Confidence, Evidence, Finding, LeakClass, Scope, Severity, Site, SiteRole, State, Verdict,
};
use caulk_growth::{Epoch, Point, Within, judge_within};

use crate::files::Files;
use crate::fix;
use crate::heap::{self, is_of_user};
use crate::held::Held;
use crate::native;
use crate::process::Process;
use crate::units::Scale;

/// Rise within an epoch that matters: in bytes, and as a part of the level.
const RISE: f64 = 8.0 * 1024.0 * 1024.0;
const SHARE: f64 = 0.02;
/// Part of the rise that a line must account for.
const PART: f64 = 0.5;
/// What to do about it.
const LESS: &str = "keep of each step what is needed of it (a sum, a count, `.item()`), or write it out in parts: what an epoch \
                    gathers grows with its length";

/// What the bytes in use do within epochs, at a level; `None` where epochs are not known, or nothing rises in them.
pub(crate) fn witness(process: &Process<'_>, scale: Scale, held: Held, level: f64) -> Option<Within> {
    if scale.unit != Unit::Epoch {
        return None;
    }
    let value = |boundary: &Boundary| held.at(boundary);
    let epoch = |(start, end): (&Boundary, &Boundary)| {
        let begin = Point { at: start.steps as f64, value: value(start)? };
        let steps = inside(process, start, end);
        let point = |step: &Boundary| Some(Point { at: step.steps as f64, value: value(step)? });
        let readings = std::iter::once(begin).chain(steps.filter_map(point)).collect();
        Some(Epoch { readings, end: value(end)? })
    };
    let epochs: Vec<Epoch> = epochs(process).into_iter().filter_map(epoch).collect();
    judge_within(&epochs, RISE.max(SHARE * level))
}

/// Beginnings and ends of whole epochs.
fn epochs<'a>(process: &Process<'a>) -> Vec<(&'a Boundary, &'a Boundary)> {
    let ends: Vec<&Boundary> = process.of_unit(Unit::Epoch).collect();
    ends.windows(2).filter(|pair| pair[1].index == pair[0].index + 1).map(|pair| (pair[0], pair[1])).collect()
}

/// Steps between two boundaries.
fn inside<'a>(process: &Process<'a>, start: &Boundary, end: &Boundary) -> impl Iterator<Item = &'a Boundary> {
    let seqs = start.seq + 1..end.seq;
    process.of_unit(Unit::Steps).filter(move |step| seqs.contains(&step.seq))
}

/// The verdict on bytes in use that are level, or too few to tell, at the ends of epochs.
pub(crate) fn tell(verdict: &mut Verdict, within: Within) {
    verdict.state = State::GrowsWithinEpoch;
    verdict.more_needed = None;
    verdict.text = format!(
        "rises by {} a step within each of {} epochs, {} in all, and is back at their ends",
        Bytes::signed(within.slope),
        within.epochs,
        Bytes(within.rise as u64)
    );
}

/// The line that gathers what rises, by what the heap profile has at the beginning of each epoch and at its last step.
pub(crate) fn finding(files: &Files<'_>, process: &Process<'_>, within: Within) -> Option<Finding> {
    let lines = heap::by_line(process);
    let rises = lines.iter().map(|(line, ids)| (line, ids, rise(process, ids)));
    let (_, ids, most) =
        rises.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|(.., rise)| *rise >= PART * within.rise)?;
    let frame = heap::blamed(process.stacks[ids.first()?])?;
    let class = LeakClass::LargeLocalKept;
    let allocates = native::site(files, &frame.file, frame.line, &frame.function);
    let grows = gathering(process, &frame.file, &frame.function);
    let grown = grows.map(|(hit, _)| native::site(files, &hit.user_file, hit.user_line, &hit.user_function));
    let holder = grows.map_or_else(String::new, |(_, expression)| expression.to_owned());
    let what = if holder.is_empty() { "what is made here".to_owned() } else { format!("`{holder}`") };
    let mut sites: Vec<Site> = grown.into_iter().collect();
    if !sites.iter().any(|site| (&site.file, site.line) == (&allocates.file, allocates.line)) {
        sites.push(Site { role: SiteRole::Allocates, ..allocates });
    }
    Some(Finding {
        confidence: if holder.is_empty() { Confidence::Suspected } else { Confidence::Likely },
        scope: Scope::Epoch,
        severity: Severity::Warning,
        message: format!(
            "{what} stays until the epoch ends, {} a step: {} in each epoch, more in longer ones",
            Bytes::signed(within.slope),
            Bytes(within.rise as u64)
        ),
        sites,
        container: holder.clone(),
        holder,
        process: process.reference(),
        evidence: vec![Evidence {
            kind: "heap-profile".into(),
            text: format!("what is allocated here rises by {} within an epoch (sampled)", Bytes(most as u64)),
        }],
        fix: Some(fix::display(LESS)),
        ..Finding::of(class)
    })
}

/// Bytes that some stacks gain from the beginning of an epoch to its last step, on average.
fn rise(process: &Process<'_>, ids: &[u32]) -> f64 {
    let held = heap::held(process, ids);
    let of_epoch = |(start, end): (&Boundary, &Boundary)| {
        let last = inside(process, start, end).last()?;
        let at = |boundary: &Boundary| heap::at_boundary(&held, boundary.seq);
        Some(at(last)?.bytes - at(start)?.bytes)
    };
    let rises: Vec<f64> = epochs(process).into_iter().filter_map(of_epoch).collect();
    rises.iter().sum::<f64>() / rises.len().max(1) as f64
}

/// Where a line of the program's was seen to make a container longer in the function that allocates, and what that is.
fn gathering<'a>(process: &Process<'a>, file: &str, function: &str) -> Option<(&'a TraceHit, &'a str)> {
    let seen = process.hits.iter().find_map(|(id, hits)| {
        let hit = hits.iter().find(|hit| hit.user_file == file && hit.user_function == function)?;
        Some((*hit, process.holders.get(id)?.expression.as_str()))
    });
    seen.filter(|(hit, _)| is_of_user(&hit.user_file))
}
