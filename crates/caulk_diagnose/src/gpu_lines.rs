//! Lines that make what stays on a GPU, by torch's own record: beside what keeps it, or alone where nothing was found.

use caulk_core::wire::{CodePlace, GpuLine, GpuMade};
use caulk_core::{Cause, Evidence, Growth, MadeAt, Series, State, Verdict};

use crate::claim::{Claim, Observed, Relation, Relations, Standing, Witness, of_each};
use crate::files::Files;
use crate::judged::Judged;
use crate::native;
use crate::process::Process;

/// Lines that are told beside a container.
const LINES: usize = 3;
/// Part of what was recorded that a line must have made to be blamed for growth.
const PART: f64 = 0.25;

/// Adds the lines of the record to claims that grow on a GPU.
pub(crate) fn relations<'a>(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    claims: &[Claim],
) -> Relations<'a> {
    let Some((made, _)) = recorded(process, judged) else { return Vec::new() };
    let evidence = record(files, made);
    of_each(claims, is_on_gpu, |_| Relation::OnGpu(evidence.clone()))
}

/// The lines that make what grows on a GPU, if no claim has it.
pub(crate) fn findings(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    claims: &[Claim],
) -> Vec<Observed> {
    let recorded = recorded(process, judged).filter(|_| !claims.iter().any(is_on_gpu));
    let Some((made, verdict)) = recorded else { return Vec::new() };
    let blamed = made.lines.iter().filter(|line| share(line, made) >= PART);
    blamed.map(|line| finding(files, process, verdict, line, made)).collect()
}

fn recorded<'a, 'b>(process: &Process<'a>, judged: &'b Judged) -> Option<(&'a GpuMade, &'b Verdict)> {
    let grows = |verdict: &&Verdict| verdict.state == State::Grows;
    process.on_gpu.filter(|made| made.bytes > 0).zip(judged.series(Series::CudaAllocated).filter(grows))
}

fn is_on_gpu(claim: &Claim) -> bool {
    claim.weighs() && claim.growth_in(Series::CudaAllocated).is_some()
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
) -> Observed {
    let CodePlace { file, line: number, function } = &line.place;
    let site = native::site(files, file, *number, function);
    let (unit, rate, per_epoch) = (verdict.unit, verdict.bytes_per_unit, verdict.bytes_per_epoch);
    let whole = Growth::of_bytes(unit, Series::CudaAllocated, rate, per_epoch);
    let growth = Growth { interval: verdict.interval, ..whole }.scaled(share(line, made));
    let cause = Cause::RetainedOnGpu(growth.rate());
    Observed {
        witness: Witness::HeapLine,
        standing: Standing::Whole,
        container: site.text.clone(),
        sites: vec![site],
        process: process.reference(),
        growth: Some(growth),
        evidence: vec![record(files, made)],
        ..Observed::of(cause)
    }
}
