//! One quantity over the repeats of one side: median and interval.

use serde::Serialize;

use crate::Quantity;

/// Repeats from which their spread is an interval.
const FEWEST: usize = 3;

/// Median and interval of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianOfRepeats {
    /// Median of the runs.
    pub median: f64,
    /// From the lowest to the highest run, with the interval of each; `None` if neither is known.
    pub interval: Option<[f64; 2]>,
    /// Runs that have it.
    pub runs: usize,
}

impl MedianOfRepeats {
    /// Of these runs; `None` if none has it.
    pub fn of(quantities: impl IntoIterator<Item = Quantity>) -> Option<Self> {
        let all: Vec<Quantity> = quantities.into_iter().collect();
        let mut values: Vec<f64> = all.iter().map(|quantity| quantity.value).collect();
        values.sort_by(f64::total_cmp);
        let runs = values.len();
        let upper = *values.get(runs / 2)?;
        let median = if runs % 2 == 1 { upper } else { f64::midpoint(values[runs / 2 - 1], upper) };
        let known = runs >= FEWEST || all.iter().all(|quantity| quantity.interval.is_some());
        let bounds = all.iter().map(|quantity| quantity.interval.unwrap_or([quantity.value; 2]));
        let interval = bounds.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]).filter(|_| known);
        Some(Self { median, interval, runs })
    }

    /// Of a quantity that is 0 in these runs, such as the growth of a container that was not found.
    pub const fn none(runs: usize) -> Self {
        Self { median: 0.0, interval: Some([0.0, 0.0]), runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[(f64, Option<[f64; 2]>)], median: f64, interval: Option<[f64; 2]>) {
        let quantities =
            values.iter().map(|(value, interval)| Quantity { value: *value, interval: *interval });
        let measured = MedianOfRepeats::of(quantities).expect("runs");
        assert_eq!((measured.median, measured.interval), (median, interval));
    }

    #[test]
    fn one_run_has_an_interval_only_of_its_own() {
        check(&[(4.0, None)], 4.0, None);
        check(&[(4.0, Some([3.0, 5.0]))], 4.0, Some([3.0, 5.0]));
        assert_eq!(MedianOfRepeats::of([]), None);
    }

    #[test]
    fn repeats_spread() {
        check(&[(4.0, None), (6.0, None)], 5.0, None);
        check(&[(4.0, None), (9.0, None), (6.0, None)], 6.0, Some([4.0, 9.0]));
        check(&[(4.0, Some([1.0, 5.0])), (6.0, Some([5.5, 7.0]))], 5.0, Some([1.0, 7.0]));
    }
}
