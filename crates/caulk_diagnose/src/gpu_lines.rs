//! Lines that make what stays on a GPU, by torch's own record: beside what keeps it, or alone where nothing was found.

use caulk_core::wire::{CodePlace, GpuLine, GpuMade};
use caulk_core::{Cause, Evidence, Growth, LeakClass, MadeAt, Rate, Series, State, Verdict};

use crate::claim::{Claim, Standing, Witness};
use crate::files::Files;
use crate::fix;
use crate::judged::Judged;
use crate::native;
use crate::process::Process;

/// Lines that are told beside a container.
const LINES: usize = 3;
/// Part of what was recorded that a line must have made to be blamed for growth.
const PART: f64 = 0.25;

/// Tells where the elements of what grows on a GPU are made, and names those lines where nothing that grows was found.
pub(crate) fn join(files: &Files<'_>, process: &Process<'_>, judged: &Judged, findings: &mut Vec<Claim>) {
    let grows = |verdict: &&Verdict| verdict.state == State::Grows;
    let verdict = judged.series(Series::CudaAllocated).filter(grows);
    let (Some(made), Some(verdict)) = (process.on_gpu.filter(|made| made.bytes > 0), verdict) else { return };
    let on_gpu = |finding: &&mut Claim| {
        let growth = finding.growth.as_ref();
        finding.weighs() && growth.is_some_and(|growth| growth.series == Series::CudaAllocated)
    };
    let mut kept = findings.iter_mut().filter(on_gpu).peekable();
    if kept.peek().is_none() {
        let blamed = made.lines.iter().filter(|line| share(line, made) >= PART);
        findings.extend(blamed.map(|line| finding(files, process, verdict, line, made)));
        return;
    }
    let evidence = record(files, made);
    kept.for_each(|finding| finding.evidence.push(evidence.clone()));
}

fn share(line: &GpuLine, made: &GpuMade) -> f64 {
    line.bytes as f64 / made.bytes as f64
}

fn record(files: &Files<'_>, made: &GpuMade) -> Evidence {
    let line = |line: &GpuLine| MadeAt {
        file: files.display(&line.place.file),
        line: line.place.line,
        function: line.place.function.clone(),
        bytes: line.bytes,
    };
    Evidence::GpuRecord { bytes: made.bytes, lines: made.lines.iter().take(LINES).map(line).collect() }
}

fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    verdict: &Verdict,
    line: &GpuLine,
    made: &GpuMade,
) -> Claim {
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
    Claim {
        witness: Witness::HeapLine,
        standing: Standing::Whole,
        cause: Cause::RetainedOnGpu(Rate::new(growth.bytes_per_unit, verdict.unit)),
        container: site.text.clone(),
        sites: vec![site],
        process: process.reference(),
        growth: Some(growth),
        evidence: vec![record(files, made)],
        fix: Some(fix::of(class, None, "")),
        ..Claim::of(class)
    }
}
