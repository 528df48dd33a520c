//! An amount that was estimated from samples, with its error.

use serde::{Deserialize, Serialize};

/// Standard deviations on each side of an estimate that hold 95 % of a normal distribution.
const NORMAL_95: f64 = 1.96;

/// Bytes, estimated from a sample of the blocks that they consist of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sampled {
    /// The estimate, in bytes.
    pub bytes: f64,
    /// Its standard deviation, in bytes. Blocks well above the sampling interval are counted exactly.
    pub deviation: f64,
}

impl Sampled {
    /// The middle of a 95 % interval, with the deviation that makes it one.
    pub fn of_interval(bytes: f64, [low, high]: [f64; 2]) -> Self {
        Self { bytes, deviation: (high - bytes).max(bytes - low).max(0.0) / NORMAL_95 }
    }

    /// Half of its 95 % interval, in bytes.
    pub fn margin(self) -> f64 {
        NORMAL_95 * self.deviation
    }

    /// Its 95 % interval.
    pub fn interval(self) -> [f64; 2] {
        [self.bytes - self.margin(), self.bytes + self.margin()]
    }

    /// Is this more than the other, beyond what sampling alone would make of equal amounts in one case of twenty?
    pub fn exceeds(self, other: Self) -> bool {
        self.bytes - other.bytes > NORMAL_95 * self.deviation.hypot(other.deviation)
    }
}

impl std::ops::Add for Sampled {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, deviation: self.deviation.hypot(other.deviation) }
    }
}

impl std::iter::Sum for Sampled {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), |sum, one| sum + one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: [f64; 2], b: [f64; 2], exceeds: bool) {
        let [a, b] = [a, b].map(|[bytes, deviation]| Sampled { bytes, deviation });
        assert_eq!(a.exceeds(b), exceeds, "{a:?} {b:?}");
    }

    #[test]
    fn amounts_closer_than_their_errors_are_not_told_apart() {
        check([110.0, 10.0], [100.0, 10.0], false);
        check([130.0, 10.0], [100.0, 10.0], true);
        check([101.0, 0.0], [100.0, 0.0], true);
        check([100.0, 0.0], [100.0, 0.0], false);
        check([100.0, 0.0], [130.0, 1.0], false);
    }

    #[test]
    fn errors_add_up_as_independent_ones() {
        let sum: Sampled =
            [[1.0, 3.0], [2.0, 4.0]].map(|[bytes, deviation]| Sampled { bytes, deviation }).into_iter().sum();
        assert_eq!(sum, Sampled { bytes: 3.0, deviation: 5.0 });
    }
}
