//! What rises with the steps of each epoch and is freed at its end: the witness that it does.

use caulk_core::wire::{Boundary, Unit};
use caulk_core::{Bytes, State, Verdict};
use caulk_growth::{Epoch, Point, Within, judge_within};

use crate::held::Held;
use crate::process::Process;
use crate::units::Scale;

/// Rise within an epoch that matters: in bytes, and as a part of the level.
const RISE: f64 = 8.0 * 1024.0 * 1024.0;
const SHARE: f64 = 0.02;

/// What the bytes in use do within epochs, at a level; `None` where epochs are not known, or nothing rises in them.
pub(crate) fn witness(process: &Process<'_>, scale: Scale, held: Held, level: f64) -> Option<Within> {
    if scale.unit != Unit::Epoch {
        return None;
    }
    let value = |boundary: &Boundary| held.at(boundary);
    let epoch = |(start, end): (&Boundary, &Boundary)| {
        let begin = Point { at: start.steps as f64, value: value(start)? };
        let steps = inside(process, start, end);
        let point = |step: &Boundary| Some(Point { at: step.steps as f64, value: value(step)? });
        let readings = std::iter::once(begin).chain(steps.filter_map(point)).collect();
        Some(Epoch { readings, end: value(end)? })
    };
    let epochs: Vec<Epoch> = epochs(process).into_iter().filter_map(epoch).collect();
    judge_within(&epochs, RISE.max(SHARE * level))
}

/// Beginnings and ends of whole epochs.
pub(crate) fn epochs<'a>(process: &Process<'a>) -> Vec<(&'a Boundary, &'a Boundary)> {
    let ends: Vec<&Boundary> = process.of_unit(Unit::Epoch).collect();
    ends.windows(2).filter(|pair| pair[1].index == pair[0].index + 1).map(|pair| (pair[0], pair[1])).collect()
}

/// Steps between two boundaries.
pub(crate) fn inside<'a>(
    process: &Process<'a>,
    start: &Boundary,
    end: &Boundary,
) -> impl Iterator<Item = &'a Boundary> {
    let seqs = start.seq + 1..end.seq;
    process.of_unit(Unit::Steps).filter(move |step| seqs.contains(&step.seq))
}

/// The verdict on bytes in use that are level, or too few to tell, at the ends of epochs.
pub(crate) fn tell(verdict: &mut Verdict, within: Within) {
    verdict.state = State::GrowsWithinEpoch;
    verdict.more_needed = None;
    verdict.text = format!(
        "rises by {} a step within each of {} epochs, {} in all, and is back at their ends",
        Bytes::signed(within.slope),
        within.epochs,
        Bytes(within.rise as u64)
    );
}
