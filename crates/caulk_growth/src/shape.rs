//! The shape of a series by its rates: where they change level, whether they fall, whether they still hold.

use crate::rank::{mann_kendall, median, spread_about_median};
use crate::student;

/// Rates that fall by less than this over the series may belong to a steady leak.
const SLOWING: f64 = 0.88;
/// Rates that fall by more than this are slowing whatever the noise.
const MUCH_SLOWER: f64 = 0.4;
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
        rest <= 0.5 * whole && step > noise.max(effect) && step >= 0.5 * before.abs().max(after.abs());
    clear.then_some(Change { at, before, after })
}

/// Whether a bend at one reading describes readings far better than a smooth approach to a level does. Without
/// this, the fast beginning of something that fills passes for a warm-up, and its slow end for a leak.
pub(crate) fn bends_rather_than_fills(times: &[f64], values: &[f64], at: usize) -> bool {
    let bend: Vec<f64> = times.iter().map(|time| (time - times[at]).max(0.0)).collect();
    let bent = residual(values, &[times, &bend]);
    let span = times[times.len() - 1] - times[0];
    let filled = (0..24).map(|step| {
        let constant = 0.3 * (span * 10.0).powf(f64::from(step) / 23.0);
        let approach: Vec<f64> = times.iter().map(|time| (-(time - times[0]) / constant).exp()).collect();
        residual(values, &[&approach])
    });
    bent < 0.3 * filled.fold(f64::MAX, f64::min)
}

/// Sum of squares that a constant and these shapes leave unexplained.
fn residual(values: &[f64], shapes: &[&[f64]]) -> f64 {
    let ones = vec![1.0; values.len()];
    let mut bases: Vec<Vec<f64>> = Vec::new();
    for shape in std::iter::once(ones.as_slice()).chain(shapes.iter().copied()) {
        let rest = bases.iter().fold(shape.to_vec(), |rest, basis| without(&rest, basis));
        if dot(&rest, &rest) > 1e-12 * dot(shape, shape) {
            bases.push(rest);
        }
    }
    let rest = bases.iter().fold(values.to_vec(), |rest, basis| without(&rest, basis));
    dot(&rest, &rest)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The part of `a` that `basis` does not explain.
fn without(a: &[f64], basis: &[f64]) -> Vec<f64> {
    let share = dot(a, basis) / dot(basis, basis);
    a.iter().zip(basis).map(|(x, y)| x - share * y).collect()
}

/// Rates that fall, by a test or by far: the mark of something that fills.
pub(crate) fn slows(times: &[f64], values: &[f64], rates: &[f64], significance: f64) -> bool {
    let Some((early, late)) = halves(rates) else {
        return false;
    };
    let ratio = late / early;
    if early <= 0.0 || ratio >= SLOWING {
        return false;
    }
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
