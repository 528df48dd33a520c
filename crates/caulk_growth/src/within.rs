//! The judgement within epochs: memory that rises with the steps of each and is back where it was at its end.
//!
//! At the ends of epochs nothing of it is left, so series over epochs are level. It decides how much memory a run needs, and
//! with longer epochs or a larger set of data it is what a run dies of. What each epoch begins with (buffers that fill, the
//! first batches, workspaces) rises, too, but soon stops; batches of many sizes rise in some epochs and fall in others.

use crate::rank::{mann_kendall, median};
use crate::{Point, rank};

/// Epochs that must show it.
const FEWEST: usize = 3;
/// Readings within an epoch, its beginning included.
const READINGS: usize = 5;
/// Part of the epochs that must show it.
const MOST: f64 = 0.8;
/// Part of its rise that the second half of an epoch must make up: what fills has risen before.
const SECOND_HALF: f64 = 0.3;
/// Part of its rise that may be left at the end of an epoch.
const LEFT: f64 = 0.3;
/// Part of the usual rise that the least of them must reach: epochs do the same work.
const LEAST: f64 = 0.5;
const SIGNIFICANCE: f64 = 0.05;

/// Readings of one epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Epoch {
    /// From its beginning to its last step.
    pub readings: Vec<Point>,
    /// At its end, when what it made is freed.
    pub end: f64,
}

/// What rises within each epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    /// Epochs that show it.
    pub epochs: usize,
    /// How far it rises from the beginning to the last reading, usually.
    pub rise: f64,
    /// The same per unit of the readings' times.
    pub slope: f64,
}

/// Whether readings rise by at least `effect` within each epoch and fall back at its end; `None` where that is not certain.
pub fn judge_within(epochs: &[Epoch], effect: f64) -> Option<Within> {
    let read: Vec<&Epoch> = epochs.iter().filter(|epoch| epoch.readings.len() >= READINGS).collect();
    let rising: Vec<(f64, f64)> = read.iter().filter_map(|epoch| rise(epoch)).collect();
    let rises: Vec<f64> = rising.iter().map(|(rise, _)| *rise).collect();
    let usual = median(&rises);
    let alike = rises.iter().filter(|rise| **rise >= LEAST * usual).count();
    let shown = alike >= FEWEST && alike as f64 >= MOST * read.len() as f64;
    let slope = median(&rising.iter().map(|(_, slope)| *slope).collect::<Vec<_>>());
    (shown && usual >= effect).then_some(Within { epochs: alike, rise: usual, slope })
}

/// How far an epoch's readings rise, and how fast, if they do with its steps and to its last.
fn rise(epoch: &Epoch) -> Option<(f64, f64)> {
    let values: Vec<f64> = epoch.readings.iter().map(|reading| reading.value).collect();
    let times: Vec<f64> = epoch.readings.iter().map(|reading| reading.at).collect();
    let (first, last) = (values[0], values[values.len() - 1]);
    let rise = last - first;
    let half = f64::midpoint(times[0], times[times.len() - 1]);
    let middle = epoch.readings.iter().rfind(|reading| reading.at <= half)?.value;
    let lasts = last - middle >= SECOND_HALF * rise;
    let falls = epoch.end <= first + LEFT * rise;
    let rises = rise > 0.0 && mann_kendall(&values) <= SIGNIFICANCE;
    (rises && lasts && falls).then(|| (rise, rank::theil_sen(&times, &values, 0.95).0))
}
