//! One row of a comparison, and which way it went.

use serde::Serialize;

use crate::MedianOfRepeats;

/// Which way a quantity went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// Higher in B: the intervals do not touch.
    Higher,
    /// Lower in B.
    Lower,
    /// The same in both.
    Same,
    /// It is not decided.
    Unclear,
}

impl Trend {
    /// A mark for tables.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Higher => "+",
            Self::Lower => "-",
            Self::Same => "=",
            Self::Unclear => "~",
        }
    }
}

/// A quantity on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowChange {
    /// `growth`, `host peak`, `container`, `line`, ...
    pub kind: &'static str,
    /// Of a container or a line: which one.
    pub name: String,
    /// `bytes per epoch`, `bytes`, `seconds`.
    pub unit: String,
    /// In A.
    pub a: Option<MedianOfRepeats>,
    /// In B.
    pub b: Option<MedianOfRepeats>,
    /// Median of B less that of A.
    pub change: Option<f64>,
    /// The least and the most that it may have changed.
    pub interval: Option<[f64; 2]>,
    /// Which way it went.
    pub trend: Trend,
}

impl RowChange {
    pub(crate) fn of(
        kind: &'static str,
        name: String,
        unit: String,
        a: Option<MedianOfRepeats>,
        b: Option<MedianOfRepeats>,
    ) -> Self {
        let both = a.zip(b);
        let interval = both.and_then(|(a, b)| {
            let ([a_low, a_high], [b_low, b_high]) = (a.interval?, b.interval?);
            Some([b_low - a_high, b_high - a_low])
        });
        let trend = match interval {
            Some([0.0, 0.0]) => Trend::Same,
            Some([low, _]) if low > 0.0 => Trend::Higher,
            Some([_, high]) if high < 0.0 => Trend::Lower,
            _ => Trend::Unclear,
        };
        Self { kind, name, unit, a, b, change: both.map(|(a, b)| b.median - a.median), interval, trend }
    }

    /// How much it matters, for the order of rows of a kind.
    pub(crate) fn weight(&self) -> f64 {
        self.change.map_or(0.0, f64::abs)
    }
}
