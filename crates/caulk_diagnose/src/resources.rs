//! Things outside the heap that become more and more: open files, threads.
//!
//! They weigh little, but run into limits of their own. The line is the source's: see [`crate::patterns`].

use caulk_core::{Evidence, Finding, Growth, LeakClass, Series, Severity, State, Verdict};

use crate::fix;
use crate::process::Process;
use crate::verdicts::{Judged, unit_name};

/// One finding for each that grows.
pub(crate) fn findings(process: &Process<'_>, judged: &Judged) -> Vec<Finding> {
    let counted = [
        (Series::Fds, LeakClass::FileHandlesGrow, "open file descriptors"),
        (Series::Threads, LeakClass::ThreadNeverEnds, "threads"),
    ];
    let grows = |series| judged.series(series).filter(|verdict| verdict.state == State::Grows);
    let found = counted.into_iter().filter_map(|(series, class, noun)| Some((grows(series)?, class, noun)));
    found.map(|(verdict, class, noun)| finding(process, verdict, class, noun)).collect()
}

fn finding(process: &Process<'_>, verdict: &Verdict, class: LeakClass, noun: &str) -> Finding {
    let (unit, rate) = (unit_name(verdict.unit), verdict.bytes_per_unit);
    Finding {
        severity: Severity::Warning,
        message: format!(
            "{rate:.1} more {noun} per {unit}, {:.0} at the end: {}",
            verdict.last,
            class.summary()
        ),
        process: process.reference(),
        growth: Some(Growth {
            unit: verdict.unit,
            series: verdict.series,
            bytes_per_epoch: None,
            bytes_per_unit: 0.0,
            elements_per_epoch: verdict.bytes_per_epoch,
            elements_per_unit: rate,
            interval: None,
            elements: verdict.last.max(0.0) as u64,
        }),
        evidence: vec![Evidence { kind: "count".into(), text: verdict.text.clone() }],
        fix: fix::of(class, None, ""),
        ..Finding::of(class)
    }
}
