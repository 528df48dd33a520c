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
    let rest = cost(at);
    let noise = 3.0 * rest / rates.len() as f64;
    (rest <= 0.5 * whole && (before - after).abs() > noise.max(effect)).then_some(Change {
        at,
        before,
        after,
    })
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
        || curves_down(times, values) <= significance
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
    let count = values.len() as f64;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let less = |a: &[f64], share: f64, b: &[f64]| -> Vec<f64> {
        a.iter().zip(b).map(|(x, y)| x - share * y).collect()
    };
    let ones = vec![1.0; values.len()];
    let line = less(times, dot(times, &ones) / count, &ones);
    let square: Vec<f64> = line.iter().map(|x| x * x).collect();
    let square = less(&square, dot(&square, &ones) / count, &ones);
    let bend = less(&square, dot(&square, &line) / dot(&line, &line), &line);
    let mut rest = values.to_vec();
    for basis in [&ones, &line] {
        rest = less(&rest, dot(&rest, basis) / dot(basis, basis), basis);
    }
    let coefficient = dot(&rest, &bend) / dot(&bend, &bend);
    let rest = less(&rest, coefficient, &bend);
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
