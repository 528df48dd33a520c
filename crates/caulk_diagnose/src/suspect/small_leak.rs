//! What is small and certain: bytes per unit that the growth of the process hides, but that a run of days does not.
//!
//! Decides how loud it is by what it comes to in a day: how long a training is planned for is not known.

use caulk_core::wire::Unit;
use caulk_core::{LeakClass, State};

use super::item::Suspect;
use crate::claim::{Standing, Witness};
use crate::judged::Judged;
use crate::units::Scale;

/// Bytes per epoch and per step from which a leak counts, if the run shows it with certainty.
const PER_EPOCH: f64 = 100e3;
const PER_STEP: f64 = 1e3;
/// Seconds after which it is weighed.
const DAY: f64 = 86_400.0;
/// What must come together until then: so much, or this part of the memory that is left.
const MUCH: f64 = 1_073_741_824.0;
const PART_OF_ROOM: f64 = 0.05;
/// Part of the growth of the process that is what to look at, whatever it consists of.
const LEADING: f64 = 0.75;

/// Bytes gained over the run up to which a small history of plain values is as likely kept on purpose: for a plot, a table or a
/// contact sheet at the end.
const MEANT: f64 = 4.0 * 1024.0 * 1024.0;

/// Standing of a thing that grows by so many bytes per unit, which is less than what the process's growth is judged by.
pub(super) fn standing(suspect: &Suspect<'_>, bytes: f64, judged: &Judged) -> Standing {
    let is_history = suspect.class() == LeakClass::UnboundedHistory;
    if judged.is_small() && is_history && gained(bytes, suspect) < MEANT {
        return Standing::Light;
    }
    let counts = |scale: &Scale| counts(bytes, *scale) || (judged.is_small() && bytes >= judged.least);
    let Some(scale) = judged.scale.filter(counts) else { return Standing::Light };
    let sure = suspect.witness != Witness::Signs && !suspect.rate.is_late;
    let leads = suspect.witness == Witness::TracedLine && is_most(bytes, suspect, judged);
    // Bytes that grow for certain speak for what is light each, too.
    let certain = sure && (judged.is_small() || suspect.is_heavy() || leads);
    let in_a_day =
        scale.seconds.filter(|seconds| *seconds > 0.0).map_or(0.0, |seconds| bytes / seconds * DAY);
    let much = judged.room.map_or(MUCH, |room| MUCH.min(PART_OF_ROOM * room));
    if certain && in_a_day >= much { Standing::Partial } else { Standing::Light }
}

/// What it has gained over the run: seen to be gained, or all that it holds if one element keeps as much as the next.
fn gained(bytes: f64, suspect: &Suspect<'_>) -> f64 {
    (bytes * suspect.rate.span).max(suspect.rate.kept())
}

/// Is it most of what the process gains?
fn is_most(bytes: f64, suspect: &Suspect<'_>, judged: &Judged) -> bool {
    let grows = judged.series(suspect.series).filter(|verdict| verdict.state == State::Grows);
    grows.is_some_and(|verdict| bytes >= LEADING * verdict.bytes_per_unit)
}

/// Is it so much that it counts, whatever the process as a whole gains?
fn counts(bytes: f64, scale: Scale) -> bool {
    let per_step = |steps: f64| bytes / steps >= PER_STEP;
    match scale.unit {
        Unit::Epoch => bytes >= PER_EPOCH || scale.steps.is_some_and(per_step),
        Unit::Steps => bytes >= PER_STEP,
        Unit::Seconds => scale.steps.is_some_and(per_step),
    }
}
