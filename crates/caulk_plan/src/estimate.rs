//! A figure with its interval.

use std::iter::Sum;
use std::ops::{Add, Mul};

use caulk_core::Bytes;
use serde::{Serialize, Serializer};

/// Bytes that are predicted: between `low` and `high`, most likely `likely`.
///
/// Fractions, so that nothing overflows: 2^53 bytes are exact, and more than that fits nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// The least that it can be.
    pub low: f64,
    /// What to expect.
    pub likely: f64,
    /// What to plan with.
    pub high: f64,
}

impl Estimate {
    /// A figure that follows from arithmetic alone.
    pub const fn exact(bytes: f64) -> Self {
        Self { low: bytes, likely: bytes, high: bytes }
    }

    /// A figure with its interval.
    pub const fn between(low: f64, likely: f64, high: f64) -> Self {
        Self { low, likely, high }
    }

    /// The interval of a factor around a figure.
    #[must_use]
    pub fn times(self, low: f64, likely: f64, high: f64) -> Self {
        Self { low: self.low * low, likely: self.likely * likely, high: self.high * high }
    }

    /// The larger of two, bound by bound: what comes one after the other.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            low: self.low.max(other.low),
            likely: self.likely.max(other.likely),
            high: self.high.max(other.high),
        }
    }

    /// What is left of it, bound by bound, and never below 0.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        let left = |a: f64, b: f64| (a - b).max(0.0);
        Self {
            low: left(self.low, other.low),
            likely: left(self.likely, other.likely),
            high: left(self.high, other.high),
        }
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { low: self.low + other.low, likely: self.likely + other.likely, high: self.high + other.high }
    }
}

impl Mul<f64> for Estimate {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        self.times(factor, factor, factor)
    }
}

impl Sum for Estimate {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), Self::add)
    }
}

impl std::fmt::Display for Estimate {
    /// `3.20 GB (2.90 GB to 3.80 GB)`; one figure where there is nothing between.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |bytes: f64| Bytes(bytes as u64).to_string();
        let (low, likely, high) = (text(self.low), text(self.likely), text(self.high));
        f.pad(&if low == high { likely } else { format!("{likely} ({low} to {high})") })
    }
}

impl Serialize for Estimate {
    /// In whole bytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole {
            low: u64,
            likely: u64,
            high: u64,
        }
        Whole { low: self.low as u64, likely: self.likely as u64, high: self.high as u64 }
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up_and_print() {
        let sum: Estimate =
            [Estimate::exact(1024.0), Estimate::between(0.0, 1024.0, 3072.0)].into_iter().sum();
        assert_eq!(sum.to_string(), "2.00 KB (1.00 KB to 4.00 KB)");
        assert_eq!(Estimate::exact(1e300).to_string(), "17179869184 GB");
        assert_eq!(sum.max(Estimate::exact(2048.0)), Estimate::between(2048.0, 2048.0, 4096.0));
    }
}
