//! Student's t distribution for whole degrees of freedom.

/// Probability that a t variable exceeds `t`.
///
/// # Source
/// Abramowitz and Stegun, 26.7.3 and 26.7.4: finite sums in the angle `atan(t / sqrt(dof))`.
pub(crate) fn upper_tail(t: f64, dof: usize) -> f64 {
    if dof == 0 || t.is_nan() {
        return 1.0;
    }
    let angle = (t.abs() / (dof as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = dof % 2 == 1;
    let (first, terms) = if odd { (cos, (dof - 1) / 2) } else { (1.0, dof / 2) };
    let mut term = first;
    let mut sum = 0.0;
    for index in 1..=terms {
        sum += term;
        let k = 2.0 * index as f64;
        term *= cos * cos * if odd { k / (k + 1.0) } else { (k - 1.0) / k };
    }
    let within = if odd { (angle + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum };
    let tail = ((1.0 - within) / 2.0).clamp(0.0, 0.5);
    if t > 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(t: f64, dof: usize, tail: f64) {
        assert!((upper_tail(t, dof) - tail).abs() < 2e-4, "{t} {dof}: {}", upper_tail(t, dof));
    }

    #[test]
    fn agrees_with_printed_tables() {
        check(6.314, 1, 0.05);
        check(2.920, 2, 0.05);
        check(2.353, 3, 0.05);
        check(3.182, 3, 0.025);
        check(2.015, 5, 0.05);
        check(1.943, 6, 0.05);
        check(2.764, 10, 0.01);
        check(1.984, 100, 0.025);
        check(0.0, 7, 0.5);
        check(-1.943, 6, 0.95);
        check(f64::INFINITY, 4, 0.0);
    }
}
