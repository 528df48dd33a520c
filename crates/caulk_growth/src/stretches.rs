//! Readings taken while work goes on, at whatever distances, brought to equal stretches.
//!
//! Epochs end where whatever they made is freed. Between steps, and between seconds, much is alive that is freed soon,
//! and readings become rarer as a run gets longer. So the lowest of each of equally long stretches is its baseline.

use crate::{Point, rank};

/// Stretches into which a series is cut: enough for a test, and long ones.
const MOST: f64 = 24.0;

/// Baselines of equally long stretches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stretches {
    /// The lowest reading of each, at its middle.
    pub baselines: Vec<Point>,
    /// How long each is, in the unit of the times.
    pub length: f64,
}

impl Stretches {
    /// Cuts readings, which are in order of time.
    pub fn of(readings: &[Point]) -> Self {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return Self::default() };
        let distances: Vec<f64> = readings.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        // No shorter than what lies between two readings.
        let length = ((last.at - first.at) / MOST).max(rank::median(&distances));
        if length <= 0.0 || !length.is_finite() {
            return Self { baselines: vec![*last], length: 0.0 };
        }
        let number = |reading: &Point| ((reading.at - first.at) / length) as usize;
        let most = (MOST as usize).saturating_sub(1);
        let same = |a: &Point, b: &Point| number(a).min(most) == number(b).min(most);
        let lowest = |stretch: &[Point]| Point {
            at: first.at + (number(&stretch[0]).min(most) as f64 + 0.5) * length,
            value: stretch.iter().map(|reading| reading.value).fold(f64::INFINITY, f64::min),
        };
        Self { baselines: readings.chunk_by(same).map(lowest).collect(), length }
    }

    /// Time from the beginning of the first to the end of the last.
    pub fn span(&self) -> f64 {
        let ends = self.baselines.first().zip(self.baselines.last());
        ends.map_or(0.0, |(first, last)| last.at - first.at + self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        times: impl IntoIterator<Item = u32>,
        value: impl Fn(u32) -> f64,
        count: usize,
        length: f64,
    ) -> Stretches {
        let readings: Vec<Point> =
            times.into_iter().map(|at| Point { at: f64::from(at), value: value(at) }).collect();
        let stretches = Stretches::of(&readings);
        assert_eq!((stretches.baselines.len(), stretches.length), (count, length), "{stretches:?}");
        stretches
    }

    #[test]
    fn few_readings_are_a_stretch_each() {
        let stretches = check(1..=8, f64::from, 8, 1.0);
        assert_eq!(stretches.baselines[3], Point { at: 4.5, value: 4.0 });
        assert!((stretches.span() - 8.0).abs() < 1e-9);
    }

    #[test]
    fn many_become_as_many_as_are_judged() {
        // Ever rarer: every step, then every second one, then every fourth.
        let times = (0..64).chain((64..192).step_by(2)).chain((192..=480).step_by(4));
        check(times, f64::from, 24, 20.0);
    }

    #[test]
    fn what_is_freed_within_a_stretch_does_not_count() {
        let stretches = check(0..=240, |at| f64::from(at % 5), 24, 10.0);
        let highest = stretches.baselines.iter().map(|baseline| baseline.value).fold(0.0, f64::max);
        assert!(highest <= 0.0, "{stretches:?}");
    }

    #[test]
    fn nothing_gives_nothing_and_one_reading_itself() {
        assert_eq!(Stretches::of(&[]), Stretches::default());
        check([3], f64::from, 1, 0.0);
        check([3, 3], f64::from, 1, 0.0);
    }
}
