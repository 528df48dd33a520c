//! What fills up: a container that holds no more than so many elements grows until it does, and then no more.

use caulk_core::wire::Contents;
use caulk_core::{Series, State};

use super::Suspect;
use crate::growth::Rate;
use crate::place::Located;
use crate::verdicts::Judged;

/// Elements beyond a bound that was read from source, as a part of it, from which on it evidently does not hold.
const BEYOND: f64 = 1.1;
/// Part of the growth of the process that what fills up must make up to leave open whether the rest is any.
const MOST: f64 = 0.5;
/// Boundaries at which a series must have stood still before it is said to.
const STILL: f64 = 4.0;

/// The most elements that a container holds, as the container itself says or as source does that takes elements out.
pub(super) fn most(contents: Option<&Contents>, located: Option<&Located>, rate: &Rate) -> Option<u64> {
    let told = contents.and_then(|look| look.traits.iter().find_map(|fact| fact.strip_prefix("capacity:")));
    let told = told.and_then(|number| number.parse().ok());
    told.or_else(|| {
        let bounds = located?.facts.bounds.iter().filter(|bound| bound.called);
        let most = bounds.filter_map(|bound| bound.most).max()?;
        (rate.elements as f64 <= BEYOND * most as f64).then_some(most)
    })
}

/// Is it as full as it gets?
pub(super) fn is_full(most: u64, rate: &Rate) -> bool {
    rate.elements >= most
}

impl Suspect<'_> {
    /// Units until it is full; `None` where nothing bounds it, or memory ends before.
    pub(super) fn units_to_fill(&self, judged: &Judged) -> Option<f64> {
        let rate = &self.rate;
        let units = self.fills?.saturating_sub(rate.elements) as f64 / rate.elements_per_unit;
        let left =
            judged.series(self.series).and_then(|verdict| Some(verdict.limit?.bytes as f64 - verdict.last));
        (units.is_finite() && left.is_none_or(|left| units * rate.bytes_per_unit < left)).then_some(units)
    }

    /// Bytes that it keeps once it is full.
    pub(super) fn bytes_when_full(&self) -> Option<f64> {
        let rate = &self.rate;
        let per_element = rate.bytes_per_unit / rate.elements_per_unit;
        Some(self.fills? as f64 * per_element).filter(|bytes| bytes.is_finite())
    }
}

/// Growth per unit by what fills up, and for how long it goes on, in units.
pub(crate) fn filling(judged: &Judged, suspects: &[Suspect<'_>]) -> Option<Filling> {
    let filling = suspects.iter().filter_map(|suspect| {
        let units = suspect.units_to_fill(judged)?;
        (suspect.series == Series::InUse).then_some((suspect.rate.bytes_per_unit, units))
    });
    let sum = |sum: Filling, (bytes, units): (f64, f64)| Filling {
        bytes: sum.bytes + bytes,
        units: sum.units.max(units),
    };
    let found = filling.fold(Filling { bytes: 0.0, units: 0.0 }, sum);
    (found.bytes > 0.0).then_some(found)
}

/// What all that fills up comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling {
    /// Bytes per unit.
    pub(crate) bytes: f64,
    /// Units until the last of it is full.
    pub(crate) units: f64,
}

impl Filling {
    /// Leaves open whether memory grows, where nothing else was found that does; else what fills up is no part of how long
    /// memory lasts.
    pub(crate) fn tell(self, judged: &mut Judged, leaks: bool) {
        let Some(in_use) = judged.in_use().filter(|verdict| verdict.state == State::Grows) else { return };
        let share = (self.bytes / in_use.bytes_per_unit).min(1.0);
        if leaks || share < MOST {
            judged.slow_down(1.0 - share);
            return;
        }
        let more = self.units / in_use.boundary_units + STILL;
        judged.postpone(
            more.min(f64::from(u32::MAX)).ceil() as u32,
            "rises by what fills up to its bound and stays there",
        );
    }
}
