//! What is asked of a series before it `grows`.

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// What is asked of a series before it `grows`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgeOptions {
    /// Confidence level of the test for a trend and of the interval.
    pub level: f64,
    /// Growth per unit below which nothing is said, in the unit of the values.
    pub minimum_effect: f64,
    /// The same as a share of the level of the series.
    pub relative_effect: f64,
    /// Readings below which the answer is [`State::Undecided`](caulk_core::State::Undecided).
    pub minimum_boundaries: usize,
    /// Readings lie where as much is alive as the last time. What comes back there does not leak; elsewhere it may do so by
    /// chance, and only an interval excludes growth.
    pub equal_phases: bool,
}

impl Default for JudgeOptions {
    /// For bytes at the ends of epochs: 95 %, 256 KiB or 0.05 % per epoch, five epochs.
    fn default() -> Self {
        Self {
            level: 0.95,
            minimum_effect: 256.0 * KIB,
            relative_effect: 0.0005,
            minimum_boundaries: 5,
            equal_phases: true,
        }
    }
}

impl JudgeOptions {
    /// For bytes read within `span` optimizer steps: 1 MiB or 0.2 % over all of them together, and six readings, since
    /// steps begin with what settles.
    ///
    /// A few numbers kept for each step, less than 1 KiB, are no leak until they have become 64 MiB.
    pub fn for_steps(span: f64) -> Self {
        let numbers = KIB.min(64.0 * MIB / span);
        Self { minimum_effect: (MIB / span).max(numbers), ..Self::over(span, MIB, 0.002, 6) }
    }

    /// For bytes read within `span` seconds: 4 MiB or 0.8 % over all of them together, and ten readings, since seconds
    /// begin with imports. They lie in the midst of whatever is going on.
    pub fn for_seconds(span: f64) -> Self {
        Self { equal_phases: false, ..Self::over(span, 4.0 * MIB, 0.008, 10) }
    }

    fn over(span: f64, effect: f64, share: f64, minimum_boundaries: usize) -> Self {
        let (minimum_effect, relative_effect) = (effect / span, share / span);
        Self { minimum_effect, relative_effect, minimum_boundaries, ..Self::default() }
    }
}
