//! Things outside the heap that become more and more: child processes, open files, threads, segments of shared memory.
//!
//! They run into limits of their own. The line is the source's: see [`crate::patterns`], or else the one call that opens
//! such; of threads, that which begins what they were seen to run.

use caulk_core::{
    Cause, Countable, Evidence, Fix, Growth, LeakClass, Rate, Recording, Series, State, Verdict,
};

use crate::children::Children;
use crate::claim::{Claim, Standing, Witness};
use crate::files::Files;
use crate::fix;
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
) -> Vec<Claim> {
    let grows = |series| judged.series(series).filter(|verdict| verdict.state == State::Grows);
    let more = grows(Series::Children);
    let (class, makers): (_, &[&str]) = if children.are_workers() {
        (LeakClass::LoaderPerEpoch, &["DataLoader"])
    } else {
        (LeakClass::OrphanProcess, &["Pool", "ProcessPoolExecutor", "Process", "Popen"])
    };
    let processes = more.map(|verdict| {
        let found = finding(process, verdict, class, Countable::Children);
        let last = process.boundaries.last().map_or(0, |boundary| boundary.time_ns);
        let sites = opened::only_call(files, process, makers).into_iter().collect();
        let kept = keeper_of_loaders(process).filter(|_| class == LeakClass::LoaderPerEpoch);
        let fix = kept.map(kept_loaders).or_else(|| found.fix.clone());
        weighed(Claim { sites, fix, ..found }, children.own_bytes_at(last, recording))
    });
    let theirs = more.map_or(0.0, |verdict| OF_A_CHILD * verdict.bytes_per_unit);
    let beside = [
        (Series::Fds, LeakClass::FileHandlesGrow, Countable::Files),
        (Series::Threads, LeakClass::ThreadNeverEnds, Countable::Threads),
    ];
    let own = beside.into_iter().filter_map(|(series, class, counted)| {
        let verdict = grows(series).filter(|verdict| verdict.bytes_per_unit > theirs)?;
        let mut finding = finding(process, verdict, class, counted);
        finding.evidence.extend(opened::evidence(files, process, series));
        if series == Series::Threads {
            finding.sites.extend(opened::beginning(files, process));
        } else if opened::are_shared_memory(process) {
            // What keeps the memory keeps its descriptors: one matter, not two.
            finding.standing = Standing::Light;
            finding.fix = Some(fix::display(SHARED_MEMORY));
        }
        Some(finding)
    });
    let segments = grows(Series::Shm).map(|verdict| segments(files, process, judged, verdict));
    processes.into_iter().chain(own).chain(segments).collect()
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

fn kept_loaders(keeper: &str) -> Fix {
    fix::display(&format!(
        "`{keeper}` keeps every loader, and these their workers: keep the last one alone, or make them without \
         `persistent_workers=True`"
    ))
}

/// Where no pattern told where files are opened: the one call that does.
pub(crate) fn locate(files: &Files<'_>, processes: &[Process<'_>], findings: &mut [Claim]) {
    let open = |finding: &&mut Claim| {
        finding.class == LeakClass::FileHandlesGrow && finding.sites.is_empty() && finding.weighs()
    };
    for finding in findings.iter_mut().filter(open) {
        let process = processes.iter().find(|process| process.reference() == finding.process);
        if let Some(site) = process.and_then(|process| opened::opener(files, process)) {
            finding.sites.push(site);
            finding.evidence.push(Evidence::OnlyPlace { opens: true });
        }
    }
}

/// Are these open files of several kinds, which no one line has opened all of?
pub(crate) fn are_of_several_kinds(processes: &[Process<'_>], finding: &Claim) -> bool {
    let process = processes.iter().find(|process| process.reference() == finding.process);
    finding.class == LeakClass::FileHandlesGrow && process.is_some_and(opened::are_of_several_kinds)
}

/// With the memory that each child process holds.
fn weighed(mut finding: Claim, each: Option<f64>) -> Claim {
    if let (Some(growth), Some(each)) = (&mut finding.growth, each) {
        growth.bytes_per_unit = each * growth.elements_per_unit;
        growth.bytes_per_epoch = growth.elements_per_epoch.map(|count| count * each);
        finding.evidence.push(Evidence::Children { bytes_each: each as u64 });
    }
    finding
}

/// Segments that nobody unlinks, mapped or not.
fn segments(files: &Files<'_>, process: &Process<'_>, judged: &Judged, verdict: &Verdict) -> Claim {
    let class = LeakClass::SharedMemoryLeft;
    let rate = verdict.bytes_per_unit;
    // Where they are mapped too, what keeps them comes first.
    let kept = judged.in_use_state() == Some(State::Grows);
    Claim {
        witness: Witness::Exact,
        standing: if kept { Standing::Partial } else { Standing::Whole },
        cause: Cause::Segments { rate: Rate::new(rate, verdict.unit), last: verdict.last.max(0.0) as u64 },
        process: process.reference(),
        sites: opened::makers(files, process),
        growth: Some(Growth::of_bytes(verdict.unit, verdict.series, rate, verdict.bytes_per_epoch)),
        evidence: vec![Evidence::Count { judgement: verdict.text.clone() }],
        fix: Some(fix::of(class, None, "")),
        ..Claim::of(class)
    }
}

/// What to do about descriptors of shared memory.
const SHARED_MEMORY: &str =
    "each belongs to a tensor or segment in shared memory and is closed with it: let go of what keeps those";

fn finding(process: &Process<'_>, verdict: &Verdict, class: LeakClass, counted: Countable) -> Claim {
    let rate = verdict.bytes_per_unit;
    Claim {
        standing: Standing::Whole,
        cause: Cause::Counts { counted, per_unit: rate, unit: verdict.unit, last: verdict.last },
        process: process.reference(),
        growth: Some(Growth {
            unit: verdict.unit,
            series: verdict.series,
            bytes_per_epoch: None,
            bytes_per_unit: 0.0,
            in_use_per_unit: None,
            elements_per_epoch: verdict.bytes_per_epoch,
            elements_per_unit: rate,
            interval: None,
            elements: verdict.last.max(0.0) as u64,
        }),
        evidence: vec![Evidence::Count { judgement: verdict.text.clone() }],
        fix: Some(fix::of(class, None, "")),
        ..Claim::of(class)
    }
}
