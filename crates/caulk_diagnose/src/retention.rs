//! Resident memory that rises while what is in use does not: pages that malloc keeps around blocks that stay. No leak.

use caulk_core::wire::{Boundary, Trim};
use caulk_core::{Bytes, Confidence, Evidence, Finding, Growth, LeakClass, Series, Severity, State};

use crate::baselines::Baselines;
use crate::fix;
use crate::process::Process;
use crate::units::{self, Scale};
use crate::verdicts::{Judged, unit_name};

/// Part of the growth of resident memory that malloc's free blocks must account for.
const PART: f64 = 0.5;

/// What malloc keeps, where it grows though the bytes in use do not.
pub(crate) fn finding(process: &Process<'_>, judged: &Judged) -> Option<Finding> {
    let scale = judged.scale?;
    let resident = judged.series(Series::Rss).filter(|verdict| verdict.state == State::Grows)?;
    let level = matches!(judged.in_use_state()?, State::Flat | State::Plateaus | State::Sawtooth);
    let free = slope(process, scale, |boundary| boundary.malloc_free_bytes);
    if !level || free < PART * resident.bytes_per_unit {
        return None;
    }
    let unit = unit_name(scale.verdict_unit());
    let class = LeakClass::AllocatorFragmentation;
    Some(Finding {
        confidence: Confidence::Proved,
        severity: Severity::Info,
        message: format!(
            "malloc keeps {} more per {unit} that the program has freed{}: {}",
            Bytes(free as u64),
            share(process),
            class.summary()
        ),
        process: process.reference(),
        growth: Some(Growth::of_bytes(scale.verdict_unit(), Series::Rss, free, scale.per_epoch(free))),
        evidence: evidence(process),
        fix: Some(fix::of(class, None, "")),
        ..Finding::of(class)
    })
}

/// Growth per unit of one of malloc's figures.
fn slope(process: &Process<'_>, scale: Scale, value: fn(&Boundary) -> u64) -> f64 {
    let points = units::points(process, scale, |boundary| Some(value(boundary) as f64));
    Baselines::of(points, scale).judge().slope
}

/// The last reading of what malloc has in its heaps.
fn last<'a>(process: &Process<'a>) -> Option<&'a Boundary> {
    process.boundaries.iter().rev().find(|boundary| boundary.malloc_heap_bytes > 0).copied()
}

fn share(process: &Process<'_>) -> String {
    last(process).map_or_else(String::new, |last| {
        let (free, heap) = (Bytes(last.malloc_free_bytes), Bytes(last.malloc_heap_bytes));
        format!(" ({free} of {heap} at the end)")
    })
}

fn evidence(process: &Process<'_>) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let mut add = |text: String| evidence.push(Evidence { kind: "malloc".into(), text });
    if let Some(last) = last(process) {
        let (heap, free) = (Bytes(last.malloc_heap_bytes), Bytes(last.malloc_free_bytes));
        let (top, threads) = (Bytes(last.malloc_top_bytes), last.threads);
        add(format!(
            "of {heap} in malloc's heaps {free} are free, and of these {top} at the end of the heap, where they could be \
             given back; {threads} threads share the heaps"
        ));
    }
    if let Some(&&Trim { before_bytes, after_bytes, cost_ns, .. }) = process.trims.last() {
        let (before, after) = (Bytes(before_bytes), Bytes(after_bytes));
        add(format!(
            "`malloc_trim(0)` took resident memory from {before} to {after}, in {:.0} ms",
            cost_ns as f64 / 1e6
        ));
    }
    evidence
}
