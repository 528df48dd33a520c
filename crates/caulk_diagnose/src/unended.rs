//! Memory that comes with threads and child processes that never end: what they hold, and what libraries note of each.

use caulk_core::wire::HeapStack;
use caulk_core::{Growth, LeakClass, Series};

use crate::claim::{Claim, Relation, Relations, of_each};
use crate::files::Files;
use crate::heap::{self, Line};
use crate::judged::Judged;
use crate::noted::is_noted;
use crate::opened;
use crate::process::Process;

/// Notes of libraries are advice if the threads or child processes that they note are reported with a line.
pub(crate) fn notes<'a>(claims: &[Claim]) -> Relations<'a> {
    if !claims.iter().any(are_more) {
        return Vec::new();
    }
    of_each(claims, |claim| is_noted(claim), |_| Relation::Yields)
}

/// Lines that threads which never end run allocate a part of what these hold.
pub(crate) fn relations<'a>(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    claims: &[Claim],
) -> Relations<'a> {
    let threads = |claim: &Claim| claim.class() == LeakClass::ThreadNeverEnds && are_more(claim);
    let Some(at) = claims.iter().position(threads) else { return Vec::new() };
    let held = held(process, judged);
    let is_theirs = |claim: &&Claim| {
        let native = claim.class() == LeakClass::NativeGrowth;
        let site = claim.sites.first().filter(|_| native).map(|site| (&site.file, site.line));
        site.is_some()
            && held.iter().any(|line| site == Some((&files.display(&line.frame.file), line.frame.line)))
    };
    let (parts, lines): (Vec<usize>, Vec<&Claim>) =
        claims.iter().enumerate().filter(|(_, claim)| is_theirs(claim)).unzip();
    let holds = claims[at].growth.as_ref().and_then(|growth| holds(growth, &lines));
    let parts = parts.into_iter().map(|part| (part, Relation::PartOf));
    holds.into_iter().map(|holds| (at, holds)).chain(parts).collect()
}

/// Are these more threads or child processes, with a line that makes them?
fn are_more(claim: &Claim) -> bool {
    let counted = claim.growth.as_ref().map(|growth| growth.series);
    matches!(counted, Some(Series::Threads | Series::Children)) && !claim.sites.is_empty()
}

/// Lines whose memory grows, and which only such threads come to.
fn held<'a>(process: &'a Process<'_>, judged: &Judged) -> Vec<Line<'a>> {
    let (Some(scale), Some(place)) = (judged.scale, opened::run_by_more(process)) else { return Vec::new() };
    let runs = |stack: &&HeapStack| {
        let name = place.function.rsplit('.').next();
        // Frames have no qualified names before 3.11.
        stack.frames.iter().any(|frame| frame.file == place.file && frame.function.rsplit('.').next() == name)
    };
    let mut lines = heap::of_process(process, scale);
    lines.retain(|line| line.grows() && line.stacks.iter().all(runs));
    lines
}

/// The memory that threads hold by lines of theirs.
fn holds<'a>(threads: &Growth, lines: &[&Claim]) -> Option<Relation<'a>> {
    let held: Vec<&Growth> = lines.iter().filter_map(|line| line.growth.as_ref()).collect();
    let both = |[low, high]: [f64; 2], [more_low, more_high]: [f64; 2]| [low + more_low, high + more_high];
    let interval =
        held.iter().map(|line| line.interval).reduce(|sum, line| sum.zip(line).map(|(a, b)| both(a, b)))?;
    let growth = Growth {
        bytes_per_unit: held.iter().map(|line| line.bytes_per_unit).sum(),
        bytes_per_epoch: held.iter().map(|line| line.bytes_per_epoch).sum(),
        interval,
        ..threads.clone()
    };
    let sites = lines.iter().filter_map(|line| line.sites.first()).cloned().collect();
    Some(Relation::Holds(growth, sites))
}
