//! Lines that make what stays on a GPU, by torch's own record: beside what keeps it, or alone where nothing was found.

use caulk_core::wire::{CodePlace, GpuLine, GpuMade};
use caulk_core::{Bytes, Confidence, Evidence, Finding, Growth, LeakClass, Series, Severity, State, Verdict};

use crate::files::Files;
use crate::fix;
use crate::judged::Judged;
use crate::native;
use crate::process::Process;
use crate::units::unit_name;

/// Lines that are told beside a container.
const LINES: usize = 3;
/// Part of what was recorded that a line must have made to be blamed for growth.
const PART: f64 = 0.25;

/// Tells where the elements of what grows on a GPU are made, and names those lines where nothing that grows was found.
pub(crate) fn join(files: &Files<'_>, process: &Process<'_>, judged: &Judged, findings: &mut Vec<Finding>) {
    let grows = |verdict: &&Verdict| verdict.state == State::Grows;
    let verdict = judged.series(Series::CudaAllocated).filter(grows);
    let (Some(made), Some(verdict)) = (process.on_gpu.filter(|made| made.bytes > 0), verdict) else { return };
    let on_gpu = |finding: &&mut Finding| {
        let growth = finding.growth.as_ref();
        finding.severity > Severity::Info
            && growth.is_some_and(|growth| growth.series == Series::CudaAllocated)
    };
    let mut kept = findings.iter_mut().filter(on_gpu).peekable();
    if kept.peek().is_none() {
        let blamed = made.lines.iter().filter(|line| share(line, made) >= PART);
        findings.extend(blamed.map(|line| finding(files, process, verdict, line, made)));
        return;
    }
    let evidence = Evidence { kind: "gpu-record".into(), text: told(files, made) };
    kept.for_each(|finding| finding.evidence.push(evidence.clone()));
}

fn share(line: &GpuLine, made: &GpuMade) -> f64 {
    line.bytes as f64 / made.bytes as f64
}

fn told(files: &Files<'_>, made: &GpuMade) -> String {
    let line = |line: &GpuLine| {
        let CodePlace { file, line: number, function } = &line.place;
        format!("{} at {}:{number} in `{function}`", Bytes(line.bytes), files.display(file))
    };
    let lines: Vec<String> = made.lines.iter().take(LINES).map(line).collect();
    format!(
        "of {} that were made on the GPU while torch recorded and stayed: {}",
        Bytes(made.bytes),
        lines.join(", ")
    )
}

fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    verdict: &Verdict,
    line: &GpuLine,
    made: &GpuMade,
) -> Finding {
    let class = LeakClass::NativeGrowth;
    let CodePlace { file, line: number, function } = &line.place;
    let site = native::site(files, file, *number, function);
    let share = share(line, made);
    let growth = Growth {
        unit: verdict.unit,
        series: Series::CudaAllocated,
        bytes_per_epoch: verdict.bytes_per_epoch.map(|rate| rate * share),
        bytes_per_unit: verdict.bytes_per_unit * share,
        in_use_per_unit: None,
        elements_per_epoch: None,
        elements_per_unit: 0.0,
        interval: verdict.interval.map(|bounds| bounds.map(|bound| bound * share)),
        elements: 0,
    };
    Finding {
        confidence: Confidence::Likely,
        severity: Severity::Error,
        message: format!(
            "memory on the GPU that is allocated here stays, {} per {}, and nothing was found that holds it",
            Bytes::signed(growth.bytes_per_unit),
            unit_name(verdict.unit)
        ),
        container: site.text.clone(),
        sites: vec![site],
        process: process.reference(),
        growth: Some(growth),
        evidence: vec![Evidence { kind: "gpu-record".into(), text: told(files, made) }],
        fix: Some(fix::of(class, None, "")),
        ..Finding::of(class)
    }
}
