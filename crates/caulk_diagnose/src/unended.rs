//! Memory that comes with threads and child processes that never end: what they hold, and what libraries note of each.

use caulk_core::wire::HeapStack;
use caulk_core::{ChainStep, Evidence, Growth, LeakClass, Rate, Series};

use crate::claim::{Claim, Witness};
use crate::files::Files;
use crate::heap::{self, Line};
use crate::judged::Judged;
use crate::noted::is_noted;
use crate::opened;
use crate::process::Process;

/// Puts down to threads and child processes what is there because of them.
pub(crate) fn join(files: &Files<'_>, process: &Process<'_>, judged: &Judged, findings: &mut Vec<Claim>) {
    let are_more = |finding: &Claim| {
        let counted = finding.growth.as_ref().map(|growth| growth.series);
        matches!(counted, Some(Series::Threads | Series::Children)) && !finding.sites.is_empty()
    };
    if findings.iter().any(are_more) {
        let noted = findings.iter_mut().filter(|finding| is_noted(finding));
        noted.for_each(|finding| finding.yields = true);
    }
    let threads = |finding: &Claim| finding.class == LeakClass::ThreadNeverEnds && are_more(finding);
    let Some(at) = findings.iter().position(threads) else { return };
    let held = held(process, judged);
    let is_theirs = |finding: &Claim| {
        let native = finding.class == LeakClass::NativeGrowth;
        let site = finding.sites.first().filter(|_| native).map(|site| (&site.file, site.line));
        site.is_some()
            && held.iter().any(|line| site == Some((&files.display(&line.frame.file), line.frame.line)))
    };
    let theirs: Vec<Claim> = findings.iter().filter(|finding| is_theirs(finding)).cloned().collect();
    weigh(&mut findings[at], &theirs);
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

/// The threads, with the memory that they hold by lines of theirs.
fn weigh(threads: &mut Claim, lines: &[Claim]) {
    let held: Vec<&Growth> = lines.iter().filter_map(|line| line.growth.as_ref()).collect();
    let (Some(first), Some(growth)) = (held.first(), &mut threads.growth) else { return };
    growth.bytes_per_unit = held.iter().map(|line| line.bytes_per_unit).sum();
    growth.bytes_per_epoch = held.iter().map(|line| line.bytes_per_epoch).sum();
    growth.interval = held
        .iter()
        .map(|line| line.interval)
        .reduce(|sum, line| {
            let ([low, high], [more_low, more_high]) = (sum?, line?);
            Some([low + more_low, high + more_high])
        })
        .flatten();
    threads.witness = Witness::HeapLine;
    threads.evidence.push(Evidence::MadeByThreads { rate: Rate::new(growth.bytes_per_unit, first.unit) });
    threads.chain.extend(lines.iter().filter_map(|line| line.sites.first()).map(|site| ChainStep {
        file: site.file.clone(),
        line: site.line,
        text: site.text.clone(),
        note: "allocates what they hold".into(),
    }));
}
