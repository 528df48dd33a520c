//! Memory that comes with threads and child processes that never end: what they hold, and what libraries note of each.

use caulk_core::wire::HeapStack;
use caulk_core::{Bytes, ChainStep, Confidence, Evidence, Finding, LeakClass, Series, Severity};

use crate::Files;
use crate::heap::{self, Line};
use crate::opened;
use crate::process::Process;
use crate::verdicts::{Judged, unit_name};

/// Modules that note every thread and every child process, and what must be tidied up when it ends.
const NOTING: [&str; 3] = ["threading.", "multiprocessing.", "concurrent.futures."];

/// Puts down to threads and child processes what is there because of them.
pub(crate) fn join(files: &Files<'_>, process: &Process<'_>, judged: &Judged, findings: &mut Vec<Finding>) {
    let are_more = |finding: &Finding| {
        let counted = finding.growth.as_ref().map(|growth| growth.series);
        matches!(counted, Some(Series::Threads | Series::Children)) && !finding.sites.is_empty()
    };
    if findings.iter().any(are_more) {
        let noted = |finding: &&mut Finding| NOTING.iter().any(|module| finding.holder.starts_with(module));
        findings.iter_mut().filter(noted).for_each(|finding| finding.severity = Severity::Info);
    }
    let threads = |finding: &Finding| finding.class == LeakClass::ThreadNeverEnds && are_more(finding);
    let Some(at) = findings.iter().position(threads) else { return };
    let held = held(process, judged);
    let is_theirs = |finding: &Finding| {
        let site = finding.sites.first().filter(|_| finding.class == LeakClass::NativeGrowth);
        let same = |line: &&Line<'_>| {
            site.is_some_and(|site| {
                (&site.file, site.line) == (&files.display(&line.frame.file), line.frame.line)
            })
        };
        held.iter().any(|line| same(&line))
    };
    let theirs: Vec<Finding> = findings.iter().filter(|finding| is_theirs(finding)).cloned().collect();
    weigh(&mut findings[at], theirs.first());
    findings.retain(|finding| !is_theirs(finding));
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

/// The threads, with the memory that they hold by the heaviest line of theirs.
fn weigh(threads: &mut Finding, line: Option<&Finding>) {
    let (Some(line), Some(growth)) = (line, &mut threads.growth) else { return };
    let Some(theirs) = &line.growth else { return };
    growth.bytes_per_unit = theirs.bytes_per_unit;
    growth.bytes_per_epoch = theirs.bytes_per_epoch;
    growth.interval = theirs.interval;
    threads.confidence = Confidence::Likely;
    let unit = unit_name(theirs.unit);
    let text =
        format!("they hold what they allocate, {} more per {unit}", Bytes(theirs.bytes_per_unit as u64));
    threads.evidence.push(Evidence { kind: "heap-profile".into(), text });
    threads.chain.extend(line.sites.first().map(|site| ChainStep {
        file: site.file.clone(),
        line: site.line,
        text: site.text.clone(),
        note: "allocates what they hold".into(),
    }));
}
