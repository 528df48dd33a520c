//! Does it grow? A verdict per process and series, with the time to the nearest limit.

use caulk_core::wire::{Boundary, Unit};
use caulk_core::{Recording, Series, State, Verdict};
use caulk_growth::{JudgeOptions, Judgement};

use crate::baselines::{Baselines, open};
use crate::children::Children;
use crate::covered;
use crate::held::Held;
use crate::judged::Judged;
use crate::ledger;
use crate::limits::{of_each_process, room};
use crate::loss;
use crate::process::Process;
use crate::units::{self, Scale};
use crate::within;

/// Part of the growth of resident memory that bytes in use make up where it is theirs.
const MOSTLY_IN_USE: f64 = 0.5;

/// Series that the process's own agent recorded.
pub(crate) fn of_process(recording: &Recording, process: &Process<'_>) -> Judged {
    let Some(scale) = Scale::of(process) else { return Judged::default() };
    let tells = process.of_unit(scale.unit).any(|boundary| boundary.malloc_bytes > 0);
    let room_left = room(recording, Some(process.record.pid), Series::InUse).map(|(_, left)| left);
    let mut judged = Judged { scale: Some(scale), room: room_left, ..Judged::default() };
    let resident = |boundary: &Boundary| Some(boundary.rss_bytes as f64);
    let pins_pages = tells
        && Baselines::of(units::points(process, scale, resident), scale).beside_bytes_in_use().judge().state
            == State::Grows;
    let mut add = |series, value: &dyn Fn(&Boundary) -> Option<f64>| {
        let mut baselines = Baselines::of(units::points(process, scale, value), scale);
        if baselines.is_empty() {
            return;
        }
        match series {
            Series::Rss | Series::MappedFiles | Series::PrivatePages if tells => {
                baselines = baselines.beside_bytes_in_use();
            }
            Series::Fds | Series::Threads | Series::Children => baselines = baselines.of_counts(),
            _ => {}
        }
        let mut judgement = within_epochs(process, scale, &baselines, baselines.judge());
        let (mut small, mut with_noise) = (None, None);
        if series == Series::InUse {
            judgement = loss::look_past(process, scale, &baselines, judgement);
            if let Some((certain, least)) = baselines.judge_small(&judgement, pins_pages) {
                let certain = within_epochs(process, scale, &baselines, certain);
                let grows = certain.state == State::Grows;
                small = grows.then_some(least);
                let before = std::mem::replace(&mut judgement, certain);
                with_noise = grows.then_some(before);
            } else {
                judgement = baselines.or_creeping(judgement);
            }
            judgement = covered::or_open(recording, process, scale, &baselines, judgement);
        }
        let verdict = baselines.verdict(
            process.reference(),
            series,
            &judgement,
            room(recording, Some(process.record.pid), series),
        );
        if judged.verdicts.is_empty() {
            judged.least = small.unwrap_or_else(|| baselines.least(verdict.last));
            judged.with_noise = with_noise.map(|judgement| {
                baselines.verdict(
                    process.reference(),
                    series,
                    &judgement,
                    room(recording, Some(process.record.pid), series),
                )
            });
        }
        if matches!(series, Series::CudaAllocated | Series::CudaRest) {
            judged.least_on_gpu.push((series, baselines.least(verdict.last)));
        }
        judged.verdicts.push(verdict);
    };
    let held = tells.then(|| Held::of(process, scale));
    if let Some(held) = held {
        add(Series::InUse, &|boundary| held.at(boundary));
    }
    add(Series::Rss, &resident);
    add(Series::CudaAllocated, &|boundary| Some(boundary.cuda_allocated_bytes as f64));
    let outside = ledger::outside(&ledger::of_process(recording, process));
    add(Series::CudaRest, &|boundary| outside.get(&boundary.seq).map(|bytes| *bytes as f64));
    add(Series::CudaReserved, &|boundary| Some(boundary.cuda_reserved_bytes as f64));
    add(Series::PinnedPool, &|boundary| Some(boundary.pinned_pool_bytes as f64));
    if process.boundaries.iter().any(|boundary| boundary.segment_bytes > 0) {
        add(Series::Shm, &|boundary| Some(boundary.segment_bytes as f64));
    }
    add(Series::MappedFiles, &|boundary| Some(boundary.file_bytes as f64));
    if process.boundaries.iter().any(|boundary| boundary.copied_file_bytes.is_some_and(|bytes| bytes > 0)) {
        add(Series::PrivatePages, &|boundary| boundary.copied_file_bytes.map(|bytes| bytes as f64));
    }
    add(Series::Fds, &|boundary| Some(f64::from(boundary.fds)));
    add(Series::Threads, &|boundary| Some(f64::from(boundary.threads)));
    let children = Children::of(recording, process);
    if !children.is_empty() {
        add(Series::Children, &|boundary| Some(children.alive_at(boundary.time_ns) as f64));
    }
    judged.is_mapped = held.is_some_and(Held::is_mapped);
    let level = judged.in_use().filter(|verdict| verdict.state != State::Grows).map(|verdict| verdict.last);
    judged.within = held.zip(level).and_then(|(held, level)| within::witness(process, scale, held, level));
    if let Some((more, text)) = left_open(&judged.verdicts) {
        judged.postpone(more, &text);
    }
    hasten(&mut judged.verdicts);
    judged
}

/// Steps that rise within the first epochs decide nothing: what an epoch gathers it may free at its end.
fn within_epochs(
    process: &Process<'_>,
    scale: Scale,
    baselines: &Baselines,
    judgement: Judgement,
) -> Judgement {
    let epochs: Vec<&Boundary> = process.of_unit(Unit::Epoch).collect();
    // The first boundary is where the first epoch begins: two of them are one whole epoch.
    let [first, .., last] = epochs.as_slice() else { return judgement };
    if scale.unit == Unit::Epoch || judgement.state != State::Grows {
        return judgement;
    }
    let between = |value: fn(&Boundary) -> f64| (value(last) - value(first)) / (epochs.len() - 1) as f64;
    let length = match scale.unit {
        Unit::Steps => between(|boundary| boundary.steps as f64),
        _ => between(|boundary| boundary.time_ns as f64 / 1e9),
    };
    let missing = JudgeOptions::default().minimum_boundaries.saturating_sub(epochs.len()) as f64;
    open(&judgement, baselines.count_of(missing * length), "rises within its first epochs; their ends decide")
}

/// Where most of the growth of the resident memory is that of the bytes in use, and it is open whether these grow (they
/// rose by steps, and stand still), it is open for the pages that they lie in: when that is known, and why.
fn left_open(verdicts: &[Verdict]) -> Option<(u32, String)> {
    let of = |series| verdicts.iter().find(|verdict| verdict.series == series);
    let (in_use, resident) = (of(Series::InUse)?, of(Series::Rss)?);
    let open = in_use.state == State::Undecided && resident.state == State::Grows;
    let follows = MOSTLY_IN_USE * resident.bytes_per_unit <= in_use.bytes_per_unit;
    (open && follows).then(|| (in_use.more_needed.unwrap_or(1), in_use.text.clone()))
}

/// What is killed is what is resident: where resident memory rises faster than the bytes in use, because blocks that
/// stay keep pages around them, the end comes sooner.
fn hasten(verdicts: &mut [Verdict]) {
    let resident =
        verdicts.iter().find(|verdict| verdict.series == Series::Rss).map(|rss| rss.bytes_per_unit);
    let in_use = verdicts.iter_mut().find(|verdict| verdict.series == Series::InUse);
    if let (Some(resident), Some(verdict)) = (resident, in_use)
        && verdict.bytes_per_unit > 0.0
        && resident > verdict.bytes_per_unit
    {
        let sooner = verdict.bytes_per_unit / resident;
        verdict.oom_in_s = verdict.oom_in_s.map(|[low, high]| [low * sooner, high]);
    }
}

/// Processes that grow side by side fill the same memory: it lasts for a shorter time than each of them alone tells.
pub(crate) fn share_the_room(all: &mut [&mut Judged]) {
    let until = |judged: &Judged| {
        let verdict = judged.in_use().filter(|verdict| verdict.state == State::Grows)?;
        let shared = verdict.limit.is_none_or(|limit| !of_each_process(limit.kind));
        verdict.oom_in_s.filter(|[low, high]| shared && *low > 0.0 && high.is_finite())
    };
    let spans: Vec<[f64; 2]> = all.iter().filter_map(|judged| until(judged)).collect();
    let together = |bound: usize| 1.0 / spans.iter().map(|span| 1.0 / span[bound]).sum::<f64>();
    let together = [together(0), together(1)];
    for judged in all.iter_mut().filter(|judged| until(judged).is_some()) {
        let grows = |verdict: &&mut Verdict| {
            matches!(verdict.series, Series::InUse | Series::Rss) && verdict.oom_in_s.is_some()
        };
        judged.verdicts.iter_mut().filter(grows).for_each(|verdict| verdict.oom_in_s = Some(together));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use caulk_core::{ProcessRef, VerdictUnit};

    use super::*;

    /// Of bytes in use over eight epochs.
    pub(crate) fn verdict(state: State, bytes_per_unit: f64) -> Verdict {
        Verdict {
            process: ProcessRef::default(),
            series: Series::InUse,
            state,
            unit: VerdictUnit::Epoch,
            bytes_per_unit,
            bytes_per_epoch: None,
            interval: None,
            level: 0.95,
            boundaries: 8,
            warmup: 0,
            more_needed: None,
            boundary_units: 1.0,
            last: 512.0 * 1_048_576.0,
            unit_steps: None,
            unit_seconds: None,
            limit: None,
            oom_in_s: None,
            text: String::new(),
        }
    }

    fn judged(bytes_per_unit: f64, oom_in_s: Option<[f64; 2]>) -> Judged {
        let state = if oom_in_s.is_some() { State::Grows } else { State::Flat };
        let verdict = Verdict { oom_in_s, ..verdict(state, bytes_per_unit) };
        Judged { verdicts: vec![verdict], least: 1e5, ..Judged::default() }
    }

    #[test]
    fn processes_that_grow_side_by_side_share_what_is_left() {
        let mut all = [judged(1e6, Some([100.0, 200.0])), judged(3e6, Some([50.0, 60.0])), judged(0.0, None)];
        share_the_room(&mut all.iter_mut().collect::<Vec<_>>());
        let told = all.map(|judged| judged.verdicts[0].oom_in_s);
        let [low, high] = [100.0 / 3.0, 1.0 / (1.0 / 200.0 + 1.0 / 60.0)];
        for (span, is_told) in told.iter().zip([true, true, false]) {
            assert_eq!(span.is_some(), is_told);
            let near = |[a, b]: [f64; 2]| (a - low).abs() < 1e-9 && (b - high).abs() < 1e-9;
            assert!(span.is_none_or(near), "{span:?}");
        }
    }

    #[test]
    fn memory_lasts_longer_where_a_part_of_its_growth_ends() {
        let left = |part| {
            let mut judged = judged(1e6, Some([100.0, 200.0]));
            judged.slow_down(part);
            judged.verdicts[0].oom_in_s
        };
        assert_eq!(left(0.5), Some([200.0, 400.0]));
        assert_eq!(left(0.01), None, "what is left does not matter");
        assert_eq!(left(0.0), None);
    }
}
