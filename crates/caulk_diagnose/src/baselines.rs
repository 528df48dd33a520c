//! One series as it is judged: its baselines, what is asked of them, and the verdict.

use caulk_core::wire::Unit;
use caulk_core::{Limit, ProcessRef, Series, State, Verdict};
use caulk_growth::{JudgeOptions, Judgement, Point, Stretches, forecast, judge, judge_certain};

use crate::units::{self, Scale};

/// Steps from which on they are judged: the first ones make optimizer states, workspaces and caches.
const FEWEST_STEPS: f64 = 20.0;
/// Boundaries from which resident memory is judged beside bytes in use, and how many times as much growth is asked of
/// it: the allocator keeps and returns pages of its own accord.
const FEWEST_RESIDENT: usize = 8;
const RESIDENT: f64 = 4.0;
/// What exact readings must show to count although it is small: all together, and of an epoch at least and at most. A sound
/// program keeps a few numbers of each step, less than this, which count once they have become so much.
const SMALL: f64 = 1_048_576.0;
const SMALL_EPOCH: [f64; 2] = [4_096.0, 100e3];
const NUMBERS: f64 = 256.0;
const ALL_NUMBERS: f64 = 64.0 * 1_048_576.0;
/// Baselines of each third of a run, bytes from one third to the next, and in all, from which a rise that is small each time
/// is not cleared.
const FEWEST_CREEPING: usize = 10;
const CREEPS: f64 = 2.0 * 1_048_576.0;
const CREEPS_IN_ALL: f64 = 8.0 * 1_048_576.0;
/// Part of the mean rise of an epoch below which the usual one lies where memory rises at few of them.
const AT_FEW: f64 = 0.2;
/// Forecasts of open files beyond so many times the time that was judged are left out.
const FAR: f64 = 10.0;
/// Things that must have become more, where they are counted at steps or seconds.
const HANDFUL: f64 = 8.0;

/// Readings at equal phase offsets, or the lowest of equal stretches.
pub(crate) struct Baselines {
    scale: Scale,
    points: Vec<Point>,
    /// Units that one of them stands for.
    length: f64,
    options: JudgeOptions,
}

impl Baselines {
    pub(crate) fn of(readings: Vec<Point>, scale: Scale) -> Self {
        if scale.unit == Unit::Epoch {
            let options = JudgeOptions::default();
            let length = scale.spacing;
            let (effect, share) = (options.minimum_effect / length, options.relative_effect / length);
            let options = JudgeOptions { minimum_effect: effect, relative_effect: share, ..options };
            return Self { scale, points: readings, length, options };
        }
        let stretches = Stretches::of(&readings);
        let span = stretches.span().max(1.0);
        let options = if scale.unit == Unit::Steps {
            JudgeOptions::for_steps(span)
        } else {
            JudgeOptions::for_seconds(span)
        };
        Self { scale, points: stretches.baselines, length: stretches.length, options }
    }

    /// Asks as much as is asked of resident memory where better is known.
    pub(crate) fn beside_bytes_in_use(mut self) -> Self {
        self.options.minimum_effect *= RESIDENT;
        self.options.relative_effect *= RESIDENT;
        self.options.minimum_boundaries = self.options.minimum_boundaries.max(FEWEST_RESIDENT);
        self
    }

    /// Asks what is asked of things that are counted: one in two epochs, or a handful over all of the rest.
    pub(crate) fn of_counts(mut self) -> Self {
        let epochs = self.scale.unit == Unit::Epoch;
        self.options.minimum_effect = if epochs { 0.5 / self.length } else { HANDFUL / self.span().max(1.0) };
        self.options.relative_effect = 0.0;
        self
    }

    /// Growth per unit below which nothing is said of a series at this level.
    pub(crate) fn least(&self, level: f64) -> f64 {
        self.options.minimum_effect.max(self.options.relative_effect * level)
    }

    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.iter().all(|point| point.value <= 0.0)
    }

    /// Units from the beginning of the first to the end of the last.
    pub(crate) fn span(&self) -> f64 {
        let ends = self.points.first().zip(self.points.last());
        ends.map_or(0.0, |(first, last)| last.at - first.at + self.length)
    }

    /// Units from one to the next: some may be missing, where malloc was not asked because its answer is dear.
    fn spacing(&self) -> f64 {
        (self.span() / self.points.len().max(1) as f64).max(self.length)
    }

    /// How many more of them so many units make.
    pub(crate) fn count_of(&self, units: f64) -> u32 {
        (units / self.length.max(f64::MIN_POSITIVE)).ceil().clamp(1.0, 1e6) as u32
    }

    /// What they do.
    pub(crate) fn judge(&self) -> Judgement {
        let judgement = judge(&self.points, &self.options);
        let missing = FEWEST_STEPS - self.span();
        if self.scale.unit == Unit::Steps && missing > 0.0 && judgement.state != State::Flat {
            return open(
                &judgement,
                self.count_of(missing),
                "too few steps to tell growth from what steps begin with",
            );
        }
        judgement
    }

    /// What exact readings show for certain, where they rise by less than is asked of a series with noise: the judgement, and
    /// the growth per unit that counts. `pins_pages`: resident memory grows beside them, so that less than a megabyte in all
    /// counts, too.
    pub(crate) fn judge_small(&self, judgement: &Judgement, pins_pages: bool) -> Option<(Judgement, f64)> {
        // A rate of that size which is not judged flat is open for another reason.
        let is_large = judgement.state != State::Flat && judgement.slope >= self.least(judgement.last);
        if judgement.state == State::Grows || is_large {
            return None;
        }
        let least = self.small(pins_pages);
        judge_certain(&self.points, least).map(|judgement| (judgement, least))
    }

    /// Growth per unit that counts if it is certain.
    fn small(&self, pins_pages: bool) -> f64 {
        let span = self.span().max(1.0);
        if self.scale.unit != Unit::Epoch {
            return self.options.minimum_effect;
        }
        let [least, most] = SMALL_EPOCH;
        let epoch = if pins_pages { least } else { (SMALL / span).clamp(least, most) };
        let numbers = self.scale.steps.map_or(0.0, |steps| (NUMBERS * steps).min(ALL_NUMBERS / span));
        if self.rises_at_few() { epoch } else { epoch.max(numbers) }
    }

    /// Does it rise at few of them, and by next to nothing in between? What each step keeps it gains at each.
    fn rises_at_few(&self) -> bool {
        let rates =
            self.points.windows(2).map(|pair| (pair[1].value - pair[0].value) / (pair[1].at - pair[0].at));
        let ends = self.points.first().zip(self.points.last());
        let mean = ends.map_or(0.0, |(first, last)| (last.value - first.value) / (last.at - first.at));
        units::median(rates.collect()).is_some_and(|usual| usual < AT_FEW * mean)
    }

    /// Left open, if exact readings that are judged not to grow have risen by megabytes all the same, to the end: epochs of
    /// a fraction of a second gain little each.
    pub(crate) fn or_creeping(&self, judgement: Judgement) -> Judgement {
        let surely = judgement.interval.is_some_and(|[low, _]| low > self.small(false));
        let level = |part: &[Point]| units::median(part.iter().map(|point| point.value).collect());
        let third = self.points.len() / 3;
        if judgement.state != State::Flat || !surely || third < FEWEST_CREEPING {
            return judgement;
        }
        let thirds: Vec<f64> = self.points.chunks(third).take(3).filter_map(level).collect();
        let rises = thirds.windows(2).all(|pair| pair[1] - pair[0] >= CREEPS);
        if rises && thirds[2] - thirds[0] >= CREEPS_IN_ALL {
            return open(&judgement, self.points.len() as u32, "rises by little each time, but on and on");
        }
        judgement
    }

    /// Does the limit that is reached then end the program? Open files may take years to reach theirs.
    fn ends(&self, series: Series, [early_s, _]: [f64; 2]) -> bool {
        let span_s = self.scale.seconds.map_or(0.0, |seconds| seconds * self.span());
        fills_memory(series) || series == Series::Fds && early_s <= FAR * span_s
    }

    /// A judgement as a verdict on a series of a process.
    pub(crate) fn verdict(
        &self,
        process: ProcessRef,
        series: Series,
        judgement: &Judgement,
        room: Option<(Limit, f64)>,
    ) -> Verdict {
        let scale = self.scale;
        let units_left = room.and_then(|(_, room)| forecast(judgement, 0.0, room));
        let oom_in_s = units_left.zip(scale.seconds).map(|(units, seconds)| units.map(|unit| unit * seconds));
        Verdict {
            process,
            series,
            state: judgement.state,
            unit: scale.verdict_unit(),
            bytes_per_unit: judgement.slope,
            bytes_per_epoch: scale.per_epoch(judgement.slope),
            interval: judgement.interval,
            level: self.options.level,
            boundaries: judgement.boundaries as u32,
            warmup: judgement.warmup as u32,
            boundary_units: self.spacing(),
            more_needed: judgement.more_needed,
            last: judgement.last,
            unit_steps: scale.steps,
            unit_seconds: scale.seconds,
            limit: room.map(|(limit, _)| limit),
            oom_in_s: oom_in_s.filter(|until| judgement.state == State::Grows && self.ends(series, *until)),
            text: judgement.text.clone(),
        }
    }
}

/// The same judgement, left open for so many more baselines.
pub(crate) fn open(judgement: &Judgement, more: u32, text: &str) -> Judgement {
    Judgement { state: State::Undecided, more_needed: Some(more), text: text.into(), ..judgement.clone() }
}

/// Does memory run out by it, the machine's or a GPU's?
fn fills_memory(series: Series) -> bool {
    matches!(
        series,
        Series::InUse | Series::Rss | Series::Pss | Series::Shm | Series::CudaAllocated | Series::CudaRest
    )
}
