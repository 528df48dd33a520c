//! Things outside the heap that become more and more: child processes, open files, threads, segments of shared memory.
//!
//! They run into limits of their own. The line is the source's: see [`crate::patterns`], or else the one call that opens
//! such; of threads, that which begins what they were seen to run.

use caulk_core::{
    Advice, Cause, Countable, Evidence, Growth, LeakClass, Rate, Recording, Series, State, Verdict,
};

use crate::children::Children;
use crate::claim::{Claim, Observed, Relation, Relations, Standing, Witness};
use crate::files::Files;
use crate::judged::Judged;
use crate::opened;
use crate::process::Process;

/// Open files and threads that a child process costs its parent at most: pipes and a sentinel, a feeder of a queue.
const OF_A_CHILD: f64 = 8.0;

/// One finding for each that grows. Files and threads that come with child processes are their matter.
pub(crate) fn findings(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    children: &Children<'_>,
    recording: &Recording,
) -> Vec<Observed> {
    let grows = |series| judged.series(series).filter(|verdict| verdict.state == State::Grows);
    let more = grows(Series::Children);
    let (counted, makers): (_, &[&str]) = if children.are_workers() {
        (Countable::LoaderWorkers, &["DataLoader"])
    } else {
        (Countable::Children, &["Pool", "ProcessPoolExecutor", "Process", "Popen"])
    };
    let processes = more.map(|verdict| {
        let last = process.boundaries.last().map_or(0, |boundary| boundary.time_ns);
        let found = weighed(finding(process, verdict, counted), children.own_bytes_at(last, recording));
        let kept = keeper_of_loaders(process).filter(|_| counted == Countable::LoaderWorkers);
        Observed {
            sites: opened::only_call(files, process, makers).into_iter().collect(),
            remedy: kept.map(|name| Advice::KeptLoaders(name.to_owned()).into()).or(found.remedy),
            ..found
        }
    });
    let theirs = more.map_or(0.0, |verdict| OF_A_CHILD * verdict.bytes_per_unit);
    let own = |series| grows(series).filter(|verdict| verdict.bytes_per_unit > theirs);
    let open_files = own(Series::Fds).map(|verdict| {
        let found = finding(process, verdict, Countable::Files);
        let kinds = opened::evidence(files, process, Series::Fds);
        let found = Observed { evidence: found.evidence.into_iter().chain(kinds).collect(), ..found };
        // What keeps the memory keeps its descriptors: one matter, not two.
        if opened::are_shared_memory(process) {
            return Observed {
                standing: Standing::Light,
                remedy: Some(Advice::SharedMemory.into()),
                ..found
            };
        }
        found
    });
    let threads = own(Series::Threads).map(|verdict| {
        let found = finding(process, verdict, Countable::Threads);
        let kinds = opened::evidence(files, process, Series::Threads);
        let evidence = found.evidence.into_iter().chain(kinds).collect();
        Observed { evidence, sites: opened::beginning(files, process).into_iter().collect(), ..found }
    });
    let segments = grows(Series::Shm).map(|verdict| segments(files, process, judged, verdict));
    [processes, open_files, threads, segments].into_iter().flatten().collect()
}

/// The name of a container that gets longer and whose elements are loaders: these live on, and their persistent workers
/// with them.
fn keeper_of_loaders<'a>(process: &Process<'a>) -> Option<&'a str> {
    let mut keepers = process.contents.iter().filter(|(id, looks)| {
        let of_loaders = looks
            .last()
            .and_then(|look| look.element_types.first())
            .is_some_and(|(name, _)| name.rsplit('.').next() == Some("DataLoader"));
        let lengths = process.lengths.get(id).map_or(&[][..], Vec::as_slice);
        let longer = || lengths.first().zip(lengths.last()).is_some_and(|(first, last)| first.len < last.len);
        of_loaders && longer()
    });
    keepers.find_map(|(id, _)| process.holders.get(id).map(|holder| holder.name.as_str()))
}

/// The one call that opens such files, if no pattern shows where they are opened.
pub(crate) fn openers<'a>(files: &Files<'_>, processes: &[Process<'_>], claims: &[Claim]) -> Relations<'a> {
    let open = |claim: &Claim| {
        claim.class() == LeakClass::FileHandlesGrow && claim.sites.is_empty() && claim.weighs()
    };
    let opener = |(at, claim): (usize, &Claim)| {
        let process = processes.iter().find(|process| process.reference() == claim.process)?;
        Some((at, Relation::OpenedAt(opened::opener(files, process)?)))
    };
    claims.iter().enumerate().filter(|(_, claim)| open(claim)).filter_map(opener).collect()
}

/// Are these open files of several kinds, which no one line has opened all of?
pub(crate) fn are_of_several_kinds(processes: &[Process<'_>], finding: &Claim) -> bool {
    let process = processes.iter().find(|process| process.reference() == finding.process);
    finding.class() == LeakClass::FileHandlesGrow && process.is_some_and(opened::are_of_several_kinds)
}

/// With the memory that each child process holds.
fn weighed(found: Observed, each: Option<f64>) -> Observed {
    let (Some(growth), Some(each)) = (&found.growth, each) else { return found };
    let growth = Growth {
        bytes_per_unit: each * growth.elements_per_unit,
        bytes_per_epoch: growth.elements_per_epoch.map(|count| count * each),
        ..growth.clone()
    };
    let children = Evidence::Children { bytes_each: each as u64 };
    let evidence = found.evidence.into_iter().chain([children]).collect();
    Observed { growth: Some(growth), evidence, ..found }
}

/// Segments that nobody unlinks, mapped or not.
fn segments(files: &Files<'_>, process: &Process<'_>, judged: &Judged, verdict: &Verdict) -> Observed {
    let rate = verdict.bytes_per_unit;
    // Where they are mapped too, what keeps them comes first.
    let kept = judged.in_use_state() == Some(State::Grows);
    let cause = Cause::Segments { rate: Rate::new(rate, verdict.unit), last: verdict.last.max(0.0) as u64 };
    Observed {
        witness: Witness::Exact,
        standing: if kept { Standing::Partial } else { Standing::Whole },
        process: process.reference(),
        sites: opened::makers(files, process),
        growth: Some(Growth::of_bytes(verdict.unit, verdict.series, rate, verdict.bytes_per_epoch)),
        evidence: vec![Evidence::Count { judgement: verdict.text.clone() }],
        ..Observed::of(cause)
    }
}

fn finding(process: &Process<'_>, verdict: &Verdict, counted: Countable) -> Observed {
    let rate = verdict.bytes_per_unit;
    let cause = Cause::Counts { counted, per_unit: rate, unit: verdict.unit, last: verdict.last };
    Observed {
        standing: Standing::Whole,
        process: process.reference(),
        growth: Some(Growth {
            elements_per_epoch: verdict.bytes_per_epoch,
            elements_per_unit: rate,
            elements: verdict.last.max(0.0) as u64,
            ..Growth::of_bytes(verdict.unit, verdict.series, 0.0, None)
        }),
        evidence: vec![Evidence::Count { judgement: verdict.text.clone() }],
        ..Observed::of(cause)
    }
}
