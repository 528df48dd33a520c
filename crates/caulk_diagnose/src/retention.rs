//! Resident memory that rises while what is in use does not: pages that an allocator keeps around blocks that stay. No leak.
//! Where a little stays for certain and it is open whether it goes on, that is what keeps far more: the heap is in pieces.

use caulk_core::wire::{Boundary, Trim};
use caulk_core::{Bytes, Confidence, Evidence, Finding, Growth, LeakClass, Series, Severity, State};

use crate::baselines::Baselines;
use crate::fix;
use crate::judged::Judged;
use crate::process::Process;
use crate::units::{self, Scale, unit_name};

/// Part of the growth of resident memory that an allocator's free blocks must account for.
const PART: f64 = 0.5;

/// Who keeps what has been freed.
struct Keeper {
    name: &'static str,
    /// Bytes that it has for blocks, used and free.
    has: fn(&Boundary) -> u64,
    /// ... of which free, in bytes.
    free: fn(&Boundary) -> u64,
    /// What to do about it, where that is not the class's own.
    remedy: Option<&'static str>,
}

/// What helps against gaps that small objects leave.
const FEWER_OBJECTS: &str = "where it matters: keep what stays in arrays (numpy, `array.array`) instead of many small objects, or run with \
     `PYTHONMALLOC=malloc`, which gives more of it back";

const KEEPERS: [Keeper; 2] = [
    Keeper { name: "malloc", has: |b| b.malloc_heap_bytes, free: |b| b.malloc_free_bytes, remedy: None },
    Keeper {
        name: "pymalloc",
        has: |b| b.arena_bytes,
        free: |b| b.arena_bytes.saturating_sub(b.small_bytes),
        remedy: Some(FEWER_OBJECTS),
    },
];

/// What the allocators keep, where it grows though the bytes in use do not, or surely rise by far less. `found`: what was
/// found to grow.
pub(crate) fn finding(process: &Process<'_>, judged: &Judged, found: &[Finding]) -> Option<Finding> {
    let scale = judged.scale?;
    let resident = judged.series(Series::Rss).filter(|verdict| verdict.state == State::Grows)?;
    let in_use = judged.in_use()?;
    let stays = match in_use.state {
        State::Flat | State::Plateaus | State::Sawtooth => false,
        State::Undecided => in_use.interval.is_some_and(|[low, _]| low > 0.0),
        State::Grows | State::GrowsWithinEpoch => return None,
    };
    let (rate, keeper) = fastest(process, scale);
    let is_open = in_use.state == State::Undecided && !stays;
    if is_open || rate < PART * resident.bytes_per_unit {
        return None;
    }
    let unit = unit_name(scale.verdict_unit());
    let class = LeakClass::AllocatorFragmentation;
    let cause = found.iter().filter(|_| stays).filter(|finding| !finding.sites.is_empty());
    let cause = cause.max_by(|a, b| bytes(a).total_cmp(&bytes(b))).filter(|finding| bytes(finding) > 0.0);
    let why = match cause {
        Some(cause) => format!("what `{}` keeps lies in between", cause.container),
        None if stays => "what stays lies in between".to_owned(),
        None => class.summary().to_owned(),
    };
    let is_told = found.iter().any(|finding| finding.severity > Severity::Info);
    Some(Finding {
        confidence: Confidence::Proved,
        severity: if stays && !is_told { Severity::Warning } else { Severity::Info },
        message: format!(
            "{} keeps {} more per {unit} that the program has freed{}: {why}",
            keeper.name,
            Bytes(rate as u64),
            share(process, &keeper),
        ),
        sites: cause.map_or_else(Vec::new, |cause| cause.sites.clone()),
        process: process.reference(),
        growth: Some(Growth::of_bytes(scale.verdict_unit(), Series::Rss, rate, scale.per_epoch(rate))),
        evidence: evidence(process),
        fix: Some(keeper.remedy.map_or_else(|| fix::of(class, None, ""), fix::display)),
        ..Finding::of(class)
    })
}

/// Bytes in use that a finding gains per unit.
fn bytes(finding: &Finding) -> f64 {
    let growth = finding.growth.as_ref().filter(|growth| growth.series == Series::InUse);
    growth.map_or(0.0, |growth| growth.bytes_per_unit)
}

/// Growth per unit of what the allocators keep free.
pub(crate) fn rate(process: &Process<'_>, scale: Scale) -> f64 {
    fastest(process, scale).0
}

/// The allocator that keeps most more, and how fast.
fn fastest(process: &Process<'_>, scale: Scale) -> (f64, Keeper) {
    let [first, second] = KEEPERS.map(|keeper| (slope(process, scale, keeper.free), keeper));
    if second.0 > first.0 { second } else { first }
}

/// Growth per unit of one of malloc's figures.
fn slope(process: &Process<'_>, scale: Scale, value: fn(&Boundary) -> u64) -> f64 {
    let points = units::points(process, scale, |boundary| Some(value(boundary) as f64));
    Baselines::of(points, scale).judge().slope
}

/// The last reading of what an allocator has.
fn last<'a>(process: &Process<'a>, has: fn(&Boundary) -> u64) -> Option<&'a Boundary> {
    process.boundaries.iter().rev().find(|boundary| has(boundary) > 0).copied()
}

fn share(process: &Process<'_>, keeper: &Keeper) -> String {
    last(process, keeper.has).map_or_else(String::new, |last| {
        let (free, has) = (Bytes((keeper.free)(last)), Bytes((keeper.has)(last)));
        format!(" ({free} of {has} at the last look)")
    })
}

fn evidence(process: &Process<'_>) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let mut add = |text: String| evidence.push(Evidence { kind: "malloc".into(), text });
    if let Some(last) = last(process, |boundary| boundary.malloc_heap_bytes) {
        let (heap, free) = (Bytes(last.malloc_heap_bytes), Bytes(last.malloc_free_bytes));
        let (top, threads) = (Bytes(last.malloc_top_bytes), last.threads);
        add(format!(
            "of {heap} in malloc's heaps {free} are free, and of these {top} at the end of the heap, where they could be \
             given back; {threads} threads share the heaps"
        ));
    }
    if let Some(last) = last(process, |boundary| boundary.arena_bytes) {
        let (arenas, small) = (Bytes(last.arena_bytes), Bytes(last.small_bytes));
        add(format!(
            "pymalloc has mapped {arenas} for small objects, and {} of them take about {small}: one that stays keeps the \
             arena around it",
            last.small_blocks
        ));
    }
    if let Some(last) = process.trims.last() {
        add(trimmed(last));
    }
    evidence
}

fn trimmed(trim: &Trim) -> String {
    let (before, after) = (Bytes(trim.before_bytes), Bytes(trim.after_bytes));
    let milliseconds = trim.cost_ns as f64 / 1e6;
    format!("`malloc_trim(0)` took resident memory from {before} to {after}, in {milliseconds:.0} ms")
}

/// What came of asking malloc for what it can give back, where no finding tells it.
pub(crate) fn note(process: &Process<'_>, findings: &[Finding]) -> Option<String> {
    let is_told = |finding: &Finding| finding.class == LeakClass::AllocatorFragmentation;
    if findings.iter().any(is_told) {
        return None;
    }
    let gained = |trim: &&&Trim| trim.before_bytes.saturating_sub(trim.after_bytes);
    let most = process.trims.iter().max_by_key(gained)?;
    let times = process.trims.len();
    Some(format!("{}: the most of {times} times that it was asked", trimmed(most)))
}
