//! What fills up: a container that holds no more than so many elements grows until it does, and then no more.

use caulk_core::wire::{ContainerKind, Contents, Trait};
use caulk_core::{LeakClass, Series, State, Verdict};
use caulk_python::BoundKind;

use super::item::Suspect;
use crate::files::Files;
use crate::growth::Rate;
use crate::judged::Judged;
use crate::place::Located;
use crate::process::Process;

/// Times a bound that was read from source from which on it evidently does not hold.
const BEYOND: f64 = 1.1;
/// Times the growth of the process that nothing which goes on in it has: rates are measured apart.
const MOST_OF_ALL: f64 = 1.1;
/// Part of the growth of the process that may be left beside what fills up without being any.
const REST: f64 = 0.25;
/// Boundaries at which a series must have stood still before it is said to.
const STILL: f64 = 4.0;
/// Boundaries that are told to be needed at most.
const MOST_NEEDED: f64 = 1e6;

/// The most elements that a container says itself that it holds.
pub(super) fn capacity(contents: Option<&Contents>) -> Option<u64> {
    contents?.traits.iter().find_map(|fact| match fact {
        Trait::Capacity(most) => Some(*most),
        _ => None,
    })
}

/// The same by source: the limit of a queue, or the length from which on the function that adds elements takes some out.
pub(super) fn bound(kind: ContainerKind, located: Option<&Located>, rate: &Rate) -> Option<u64> {
    let located = located?;
    let holds = |most: &u64| rate.elements as f64 <= BEYOND * *most as f64;
    // The bound of a container is none of its elements'.
    if located.grow.as_ref().is_some_and(|grow| grow.element) {
        return located.facts.most_inside.filter(holds);
    }
    let counts = |kind_of_bound| kind_of_bound != BoundKind::Capacity || kind == ContainerKind::Queue;
    let bounds = located.facts.bounds.iter().filter(|bound| bound.called && counts(bound.kind));
    bounds.filter_map(|bound| bound.most).max().filter(holds)
}

/// The same by the source of the library that grows it: for example the history of an optimizer.
pub(super) fn bound_in_library(
    files: &Files<'_>,
    process: &Process<'_>,
    located: Option<&Located>,
    rate: &Rate,
) -> Option<u64> {
    let most = located?.library.as_ref()?.most(files, process)?;
    (rate.elements as f64 <= BEYOND * most as f64).then_some(most)
}

/// Leaves those alone that memory has no room for, all together, and those whose elements stay when they are taken out:
/// graphs that reach through all steps.
pub(super) fn leave_out(judged: &Judged, suspects: &mut [Suspect<'_>]) {
    for suspect in suspects.iter_mut() {
        let reaches = matches!(suspect.class(), LeakClass::StateNotDetached | LeakClass::GraphRetained);
        // What a GPU has room for is another matter.
        if reaches || suspect.series != Series::InUse {
            suspect.fills = None;
        }
    }
    let rest = |suspect: &Suspect<'_>| Some(suspect.units_to_fill()? * suspect.rate.bytes_per_unit);
    let rest: f64 = suspects.iter().filter_map(rest).sum();
    if judged.room.is_some_and(|room| rest >= room) {
        for suspect in suspects {
            suspect.fills = None;
        }
    }
}

impl Suspect<'_> {
    /// Units until it is full; `None` where nothing bounds it.
    pub(super) fn units_to_fill(&self) -> Option<f64> {
        let rate = &self.rate;
        let units = self.fills?.saturating_sub(rate.elements) as f64 / rate.elements_per_unit;
        units.is_finite().then_some(units)
    }

    /// Bytes that it keeps once it is full, where they are known.
    pub(super) fn bytes_when_full(&self) -> Option<f64> {
        let rate = &self.rate;
        let per_element = rate.bytes_per_unit / rate.elements_per_unit;
        Some(self.fills? as f64 * per_element).filter(|bytes| bytes.is_finite() && *bytes > 0.0)
    }
}

/// Growth per unit by what fills up. What gained more than the process does was full before.
pub(super) fn rate<'a, 'b>(in_use: &Verdict, suspects: impl Iterator<Item = &'b Suspect<'a>>) -> f64
where
    'a: 'b,
{
    let rates = suspects
        .filter(|suspect| suspect.units_to_fill().is_some())
        .map(|suspect| suspect.rate.bytes_per_unit);
    let sum: f64 = rates.filter(|rate| *rate <= MOST_OF_ALL * in_use.bytes_per_unit).sum();
    sum.clamp(0.0, in_use.bytes_per_unit.max(0.0))
}

/// Growth by what fills up, and for how long it goes on.
pub(crate) fn filling(judged: &Judged, suspects: &[Suspect<'_>]) -> Option<Filling> {
    let in_use = judged.in_use().filter(|verdict| verdict.state == State::Grows)?;
    let bytes = rate(in_use, suspects.iter());
    let units = suspects.iter().filter_map(Suspect::units_to_fill).fold(0.0, f64::max);
    (bytes > 0.0).then_some(Filling { bytes, units })
}

/// What all that fills up comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling {
    /// Bytes per unit.
    pub(crate) bytes: f64,
    /// Units until the last of it is full.
    units: f64,
}

impl Filling {
    /// Leaves open whether memory grows, where next to nothing else does; else what fills up is no part of how long memory
    /// lasts. `leaks`: something was found that does.
    pub(crate) fn tell(self, judged: &mut Judged, leaks: bool) {
        let Some(in_use) = judged.in_use().filter(|verdict| verdict.state == State::Grows) else { return };
        let rest = in_use.bytes_per_unit - self.bytes;
        if leaks || rest >= judged.least.max(REST * in_use.bytes_per_unit) {
            judged.slow_down(rest / in_use.bytes_per_unit);
            return;
        }
        let more = (self.units / in_use.boundary_units + STILL).min(MOST_NEEDED);
        judged.postpone(more.ceil() as u32, "rises by what fills up to its bound and stays there");
        judged.fills = true;
    }
}
