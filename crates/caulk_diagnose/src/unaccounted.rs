//! Resident memory that rises though nothing rises that is counted.
//!
//! It lies with an allocator of a library's own (polars and pyarrow have one), which does not say what it has in use, or
//! it was set aside long before and is touched now. Counts alone do not tell these apart; what the program keeps more and
//! more of does.

use caulk_core::{Series, State, Verdict};

use crate::process::Process;
use crate::retention;
use crate::verdicts::Judged;

/// Part of the rise that what is known must account for.
const PART: f64 = 0.5;

/// The verdict on resident memory, where it grows and neither bytes in use nor what allocators keep free nor mapped files
/// account for it.
pub(crate) fn resident<'a>(process: &Process<'_>, judged: &'a Judged) -> Option<&'a Verdict> {
    let settled = matches!(judged.in_use_state()?, State::Flat | State::Plateaus | State::Sawtooth);
    let resident = judged.series(Series::Rss).filter(|verdict| settled && verdict.state == State::Grows)?;
    let of_files = judged.series(Series::MappedFiles).map_or(0.0, |verdict| verdict.bytes_per_unit);
    let kept = retention::rate(process, judged.scale?);
    (of_files.max(kept) < PART * resident.bytes_per_unit).then_some(resident)
}
