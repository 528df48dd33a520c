//! Round values for the marks of an axis.

/// Seconds between two marks.
const TIMES: [f64; 22] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0,
    7200.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0,
];

/// At most about `count` marks of a time axis that ends at `end_s`.
pub(crate) fn times(end_s: f64, count: f64) -> Vec<f64> {
    let step = TIMES.into_iter().find(|step| end_s / step <= count);
    let step = step.unwrap_or_else(|| (end_s / count / 86_400.0).ceil().max(1.0) * 86_400.0);
    marks(end_s, step)
}

/// At most about `count` marks of an axis of bytes, at binary sizes; the axis ends at or above `most`.
pub(crate) fn sizes(most: f64, count: f64) -> Vec<f64> {
    let most = most.max(1.0);
    let unit = 1024_f64.powi((most.log2() / 10.0).floor() as i32);
    let rough = (most / unit / count).max(0.001);
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| rough <= *step);
    let step = step.unwrap_or(10.0 * power) * unit;
    let mut all = marks(most, step);
    if all.last().is_none_or(|last| *last < most) {
        all.push(all.len() as f64 * step);
    }
    all
}

fn marks(end: f64, step: f64) -> Vec<f64> {
    let count = if end.is_finite() && step > 0.0 { (end / step + 1e-9) as usize } else { 0 };
    (0..=count.min(50)).map(|index| index as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(times(130.0, 6.0), [0.0, 30.0, 60.0, 90.0, 120.0]);
        assert_eq!(times(604_800.0, 7.0).len(), 8);
        assert_eq!(times(0.0, 6.0), [0.0]);
        let megabyte = f64::from(1 << 20);
        assert_eq!(sizes(750.0 * megabyte, 5.0), [0.0, 200.0, 400.0, 600.0, 800.0].map(|mb| mb * megabyte));
        assert_eq!(sizes(0.0, 5.0).last(), Some(&1.0));
        assert!(sizes(1e15, 5.0).len() < 8);
    }
}
