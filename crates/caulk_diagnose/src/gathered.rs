//! The line that gathers what rises with the steps of each epoch and is freed at its end.

use caulk_core::wire::{Boundary, TraceHit};
use caulk_core::{Advice, Cause, Evidence, Scope, Site, SiteRole};
use caulk_growth::Within;

use crate::claim::{Observed, Standing, Witness};
use crate::files::Files;
use crate::heap::{self, is_of_user};
use crate::native;
use crate::process::Process;
use crate::within::{epochs, inside};

/// Part of the rise that a line must account for.
const PART: f64 = 0.5;
/// Rise that may end a run when epochs get longer: in bytes, and as a part of what is in use.
const MUCH: f64 = 64.0 * 1024.0 * 1024.0;
const MUCH_OF_LEVEL: f64 = 0.1;

/// The line that gathers what rises, by what the heap profile has at the beginning of each epoch and at its last step.
pub(crate) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    within: Within,
    level: f64,
) -> Option<Observed> {
    let lines = heap::by_line(process);
    let rises = lines.iter().map(|(line, ids)| (line, ids, rise(process, ids)));
    let (_, ids, most) =
        rises.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|(.., rise)| *rise >= PART * within.rise)?;
    let frame = heap::blamed(process.stacks[ids.first()?])?;
    let allocates = native::site(files, &frame.file, frame.line, &frame.function);
    let grows = gathering(process, &frame.file, &frame.function);
    let grown = grows.map(|(hit, _)| native::site(files, &hit.user_file, hit.user_line, &hit.user_function));
    let holder = grows.map_or_else(String::new, |(_, expression)| expression.to_owned());
    let mut sites: Vec<Site> = grown.into_iter().collect();
    if !sites.iter().any(|site| (&site.file, site.line) == (&allocates.file, allocates.line)) {
        sites.push(Site { role: SiteRole::Allocates, ..allocates });
    }
    let is_much = within.rise >= MUCH.min(MUCH_OF_LEVEL * level);
    let cause = Cause::Gathered { holder: holder.clone(), per_step: within.slope, rise: within.rise as u64 };
    Some(Observed {
        witness: if holder.is_empty() { Witness::Signs } else { Witness::OnlyLine },
        scope: Scope::Epoch,
        standing: if is_much { Standing::Partial } else { Standing::Light },
        sites,
        container: holder.clone(),
        holder,
        process: process.reference(),
        evidence: vec![Evidence::RiseWithinEpoch { bytes: most as u64 }],
        remedy: Some(Advice::KeepSums.into()),
        ..Observed::of(cause)
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
