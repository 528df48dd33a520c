//! The verdict on readings that a program took of itself.

use caulk_growth::{JudgeOptions, Point, Stretches, judge};
use pyo3::prelude::*;

/// Readings from which on the lowest of each stretch of steps stand for all of them.
const MANY: usize = 24;

/// State, growth per step, its interval at 95 %, how many more readings are needed, and why, in words.
type Verdict = (&'static str, f64, Option<(f64, f64)>, Option<u32>, String);

/// Judges bytes read at steps: pairs of step and bytes, in order.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "from Python as it comes")]
pub(super) fn judge_bytes(readings: Vec<(f64, f64)>) -> Verdict {
    let points: Vec<Point> = readings.iter().map(|(at, value)| Point { at: *at, value: *value }).collect();
    let (points, span) = if points.len() >= MANY {
        let stretches = Stretches::of(&points);
        let span = stretches.span();
        (stretches.baselines, span)
    } else {
        let ends = points.first().zip(points.last());
        let span = ends.map_or(1.0, |(first, last)| last.at - first.at);
        (points, span)
    };
    let judgement = judge(&points, &JudgeOptions::for_steps(span.max(1.0)));
    let interval = judgement.interval.map(|[low, high]| (low, high));
    (judgement.state.as_str(), judgement.slope, interval, judgement.more_needed, judgement.text)
}
