//! Statistics on ranks: they ask for no distribution, and one wild reading does not move them.

/// Readings up to which the p-value is exact.
const EXACT_LIMIT: usize = 64;

/// Middle value; 0 for none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Sum of absolute distances from the median.
pub(crate) fn spread_about_median(values: &[f64]) -> f64 {
    let middle = median(values);
    values.iter().map(|value| (value - middle).abs()).sum()
}

/// Mann-Kendall: probability that exchangeable readings rise as steadily as these, one-sided. Exact, ties
/// included, up to 64 readings; a normal approximation with continuity correction beyond.
pub(crate) fn mann_kendall(values: &[f64]) -> f64 {
    let score = kendall_score(values);
    let ties = tie_groups(values);
    if values.len() <= EXACT_LIMIT { exact_p(score, &ties) } else { normal_p(score, values.len(), &ties) }
}

/// Pairs that rise minus pairs that fall.
fn kendall_score(values: &[f64]) -> i64 {
    let pair = |a: f64, b: f64| i64::from(b > a) - i64::from(b < a);
    let rises = |(index, &a): (usize, &f64)| values[index + 1..].iter().map(|&b| pair(a, b)).sum::<i64>();
    values.iter().enumerate().map(rises).sum()
}

/// Sizes of the groups of equal readings.
fn tie_groups(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(<[f64]>::len).collect()
}

/// Over all arrangements of a multiset, inversions are distributed by the q-multinomial coefficient; the score is
/// the comparable pairs minus twice the inversions.
fn exact_p(score: i64, ties: &[usize]) -> f64 {
    let mut inversions = vec![1.0];
    let mut placed = 0;
    for &group in ties {
        inversions = product(&inversions, &gaussian_binomial(placed, group));
        placed += group;
    }
    let pairs = inversions.len() as i64 - 1;
    let most = (pairs - score).div_euclid(2);
    inversions.iter().take((most + 1).max(0) as usize).sum::<f64>().min(1.0)
}

/// Distribution of the inversions that a group of `group` equal readings makes with `placed` smaller ones.
fn gaussian_binomial(placed: usize, group: usize) -> Vec<f64> {
    // Row by row of Pascal's triangle, [a, b] = [a - 1, b] + q^a [a, b - 1], as shares so that nothing overflows:
    // a random arrangement of a + b ends with one of the `b` with probability b / (a + b).
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; group + 1];
    for a in 1..=placed {
        for b in 1..=group {
            let ends_with_group = b as f64 / (a + b) as f64;
            let mut next = vec![0.0; a * b + 1];
            for (index, share) in row[b - 1].iter().enumerate() {
                next[index] += share * ends_with_group;
            }
            // An `a` at the end stands behind all `b`: one inversion with each.
            for (index, share) in row[b].iter().enumerate() {
                next[index + b] += share * (1.0 - ends_with_group);
            }
            row[b] = next;
        }
    }
    row.swap_remove(group)
}

fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += x * y;
        }
    }
    out
}

fn normal_p(score: i64, length: usize, ties: &[usize]) -> f64 {
    let term = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let variance = (term(length) - ties.iter().map(|&group| term(group)).sum::<f64>()) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    normal_upper_tail((score as f64 - (score.signum() as f64)) / variance.sqrt())
}

/// Probability that a standard normal variable exceeds `z` (error below 1e-7).
///
/// # Source
/// Abramowitz and Stegun, 26.2.17.
fn normal_upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * poly;
    if z > 0.0 { tail } else { 1.0 - tail }
}

/// Theil-Sen: the median of the slopes of all pairs, with Sen's interval.
pub(crate) fn theil_sen(times: &[f64], values: &[f64], level: f64) -> (f64, Option<[f64; 2]>) {
    let mut slopes = Vec::with_capacity(values.len() * values.len() / 2);
    for j in 1..values.len() {
        for i in 0..j {
            slopes.push((values[j] - values[i]) / (times[j] - times[i]));
        }
    }
    slopes.sort_by(f64::total_cmp);
    let interval = (values.len() >= 3).then(|| {
        let cut = interval_cut(values, level).min((slopes.len() - 1) / 2);
        [slopes[cut], slopes[slopes.len() - 1 - cut]]
    });
    (median_of_sorted(&slopes), interval)
}

/// How many slopes at each end lie outside the interval: as many as keep the coverage at `level` or above.
fn interval_cut(values: &[f64], level: f64) -> usize {
    let ties = tie_groups(values);
    let pairs = (values.len() * (values.len() - 1) / 2) as i64;
    let tail = (1.0 - level) / 2.0;
    let p = |score: i64| {
        if values.len() <= EXACT_LIMIT { exact_p(score, &ties) } else { normal_p(score, values.len(), &ties) }
    };
    // Smallest score that is rarer than the tail; binary search, since p falls with the score.
    let (mut common, mut rare) = (0, pairs + 1);
    while rare - common > 1 {
        let middle = i64::midpoint(common, rare);
        if p(middle) <= tail { rare = middle } else { common = middle }
    }
    usize::try_from((pairs - rare) / 2).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], p: f64) {
        let got = mann_kendall(values);
        assert!((got - p).abs() < 1e-6, "{values:?}: {got}, expected {p}");
    }

    #[test]
    fn p_values_are_shares_of_arrangements() {
        check(&[1.0, 2.0, 3.0, 4.0], 1.0 / 24.0);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], 1.0 / 120.0);
        check(&[1.0, 3.0, 2.0, 4.0, 5.0], 5.0 / 120.0);
        check(&[5.0, 4.0, 3.0, 2.0, 1.0], 1.0);
    }

    #[test]
    fn ties_leave_fewer_arrangements() {
        check(&[0.0, 0.0, 1.0, 1.0, 2.0], 1.0 / 30.0);
        check(&[0.0, 0.0, 0.0, 1.0], 1.0 / 4.0);
        check(&[1.0; 6], 1.0);
        check(&[], 1.0);
    }

    #[test]
    fn exact_and_normal_agree_where_they_meet() {
        let values: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 61) + f64::from(i) * 0.4).collect();
        let ties = tie_groups(&values);
        let score = kendall_score(&values);
        assert!((exact_p(score, &ties) - normal_p(score, values.len(), &ties)).abs() < 1e-3);
    }

    #[test]
    fn the_slope_ignores_one_wild_reading() {
        let times: Vec<f64> = (0..8).map(f64::from).collect();
        let mut values: Vec<f64> = times.iter().map(|t| 3.0 * t).collect();
        values[3] = 1e9;
        let (slope, interval) = theil_sen(&times, &values, 0.95);
        let [low, high] = interval.expect("eight readings");
        assert!((slope - 3.0).abs() < 1e-9 && low <= 3.0 && high >= 3.0);
    }
}
