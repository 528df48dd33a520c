//! Series of memory readings to a verdict, a slope with its interval and a forecast.
//!
//! Readings are baselines: values taken at equal phase offsets (the ends of epochs), so that whatever a phase
//! frees is freed. A verdict needs more than a small p-value, which drifting noise gives too easily: a trend by
//! ranks, a rate that matters, a drift that stands out of the series' own jumps, recent growth, and no sign of
//! slowing. What rose and stopped is a warm-up or a cache; what slows is left open with how much longer to look.
//!
//! Knows numbers only: no bytes, processes or clocks. Equal input gives equal output, and any input gives an answer.

mod certain;
mod counts;
mod judge;
mod options;
mod rank;
mod series;
mod shape;
mod stretches;
mod student;
mod within;

pub use certain::judge_certain;
pub use counts::judge_counts;
pub use judge::{forecast, judge};
pub use options::JudgeOptions;
pub use stretches::Stretches;
pub use within::{Epoch, Within, judge_within};

use caulk_core::State;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// When: number of the epoch, steps or seconds so far. Growth is per one of these.
    pub at: f64,
    /// Bytes, or a count.
    pub value: f64,
}

/// What a series does.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The answer.
    pub state: State,
    /// Growth per unit (Theil-Sen) over the readings that were judged.
    pub slope: f64,
    /// Interval of `slope` at the level asked for; `None` for fewer than three readings.
    pub interval: Option<[f64; 2]>,
    /// Probability that a series without a trend rises as steadily (Mann-Kendall, one-sided).
    pub p_value: f64,
    /// Readings at the start that were left out: warm-up, or the time before growth began.
    pub warmup: usize,
    /// Readings that were judged.
    pub boundaries: usize,
    /// For [`State::Undecided`]: how many more readings are needed, at a guess.
    pub more_needed: Option<u32>,
    /// The last reading.
    pub last: f64,
    /// For people: on what the answer rests.
    pub text: String,
}
