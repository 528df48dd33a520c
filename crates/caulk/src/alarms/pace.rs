//! How long a process's steps take, and whether the newest take far longer than usual.
//!
//! Told by what lies between boundaries: steps within an epoch, which are looked at less often the longer a program runs, and
//! whole epochs.

use caulk_core::wire::{Boundary, Unit};

/// Readings that tell what is usual; of longer runs the newest.
const USUAL: usize = 50;
/// Seconds that steps must have been slow for: longer than caulk itself ever holds a program up, looking at its heap.
const LASTING: f64 = 2.0;

/// Steps that have become slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slow {
    /// Time of a step now.
    pub(crate) seconds: f64,
    /// In times of what was usual.
    pub(crate) factor: f64,
}

/// The pace of one process.
#[derive(Debug)]
pub(crate) struct Pace {
    within: Series,
    epochs: Series,
}

impl Default for Pace {
    fn default() -> Self {
        // One slow step is a checkpoint, one slow epoch a validation that does not come with each.
        Self { within: Series::new(10, 3), epochs: Series::new(3, 2) }
    }
}

impl Pace {
    /// Takes in a boundary; how slow steps are against before, as soon as that is known.
    pub(crate) fn step(&mut self, boundary: &Boundary) -> Option<Slow> {
        let at = (boundary.time_ns, boundary.steps);
        match boundary.unit {
            Unit::Steps => self.within.reading(at),
            Unit::Epoch => {
                // Between the last step of one epoch and the first of the next lies a validation.
                self.within.last = None;
                self.epochs.reading(at)
            }
            Unit::Seconds => None,
        }
    }
}

/// Seconds per step from one boundary to the next.
#[derive(Debug)]
struct Series {
    /// Fewer readings tell nothing of what is usual.
    fewest: usize,
    /// So many of the newest must all be slow.
    newest: usize,
    /// Time and steps of the last boundary.
    last: Option<(u64, u64)>,
    /// Oldest first.
    readings: Vec<Reading>,
}

/// What lies between two boundaries, in seconds.
#[derive(Debug, Clone, Copy)]
struct Reading {
    per_step: f64,
    lasted: f64,
}

impl Series {
    fn new(fewest: usize, newest: usize) -> Self {
        Self { fewest, newest, last: None, readings: Vec::new() }
    }

    fn reading(&mut self, (time, steps): (u64, u64)) -> Option<Slow> {
        let (before, made) = self.last.replace((time, steps))?;
        let made = steps.checked_sub(made).filter(|made| *made > 0)?;
        let lasted = time.saturating_sub(before) as f64 / 1e9;
        self.readings.push(Reading { per_step: lasted / made as f64, lasted });
        let surplus = self.readings.len().saturating_sub(2 * USUAL);
        self.readings.drain(..surplus);
        self.judge()
    }

    fn judge(&self) -> Option<Slow> {
        let lasted = |from: &usize| self.readings[*from..].iter().map(|reading| reading.lasted).sum::<f64>();
        let mut from = (0..=self.readings.len().checked_sub(self.newest)?).rev();
        let (usual, newest) = self.readings.split_at(from.find(|from| lasted(from) >= LASTING)?);
        if usual.len() < self.fewest {
            return None;
        }
        let usual = usual[usual.len().saturating_sub(USUAL)..].iter();
        let mut sorted: Vec<f64> = usual.map(|reading| reading.per_step).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let before = sorted[sorted.len() / 2];
        let seconds = newest.iter().map(|reading| reading.per_step).reduce(f64::min)?;
        (before > 0.0).then(|| Slow { seconds, factor: seconds / before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The highest factor while steps take so many milliseconds each; 0 is the end of an epoch and ten seconds of validation.
    fn check(milliseconds: &[u64], expected: f64) {
        let (mut pace, mut now, mut steps, mut highest) = (Pace::default(), 0, 0, 0.0_f64);
        for took in milliseconds {
            now += if *took == 0 { 10_000 } else { *took } * 1_000_000;
            steps += u64::from(*took > 0);
            let unit = if *took == 0 { Unit::Epoch } else { Unit::Steps };
            let found = pace.step(&Boundary { unit, time_ns: now, steps, ..Boundary::default() });
            highest = highest.max(found.map_or(0.0, |slow| slow.factor));
        }
        assert!((highest - expected).abs() < 1e-9, "{highest}");
    }

    #[test]
    fn steps_that_stay_slow() {
        check(&[[100; 40].as_slice(), &[400; 5]].concat(), 4.0);
        check(&[[1000; 20].as_slice(), &[4000; 2], &[1000; 5]].concat(), 1.0);
        check(&[100, 100, 1000, 1000, 1000], 0.0);
    }

    #[test]
    fn pauses_in_a_row_are_no_slow_steps() {
        check(&[[25; 200].as_slice(), &[300, 200, 400], &[25; 200]].concat(), 1.0);
    }

    #[test]
    fn a_validation_between_two_epochs_is_no_slow_step() {
        check(&[[100, 100, 100, 100, 0]; 20].concat(), 1.0);
    }

    #[test]
    fn epochs_tell_where_steps_are_looked_at_no_more() {
        let last = |ends: &[u64]| {
            let mut pace = Pace::default();
            let found = ends.iter().zip(0..).map(|(second, epoch)| {
                let time_ns = second * 1_000_000_000;
                pace.step(&Boundary { unit: Unit::Epoch, time_ns, steps: epoch * 100, ..Boundary::default() })
            });
            found.last().flatten()
        };
        assert_eq!(last(&[0, 10, 20, 30, 40, 90, 140]), Some(Slow { seconds: 0.5, factor: 5.0 }));
        let validated = [0, 10, 20, 30, 80, 90, 100, 110, 160];
        assert_eq!(
            last(&validated),
            Some(Slow { seconds: 0.1, factor: 1.0 }),
            "a validation every fourth epoch"
        );
    }
}
