//! Does it grow? A verdict per process and series, with the time to the nearest limit.

use caulk_core::wire::Unit;
use caulk_core::{Limit, LimitKind, ProcessRef, Recording, Series, State, Verdict, VerdictUnit};
use caulk_growth::{Judgement, Options, Point, forecast, judge};

use crate::process::Process;
use crate::units::{self, Scale};

/// Windows into which a series from outside is cut; the lowest reading of each is its baseline.
const WINDOWS: usize = 16;
/// Shortest stretch of outside readings that is judged, in seconds.
const SHORTEST: f64 = 20.0;

/// Boundaries by steps, and by seconds, from which a series is judged.
const FEWEST_STEPS: usize = 6;
const FEWEST_SECONDS: usize = 10;

/// What one process's series do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) scale: Option<Scale>,
}

impl Judged {
    pub(crate) fn in_use(&self) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.series == Series::InUse)
    }

    /// The verdicts as they are told: what is level from epoch to epoch, and was seen to fill `within` each of them,
    /// says so.
    pub(crate) fn told(mut self, within: bool) -> Vec<Verdict> {
        let level = |state| matches!(state, State::Flat | State::Sawtooth | State::Plateaus);
        let in_use = self.verdicts.iter_mut().find(|verdict| verdict.series == Series::InUse);
        if let Some(verdict) = in_use.filter(|verdict| within && level(verdict.state)) {
            verdict.state = State::GrowsWithinEpoch;
            verdict.text = "level at the ends of epochs, far higher within them".into();
        }
        self.verdicts
    }

    /// The fastest growth that the process's memory shows, where it grows.
    pub(crate) fn ceiling(&self) -> Option<f64> {
        let grows = |verdict: &&Verdict| verdict.state == State::Grows;
        self.in_use().filter(grows)?;
        let counted = |verdict: &&Verdict| matches!(verdict.series, Series::InUse | Series::Rss);
        let rates = self.verdicts.iter().filter(grows).filter(counted).map(|verdict| verdict.bytes_per_unit);
        rates.max_by(f64::total_cmp)
    }

    pub(crate) fn in_use_state(&self) -> Option<State> {
        self.in_use().map(|verdict| verdict.state)
    }
}

/// Series that the process's own agent recorded.
pub(crate) fn of_process(recording: &Recording, process: &Process<'_>) -> Judged {
    let Some(scale) = Scale::of(process) else { return Judged::default() };
    let options = options(scale);
    let room = room(recording);
    // The first boundary is where the first epoch begins: two of them are one whole epoch.
    let epochs = process.of_unit(Unit::Epoch).count();
    let inside_epochs = scale.unit != Unit::Epoch && epochs >= 2;
    let mut verdicts = Vec::new();
    let mut add = |series, points: &[Point]| {
        if points.iter().any(|point| point.value > 0.0) {
            let mut judgement = judge(points, &options);
            if judgement.state == State::Grows && inside_epochs {
                judgement.state = State::Undecided;
                judgement.more_needed = Some((Options::default().minimum_boundaries - epochs) as u32);
                judgement.text = "rises within its first epochs; their ends decide".into();
            }
            verdicts.push(verdict(process.reference(), series, scale, &judgement, room));
        }
    };
    if process.of_unit(scale.unit).any(|boundary| boundary.malloc_bytes > 0) {
        add(Series::InUse, &units::points(process, scale, units::in_use));
    }
    add(Series::Rss, &units::points(process, scale, |boundary| boundary.rss_bytes as f64));
    add(
        Series::CudaAllocated,
        &units::points(process, scale, |boundary| boundary.cuda_allocated_bytes as f64),
    );
    hasten(&mut verdicts);
    Judged { verdicts, scale: Some(scale) }
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

/// The whole tree from outside, where no process could tell its own bytes in use.
pub(crate) fn of_tree(recording: &Recording, processes: &[Process<'_>]) -> Vec<Verdict> {
    let inside = processes
        .iter()
        .any(|process| Scale::of(process).is_some_and(|scale| process.of_unit(scale.unit).count() >= 3));
    if inside {
        return Vec::new();
    }
    let readings: Vec<Point> = recording
        .system
        .iter()
        .map(|sample| Point { at: seconds(recording, sample.time_ns), value: sample.tree_rss_bytes as f64 })
        .collect();
    let baselines = baselines(&readings);
    if baselines.len() < 3 {
        return Vec::new();
    }
    let spacing = (baselines[baselines.len() - 1].at - baselines[0].at) / (baselines.len() - 1) as f64;
    let scale = Scale { unit: Unit::Seconds, seconds: Some(1.0), steps: None, spacing };
    let judgement = judge(&baselines, &options(scale));
    let tree = ProcessRef { role: "tree".into(), index: 0, count: recording.processes.len().max(1) as u32 };
    let mut verdict = verdict(tree, Series::Rss, scale, &judgement, room(recording));
    if verdict.state == State::Grows && baselines.len() < WINDOWS / 2 {
        verdict.state = State::Undecided;
    }
    vec![verdict]
}

/// The lowest reading of each of equal stretches of time.
fn baselines(readings: &[Point]) -> Vec<Point> {
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return Vec::new() };
    let length = (last.at - first.at) / WINDOWS as f64;
    if last.at - first.at < SHORTEST {
        return Vec::new();
    }
    let lowest = |window: usize| {
        let start = first.at + length * window as f64;
        let inside = readings.iter().filter(|point| (start..start + length).contains(&point.at));
        inside.copied().min_by(|a, b| a.value.total_cmp(&b.value))
    };
    (0..WINDOWS).filter_map(lowest).collect()
}

fn seconds(recording: &Recording, time_ns: u64) -> f64 {
    time_ns.saturating_sub(recording.info.start_ns) as f64 / 1e9
}

/// What counts as growth, per unit: the smallest effect is meant per boundary.
fn options(scale: Scale) -> Options {
    let options = Options::default();
    // Steps and seconds begin with imports, allocators and optimizers that settle; epochs end after that.
    let minimum_boundaries = match scale.unit {
        Unit::Epoch => options.minimum_boundaries,
        Unit::Steps => FEWEST_STEPS,
        Unit::Seconds => FEWEST_SECONDS,
    };
    Options {
        minimum_boundaries,
        minimum_effect: options.minimum_effect / scale.spacing,
        relative_effect: options.relative_effect / scale.spacing,
        ..options
    }
}

fn verdict(
    process: ProcessRef,
    series: Series,
    scale: Scale,
    judgement: &Judgement,
    room: Option<(Limit, f64)>,
) -> Verdict {
    let units_left = room.and_then(|(_, room)| forecast(judgement, 0.0, room));
    let oom_in_s = units_left.zip(scale.seconds).map(|(units, seconds)| units.map(|unit| unit * seconds));
    let grows = judgement.state == State::Grows;
    Verdict {
        process,
        series,
        state: judgement.state,
        unit: scale.verdict_unit(),
        bytes_per_unit: judgement.slope,
        bytes_per_epoch: scale.per_epoch(judgement.slope),
        interval: judgement.interval,
        level: Options::default().level,
        boundaries: judgement.boundaries as u32,
        warmup: judgement.warmup as u32,
        more_needed: judgement.more_needed,
        last: judgement.last,
        unit_steps: scale.steps,
        unit_seconds: scale.seconds,
        limit: room.map(|(limit, _)| limit),
        oom_in_s: oom_in_s.filter(|_| grows && series != Series::CudaAllocated),
        text: judgement.text.clone(),
    }
}

/// The nearest limit, and the bytes that are left below it at the end of the recording.
fn room(recording: &Recording) -> Option<(Limit, f64)> {
    let (limits, last) = (&recording.info.limits, recording.system.last()?);
    let cgroup = limits
        .cgroup_bytes
        .zip(last.cgroup_bytes)
        .map(|(limit, used)| (LimitKind::Cgroup, limit, limit.saturating_sub(used)));
    let budget = limits
        .budget_bytes
        .map(|limit| (LimitKind::Budget, limit, limit.saturating_sub(last.tree_rss_bytes)));
    let physical = Some((LimitKind::Physical, limits.physical_bytes, last.available_bytes));
    let nearest = [cgroup, budget, physical].into_iter().flatten().min_by_key(|(_, _, room)| *room)?;
    let (kind, bytes, room) = nearest;
    Some((Limit { kind, bytes }, room as f64))
}

/// The unit as people say it.
pub(crate) fn unit_name(unit: VerdictUnit) -> &'static str {
    match unit {
        VerdictUnit::Epoch => "epoch",
        VerdictUnit::Steps => "step",
        VerdictUnit::Seconds => "second",
    }
}
