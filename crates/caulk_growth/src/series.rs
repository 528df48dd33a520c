//! Readings put in order and made dimensionless, so that nothing after it can overflow.

use crate::{JudgeOptions, Point, rank};

/// More readings than this are thinned: the tests look at pairs.
const MOST: usize = 96;
/// Readings closer than this share of the whole time are one reading.
const SAME_TIME: f64 = 1e-9;
/// Movement that counts as none, as a share of the level, where shares of it count at all.
const STILL: f64 = 0.01;
/// Beyond this, readings are taken for this.
const LARGEST: f64 = 1e100;

/// Readings in order of time. Times count typical distances between readings, values the largest excursion.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) times: Vec<f64>,
    pub(crate) values: Vec<f64>,
    /// Smallest growth per typical distance that matters.
    pub(crate) effect: f64,
    /// Values that lie within this distance are the same level.
    pub(crate) still: f64,
    /// Readings that one entry stands for (more than 1 where thinned).
    pub(crate) per_entry: f64,
    /// Distinct readings.
    pub(crate) readings: usize,
    /// Last reading, in its own unit.
    pub(crate) last: f64,
    slope_scale: f64,
}

impl Series {
    pub(crate) fn new(points: &[Point], options: &JudgeOptions) -> Self {
        let ordered = ordered(points);
        let readings = ordered.len();
        let thinned = thin(&ordered);
        let per_entry = if thinned.is_empty() { 1.0 } else { readings as f64 / thinned.len() as f64 };
        let Some(first) = thinned.first().copied() else {
            let (times, values) = (Vec::new(), Vec::new());
            return Self {
                times,
                values,
                effect: 0.0,
                still: 0.0,
                per_entry,
                readings,
                last: 0.0,
                slope_scale: 1.0,
            };
        };
        let distances: Vec<f64> = thinned.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        let time_scale = nonzero(rank::median(&distances));
        let value_scale = nonzero(thinned.iter().map(|p| (p.value - first.value).abs()).fold(0.0, f64::max));
        let level = rank::median(&thinned.iter().map(|point| point.value.abs()).collect::<Vec<_>>());
        let still = if options.relative_effect > 0.0 { STILL * level } else { 0.0 };
        let effect = options.minimum_effect.max(options.relative_effect * level).max(0.0);
        Self {
            times: thinned.iter().map(|point| (point.at - first.at) / time_scale).collect(),
            values: thinned.iter().map(|point| (point.value - first.value) / value_scale).collect(),
            effect: (effect / value_scale * time_scale).max(f64::MIN_POSITIVE),
            still: (4.0 * effect * time_scale).max(still) / value_scale,
            per_entry,
            readings,
            last: ordered.last().map_or(0.0, |point| point.value),
            slope_scale: value_scale / time_scale,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// A slope in the units of the input.
    pub(crate) fn unscale(&self, slope: f64) -> f64 {
        (slope * self.slope_scale).clamp(f64::MIN, f64::MAX)
    }

    /// Readings for which `entries` entries stand.
    pub(crate) fn readings_of(&self, entries: usize) -> usize {
        (entries as f64 * self.per_entry).round() as usize
    }

    /// Growth per typical distance, from each entry to the next.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let rate = |i: usize| (self.values[i] - self.values[i - 1]) / (self.times[i] - self.times[i - 1]);
        (1..self.len()).map(rate).collect()
    }
}

fn nonzero(scale: f64) -> f64 {
    if scale > 0.0 && scale.is_finite() { scale } else { 1.0 }
}

/// Finite readings by time; of several at one time the last counts.
fn ordered(points: &[Point]) -> Vec<Point> {
    let usable = points.iter().filter(|point| point.at.is_finite() && point.value.is_finite());
    let limit = |number: f64| number.clamp(-LARGEST, LARGEST);
    let mut sorted: Vec<Point> =
        usable.map(|point| Point { at: limit(point.at), value: limit(point.value) }).collect();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
    let span = sorted.last().map_or(0.0, |last| last.at - sorted[0].at);
    let mut out: Vec<Point> = Vec::with_capacity(sorted.len());
    for point in sorted {
        match out.last_mut() {
            Some(last) if point.at - last.at <= span * SAME_TIME => last.value = point.value,
            _ => out.push(point),
        }
    }
    out
}

/// Medians of equally many neighbours, where there are too many.
fn thin(points: &[Point]) -> Vec<Point> {
    if points.len() <= MOST {
        return points.to_vec();
    }
    let share = points.len().div_ceil(MOST);
    let middle =
        |part: &[Point], of: fn(&Point) -> f64| rank::median(&part.iter().map(of).collect::<Vec<_>>());
    let group = |part: &[Point]| Point { at: middle(part, |p| p.at), value: middle(part, |p| p.value) };
    points.chunks(share).map(group).collect()
}
