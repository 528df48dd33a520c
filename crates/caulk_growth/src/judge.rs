//! The judgement on bytes: several witnesses must agree before a series grows.

use caulk_core::State;

use crate::series::Series;
use crate::shape::{self, STOPPED};
use crate::{JudgeOptions, Judgement, Point, rank};

/// Readings that must remain after the warm-up: three rates show a steady rise, two do not.
const FEWEST_JUDGED: usize = 4;
/// How often a warm-up is looked for in what remains.
const WARMUP_ROUNDS: usize = 3;
/// Readings from which on a leak's ranks leave no doubt, so that more certainty is asked of them; below, more is
/// asked of the evenness of its steps.
const MATURE: usize = 7;
/// Boundaries up to which an unclear rise is left open instead of being called noise.
const YOUNG: usize = 12;

const RETURNS: &str = "moves, and returns to its baseline";
const UNEVEN: &str = "rises by few or uneven steps";
const SLOWS: &str = "rises more and more slowly";
const TOO_WILD: &str = "moves too much to exclude a growth that matters";
/// Part of the greatest rise that a reading may differ by from the one before it on the same tread of a staircase.
const TREAD: f64 = 0.05;

/// Judges baselines in order of their time.
///
/// Readings that are not finite are ignored, and of several at the same time the last counts.
pub fn judge(points: &[Point], options: &JudgeOptions) -> Judgement {
    let options = sane(options);
    let series = Series::new(points, &options);
    let direct = judge_series(&series, &options);
    let unclear =
        direct.state == State::Sawtooth || (direct.state == State::Undecided && direct.text == UNEVEN);
    if unclear && let Some((troughs, height)) = troughs(&series, points) {
        let judged = judge_series(&Series::new(&troughs, &options), &options);
        let rise = troughs[troughs.len() - 1].value - troughs[0].value;
        if judged.state == State::Grows && rise > 2.0 * height {
            let text = format!("the troughs of a saw-tooth rise: {}", judged.text);
            return Judgement { last: series.last, text, ..judged };
        }
    }
    let by_steps = direct.state == State::Undecided && (direct.text == UNEVEN || direct.text == SLOWS);
    if by_steps && let Some(treads) = treads(points) {
        let judged = judge_series(&Series::new(&treads, &options), &options);
        if judged.state == State::Grows {
            let text = format!("rises by steps that follow on evenly: {}", judged.text);
            return Judgement { last: series.last, boundaries: direct.boundaries, text, ..judged };
        }
    }
    direct
}

fn in_order(points: &[Point]) -> Vec<Point> {
    let finite = |point: &&Point| point.at.is_finite() && point.value.is_finite();
    let mut sorted: Vec<Point> = points.iter().filter(finite).copied().collect();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
    sorted
}

/// Where each tread of a staircase begins, the first left out, if that is what the readings are: boundaries that lie
/// closer than the work that leaks find it at a few of them, and nothing between. What is around a line by chance is
/// another matter, for which tests on all readings hold.
fn treads(points: &[Point]) -> Option<Vec<Point>> {
    let points = in_order(points);
    let rises: Vec<f64> = points.windows(2).map(|pair| pair[1].value - pair[0].value).collect();
    let greatest = rises.iter().copied().fold(0.0, f64::max);
    let level = |rise: &f64| rise.abs() <= TREAD * greatest;
    let treads: Vec<Point> = rises
        .iter()
        .zip(points.windows(2))
        .filter(|(rise, _)| !level(rise))
        .map(|(_, pair)| pair[1])
        .collect();
    (treads.len() >= FEWEST_JUDGED && rises.len() >= 2 * treads.len()).then_some(treads)
}

/// Units until `current` reaches `limit`, as a range: with the steepest and the flattest slope of the interval.
/// `None` unless the series grows.
pub fn forecast(judgement: &Judgement, current: f64, limit: f64) -> Option<[f64; 2]> {
    let [low, high] = judgement.interval?;
    let left = limit - current;
    if judgement.state != State::Grows || !left.is_finite() || low <= 0.0 {
        return None;
    }
    let left = left.max(0.0);
    Some([(left / high).min(f64::MAX), (left / low).min(f64::MAX)])
}

fn sane(options: &JudgeOptions) -> JudgeOptions {
    let level = if options.level.is_finite() { options.level.clamp(0.5, 0.9999) } else { 0.95 };
    let effect = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
    JudgeOptions {
        level,
        minimum_effect: effect(options.minimum_effect),
        relative_effect: effect(options.relative_effect),
        minimum_boundaries: options.minimum_boundaries.max(FEWEST_JUDGED),
        equal_phases: options.equal_phases,
    }
}

/// A series from the reading on at which judging starts, with what the tests say about it.
struct Judged<'a> {
    series: &'a Series,
    start: usize,
    rates: Vec<f64>,
    slope: f64,
    interval: Option<[f64; 2]>,
    p_value: f64,
    significance: f64,
    equal_phases: bool,
}

impl<'a> Judged<'a> {
    fn new(series: &'a Series, start: usize, options: &JudgeOptions) -> Self {
        let (times, values) = (&series.times[start..], &series.values[start..]);
        let (slope, interval) = rank::theil_sen(times, values, options.level);
        let rates = series.rates().split_off(start.min(series.len().saturating_sub(1)));
        let p_value = rank::mann_kendall(values);
        let (significance, equal_phases) = (1.0 - options.level, options.equal_phases);
        Self { series, start, rates, slope, interval, p_value, significance, equal_phases }
    }

    fn times(&self) -> &[f64] {
        &self.series.times[self.start..]
    }

    fn values(&self) -> &[f64] {
        &self.series.values[self.start..]
    }

    /// By rank, by size and beyond doubt about the sign.
    fn rises(&self) -> bool {
        let strict = if self.values().len() < MATURE { 1.0 } else { 0.2 };
        self.p_value <= strict * self.significance + 1e-12
            && self.slope >= self.series.effect
            && self.interval.is_some_and(|[low, _]| low > 0.0)
    }

    fn drifts(&self) -> bool {
        let strict = if self.values().len() < MATURE { 0.5 } else { 1.0 };
        shape::drift(&self.rates) <= strict * self.significance
    }

    fn slows(&self) -> bool {
        let slowing = shape::slowing(self.equal_phases);
        shape::slows(self.times(), self.values(), &self.rates, self.significance, slowing)
    }

    fn verdict(&self, state: State, text: String) -> Judgement {
        let unscale = |slope: f64| self.series.unscale(slope);
        Judgement {
            state,
            slope: unscale(self.slope),
            interval: self.interval.map(|[low, high]| [unscale(low), unscale(high)]),
            p_value: self.p_value,
            warmup: self.series.readings - self.series.readings_of(self.series.len() - self.start),
            boundaries: self.series.readings_of(self.series.len() - self.start),
            more_needed: None,
            last: self.series.last,
            text,
        }
    }

    fn open(&self, more: u32, text: &str) -> Judgement {
        Judgement { more_needed: Some(more), ..self.verdict(State::Undecided, text.into()) }
    }
}

fn judge_series(series: &Series, options: &JudgeOptions) -> Judgement {
    if series.len() < options.minimum_boundaries {
        let judged = Judged::new(series, 0, options);
        let more = (options.minimum_boundaries - series.len()) as u32;
        return judged.open(more, "too few boundaries");
    }
    let (start, lately) = warmup(series);
    let judged = Judged::new(series, start, options);
    match lately {
        Some(change) if change.before < STOPPED * change.after => {
            // Fewer steps than a trend needs, after a time without any.
            let seen = series.len() - 1 - start - change.at;
            judged.open((FEWEST_JUDGED - seen.min(FEWEST_JUDGED - 1)) as u32, "began to rise only lately")
        }
        Some(change) if change.after < STOPPED * change.before && recent(series) >= series.effect => {
            judged.open(2, "may have just stopped rising")
        }
        _ => decide(&judged),
    }
}

/// Where judging starts: after the changes of level that leave enough to judge. Also a change too close to the
/// end for that, if there is one.
fn warmup(series: &Series) -> (usize, Option<shape::Change>) {
    let rates = series.rates();
    let mut start = 0;
    for _ in 0..WARMUP_ROUNDS {
        let Some(change) = shape::change(&rates[start..], series.effect) else {
            break;
        };
        if series.len() - start - change.at < FEWEST_JUDGED {
            return (start, Some(change));
        }
        let (times, values) = (&series.times[start..], &series.values[start..]);
        if change.before > change.after && !shape::bends_rather_than_fills(times, values, change.at) {
            break;
        }
        start += change.at;
    }
    (start, None)
}

/// Growth per typical distance over the last third of all readings.
fn recent(series: &Series) -> f64 {
    let last = series.len() - 1;
    let from = last - shape::recent_count(last);
    (series.values[last] - series.values[from]) / (series.times[last] - series.times[from])
}

fn decide(judged: &Judged<'_>) -> Judgement {
    let series = judged.series;
    let recent = recent(series);
    let grows_lately = recent >= series.effect / 2.0 && recent >= STOPPED * judged.slope;
    if judged.rises() && grows_lately {
        return decide_rise(judged);
    }
    if let Some(plateau) = plateau(judged) {
        return plateau;
    }
    let unclear = judged.slope >= series.effect && grows_lately && judged.p_value <= 0.2;
    if unclear && series.len() < YOUNG {
        return judged.open(2, "rises, but not steadily enough to tell from noise");
    }
    settled(judged)
}

fn decide_rise(judged: &Judged<'_>) -> Judgement {
    let drifts = judged.drifts();
    if !drifts && returns(judged.values()) {
        return judged.verdict(State::Sawtooth, RETURNS.into());
    }
    if judged.slows() {
        let more = shape::until_settled(&judged.rates, judged.series.effect);
        return judged.open(more, SLOWS);
    }
    if !drifts {
        return judged.open(3, UNEVEN);
    }
    let count = judged.values().len();
    let text = format!("rises over {count} boundaries without slowing, p {}", p_text(judged.p_value));
    judged.verdict(State::Grows, text)
}

/// Whether it once fell by more than half of the way that it has ever gone.
fn returns(values: &[f64]) -> bool {
    let (mut low, mut high, mut fall) = (f64::MAX, f64::MIN, 0.0_f64);
    for &value in values {
        (low, high) = (low.min(value), high.max(value));
        fall = fall.max(high - value);
    }
    fall > 0.5 * (high - low)
}

/// Whether one of the latest readings is as low as those before typically were: what leaks never comes back there.
fn comes_back(values: &[f64]) -> bool {
    let late = values.len() - 1 - shape::recent_count(values.len() - 1);
    let (before, lately) = values.split_at(late);
    lately.iter().any(|value| *value <= rank::median(before)) || before.is_empty()
}

/// Rose before, and has stayed near its highest level for the last third.
fn plateau(judged: &Judged<'_>) -> Option<Judgement> {
    let series = judged.series;
    let last = series.len() - 1;
    let from = last - shape::recent_count(last);
    let tail = &series.values[from..];
    let level = rank::median(tail);
    let highest = series.values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = tail.iter().copied().fold(f64::MAX, f64::min);
    let rise = level - series.values[0];
    let rose = rise > 4.0 * series.effect;
    let stays = highest - lowest <= 0.3 * rise;
    (rose && stays).then(|| {
        let warmup =
            series.values.iter().position(|&value| value >= level - 0.1 * rise).unwrap_or(0).min(from);
        let warmup_readings = series.readings - series.readings_of(series.len() - warmup);
        let verdict = judged.verdict(State::Plateaus, "rose and stopped".into());
        Judgement { warmup: warmup_readings, boundaries: series.readings - warmup_readings, ..verdict }
    })
}

/// No growth: still, or moving about a baseline. An interval must exclude a growth that matters. At equal phases coming back
/// does so, too, and many readings have shown by now what there is to show.
fn settled(judged: &Judged<'_>) -> Judgement {
    let values = judged.values();
    let excluded = judged.interval.is_some_and(|[_, high]| high <= judged.series.effect);
    let shown = judged.equal_phases && (judged.series.len() >= MATURE || comes_back(values));
    if !excluded && !shown {
        let more = if judged.equal_phases { 2 } else { until_excluded(judged) };
        return judged.open(more, TOO_WILD);
    }
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    if high - low <= judged.series.still {
        return judged.verdict(State::Flat, "does not move".into());
    }
    if judged.p_value <= judged.significance && judged.slope < judged.series.effect {
        return judged.verdict(State::Flat, "rises by less than matters".into());
    }
    judged.verdict(State::Sawtooth, RETURNS.into())
}

/// Readings until the interval excludes a growth that matters, at a guess: it narrows with their number to the power of 3/2.
fn until_excluded(judged: &Judged<'_>) -> u32 {
    let high = judged.interval.map_or(0.0, |[_, high]| high);
    let times = (high / judged.series.effect).powf(2.0 / 3.0).clamp(1.0, 4.0);
    let readings = judged.values().len() as f64 * judged.series.per_entry;
    ((times - 1.0) * readings).ceil().max(2.0) as u32
}

/// The low points of a saw-tooth, if there are enough to be judged, and the typical height of a tooth. What lies
/// below a tooth may rise for a while when the teeth and the boundaries beat.
fn troughs(series: &Series, points: &[Point]) -> Option<(Vec<Point>, f64)> {
    if series.per_entry > 1.0 || series.len() < 11 {
        return None;
    }
    let sorted = in_order(points);
    let lows =
        sorted.windows(3).filter(|three| three[1].value < three[0].value && three[1].value <= three[2].value);
    let drops: Vec<f64> = lows.clone().map(|three| three[0].value - three[1].value).collect();
    let lows: Vec<Point> = lows.map(|three| three[1]).collect();
    (lows.len() >= 5).then(|| (lows, rank::median(&drops)))
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("= {p:.3}") }
}
