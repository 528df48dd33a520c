//! The shape of a series by its rates: where they change level, whether they fall, whether they still hold.

use crate::rank::{mann_kendall, median, spread_about_median};
use crate::student;

/// Rates that fall by less than this over the series may belong to a steady leak, ...
const SLOWING: f64 = 0.88;
/// ... and where they are per second, of a program that other work on the machine slows down.
const SLOWING_BY_TIME: f64 = 0.7;
/// Rates that fall by more than this are slowing whatever the noise.
const MUCH_SLOWER: f64 = 0.4;
/// Rates that have fallen no lower than this, after this many of them, would take as long again to settle: then it takes
/// the more to call them slowing the longer they have gone on, since among many rates that go up and down some do so in
/// an order that looks like it.
const HALF: f64 = 0.5;
const LONG: f64 = 8.0;
/// A shape that leaves less than this share of another's squares unexplained is the right one of the two.
const MUCH_BETTER: f64 = 0.3;
/// Two rates that differ by less than this share are one.
const LEVEL: f64 = 0.2;
/// Recent growth below this share of the usual is none.
pub(crate) const STOPPED: f64 = 0.25;

/// Where the rates change from one level to another: the number of rates before the change, with both levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    pub(crate) at: usize,
    pub(crate) before: f64,
    pub(crate) after: f64,
}

/// The best single change of level, if two levels describe the rates far better than one.
pub(crate) fn change(rates: &[f64], effect: f64) -> Option<Change> {
    let whole = spread_about_median(rates);
    let cost = |at: usize| spread_about_median(&rates[..at]) + spread_about_median(&rates[at..]);
    let at = (1..rates.len()).min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
    let (before, after) = (median(&rates[..at]), median(&rates[at..]));
    let (rest, step) = (cost(at), (before - after).abs());
    let noise = 3.0 * rest / rates.len() as f64;
    let clear =
        rest <= 0.5 * whole && step > noise.max(effect) && step >= LEVEL * before.abs().max(after.abs());
    clear.then_some(Change { at, before, after })
}

/// Whether a bend at one reading describes readings far better than a smooth approach to a level does. Without
/// this, the fast beginning of something that fills passes for a warm-up, and its slow end for a leak.
pub(crate) fn bends_rather_than_fills(times: &[f64], values: &[f64], at: usize) -> bool {
    let bend: Vec<f64> = times.iter().map(|time| (time - times[at]).max(0.0)).collect();
    fit(values, &[times, &bend]).residual < MUCH_BETTER * fills(times, values)
}

/// Whether a warm-up that dies away on top of a straight line describes readings far better than an approach to a
/// level does, with the line alone making up what growth there is at the end.
fn warms_up(times: &[f64], values: &[f64], late: f64) -> bool {
    let span = times[times.len() - 1] - times[0];
    let with = |constant: f64| fit(values, &[&approach(times, constant), times]);
    let best = lowest([0.3, (span / 3.0).max(0.4)], |constant| with(constant).residual);
    let line = with(best);
    values.len() >= 6 && line.last >= 0.7 * late && line.residual < MUCH_BETTER * fills(times, values)
}

/// What the best approach to a level leaves unexplained.
fn fills(times: &[f64], values: &[f64]) -> f64 {
    let span = times[times.len() - 1] - times[0];
    let left = |constant: f64| fit(values, &[&approach(times, constant)]).residual;
    left(lowest([0.3, (span * 3.0).max(0.4)], left))
}

fn approach(times: &[f64], constant: f64) -> Vec<f64> {
    times.iter().map(|time| (-(time - times[0]) / constant).exp()).collect()
}

/// Where a function of a time constant is lowest in a range: a coarse grid, then ever closer around its best.
fn lowest([from, to]: [f64; 2], of: impl Fn(f64) -> f64) -> f64 {
    const GRID: i32 = 20;
    let ratio = (to / from).powf(1.0 / f64::from(GRID));
    let grid = (0..=GRID).map(|step| from * ratio.powi(step));
    let mut best = grid.min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap_or(from);
    let mut step = ratio;
    for _ in 0..16 {
        step = step.sqrt();
        let near = [best / step, best, best * step];
        best = near.into_iter().min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap_or(best);
    }
    best
}

/// What a constant and some shapes leave unexplained of the values.
struct Fit {
    /// Sum of squares.
    residual: f64,
    /// Coefficient of the last shape.
    last: f64,
}

fn fit(values: &[f64], shapes: &[&[f64]]) -> Fit {
    let ones = vec![1.0; values.len()];
    let mut bases: Vec<Vec<f64>> = Vec::new();
    let (mut rest, mut last) = (values.to_vec(), 0.0);
    for shape in std::iter::once(ones.as_slice()).chain(shapes.iter().copied()) {
        let own = bases.iter().fold(shape.to_vec(), |own, basis| without(&own, basis));
        last = 0.0;
        if dot(&own, &own) > 1e-12 * dot(shape, shape) {
            last = dot(&rest, &own) / dot(&own, &own);
            rest = without(&rest, &own);
            bases.push(own);
        }
    }
    Fit { residual: dot(&rest, &rest), last }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The part of `a` that `basis` does not explain.
fn without(a: &[f64], basis: &[f64]) -> Vec<f64> {
    let share = dot(a, basis) / dot(basis, basis);
    a.iter().zip(basis).map(|(x, y)| x - share * y).collect()
}

/// The part of themselves that rates must fall below to be slowing.
pub(crate) fn slowing(equal_phases: bool) -> f64 {
    if equal_phases { SLOWING } else { SLOWING_BY_TIME }
}

/// Rates that fall, by a test or by far: the mark of something that fills.
pub(crate) fn slows(times: &[f64], values: &[f64], rates: &[f64], significance: f64, slowing: f64) -> bool {
    let Some((early, late)) = halves(rates) else {
        return false;
    };
    let ratio = late / early;
    if early <= 0.0 || ratio >= slowing || dips(rates) || warms_up(times, values, late) {
        return false;
    }
    let strict = if ratio > HALF { (LONG / rates.len() as f64).powi(2).min(1.0) } else { 1.0 };
    let significance = strict * significance;
    let falling: Vec<f64> = rates.iter().map(|rate| -rate).collect();
    let three_in_order = rates.len() == 3 && rates[0] > rates[1] && rates[1] > rates[2];
    ratio < MUCH_SLOWER
        || three_in_order
        || mann_kendall(&falling) <= significance
        || (alternates(rates) && curves_down(times, values) <= significance)
}

/// Rates of a line with independent noise alternate: a reading too high makes one rate too high and the next too
/// low. Then a test on the readings is stronger than one on the rates; otherwise it would be wrong.
fn alternates(rates: &[f64]) -> bool {
    let ranks: Vec<f64> = (0..rates.len()).map(|index| index as f64).collect();
    let ones = vec![1.0; rates.len()];
    let line = without(&ranks, &ones);
    let rest = without(&without(rates, &ones), &line);
    let all = dot(&rest, &rest);
    all > 0.0 && dot(&rest[1..], &rest[..rest.len() - 1]) / all < -0.3
}

/// Mean rates of the first and the second half; the middle one of an odd number belongs to neither.
fn halves(rates: &[f64]) -> Option<(f64, f64)> {
    let half = rates.len() / 2;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / half as f64;
    (rates.len() >= 3).then(|| (mean(&rates[..half]), mean(&rates[rates.len() - half..])))
}

/// Whether rates fall in their mean and not typically: what is freed once, by a collection say, lowers no median.
fn dips(rates: &[f64]) -> bool {
    let half = rates.len() / 2;
    let (early, late) = (median(&rates[..half]), median(&rates[rates.len() - half..]));
    early > 0.0 && late >= SLOWING * early
}

/// How many more readings until falling rates have fallen to a fifth of what they were, or below the effect.
pub(crate) fn until_settled(rates: &[f64], effect: f64) -> u32 {
    let most = (2 * rates.len()) as f64;
    let Some((early, late)) = halves(rates) else {
        return 1;
    };
    let per_reading = (late / early).powf(2.0 / rates.len() as f64);
    let target = effect.max(early / 5.0);
    let more = (target / late).ln() / per_reading.ln();
    if more.is_finite() { more.ceil().clamp(1.0, most) as u32 } else { 2 }
}

/// Probability that a straight line with noise bends down as much: t-test of the quadratic term.
fn curves_down(times: &[f64], values: &[f64]) -> f64 {
    if values.len() < 5 {
        return 1.0;
    }
    // Orthogonal polynomials on these times: 1, x, then the part of x^2 that the others do not explain.
    let ones = vec![1.0; values.len()];
    let line = without(times, &ones);
    let square: Vec<f64> = line.iter().map(|x| x * x).collect();
    let bend = without(&without(&square, &ones), &line);
    let rest = without(&without(values, &ones), &line);
    let coefficient = dot(&rest, &bend) / dot(&bend, &bend);
    let rest = without(&rest, &bend);
    let dof = values.len() - 3;
    let error = (dot(&rest, &rest) / dof as f64 / dot(&bend, &bend)).sqrt();
    student::upper_tail(-coefficient / error, dof)
}

/// Probability that rates without a drift average as high. Holds for a random walk, whose readings would pass a
/// test for a trend; strict for independent noise.
pub(crate) fn drift(rates: &[f64]) -> f64 {
    if rates.len() < 3 {
        return 1.0;
    }
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (count - 1.0);
    if mean <= 0.0 {
        return 1.0;
    }
    student::upper_tail(mean / (variance / count).sqrt(), rates.len() - 1)
}

/// Rates that make up the recent third: at least two.
pub(crate) fn recent_count(rates: usize) -> usize {
    rates.div_ceil(3).max(2).min(rates)
}
