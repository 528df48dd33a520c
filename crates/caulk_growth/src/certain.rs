//! The judgement on small growth: less than what noise may look like, and yet beyond doubt.
//!
//! Bytes in use are exact sums. What an epoch leaves behind shows in them to the kilobyte, in the hundreds of megabytes of a
//! program. So a rate too small for [`judge`](crate::judge) still counts if nothing else explains it: it is there from the
//! beginning to the end, as fast in the last third as before, and surely above what is asked.

use caulk_core::State;

use crate::judge::judge;
use crate::series::Series;
use crate::{JudgeOptions, Judgement, Point};

/// Certainty that is asked of a trend this small.
const LEVEL: f64 = 0.99;
/// Readings that must remain after the warm-up: fewer cannot be that certain.
const FEWEST: usize = 6;
/// Part of the rate before it that the last third must keep: what fills slows down, what leaks does not.
const KEEPS: f64 = 0.7;
/// Series that are cut into thirds after so many rates; of fewer, the last two are the last third. What falls within the
/// first third belongs to the warm-up.
const THIRD: usize = 3;

/// Whether exact readings grow by at least `effect` per unit, though by less than is asked of readings with noise; `None`
/// where that is not certain.
pub fn judge_certain(points: &[Point], effect: f64) -> Option<Judgement> {
    let skipped = beginning(points);
    let points = &points[skipped..];
    let options = JudgeOptions {
        level: LEVEL,
        minimum_effect: effect,
        relative_effect: 0.0,
        minimum_boundaries: FEWEST,
        equal_phases: true,
    };
    let judged = judge(points, &options);
    let sure = judged.interval.is_some_and(|[low, _]| low >= effect);
    let grows = judged.state == State::Grows && judged.boundaries >= FEWEST && sure;
    (grows && lasts(points, judged.warmup, &options))
        .then(|| Judgement { text: format!("{}, little and at an even rate", judged.text), ..judged })
        .map(|judgement| Judgement { warmup: judgement.warmup + skipped, ..judgement })
}

/// Readings before the last fall within the first third: what a program gives back there it took to begin with.
fn beginning(points: &[Point]) -> usize {
    let falls = |at: &usize| points[at + 1].value < points[*at].value;
    (0..points.len().saturating_sub(1) / THIRD).rev().find(falls).map_or(0, |at| at + 1)
}

/// Does the last third of what was judged rise as fast as what came before it, and by what is asked?
fn lasts(points: &[Point], warmup: usize, options: &JudgeOptions) -> bool {
    let series = Series::new(points, options);
    let start = ((warmup as f64 / series.per_entry).round() as usize).min(series.len().saturating_sub(1));
    let (times, values) = (&series.times[start..], &series.values[start..]);
    let rates = times.len() - 1;
    let from = rates - (rates / THIRD).max(2).min(rates);
    if from == 0 {
        return false;
    }
    let rate = |a: usize, b: usize| (values[b] - values[a]) / (times[b] - times[a]);
    let (before, lately) = (rate(0, from), rate(from, rates));
    lately >= series.effect && lately >= KEEPS * before
}
