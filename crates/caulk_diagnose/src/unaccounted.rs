//! Resident memory that rises though nothing rises that is counted.
//!
//! It lies with an allocator of a library's own (polars and pyarrow have one), which does not say what it has in use, or
//! it was set aside long before and is touched now. Counts alone do not tell these apart; what the program keeps more and
//! more of does.

use caulk_core::{Series, State, Verdict, private_bytes};

use crate::judged::Judged;
use crate::process::Process;
use crate::retention;
use crate::units::Scale;

/// Part of the rise that what is known must account for.
const PART: f64 = 0.5;

/// The verdict that tells how fast it rises: on resident memory, where neither bytes in use nor what allocators keep free
/// nor mapped files account for its growth, or on bytes in use, where these grow by what is mapped beside the allocators.
pub(crate) fn rise<'a>(process: &Process<'_>, judged: &'a Judged) -> Option<&'a Verdict> {
    let in_use = judged.in_use()?;
    if judged.is_mapped && in_use.state == State::Grows {
        return Some(in_use);
    }
    let scale = judged.scale?;
    let settled = matches!(in_use.state, State::Flat | State::Plateaus | State::Sawtooth);
    let resident = judged.series(Series::Rss).filter(|verdict| settled && verdict.state == State::Grows)?;
    let of_files = judged.series(Series::MappedFiles).map_or(0.0, |verdict| verdict.bytes_per_unit);
    let known = of_files.max(retention::rate(process, scale)).max(set_aside(process, scale));
    (known < PART * resident.bytes_per_unit).then_some(resident)
}

/// Bytes per unit that may be touched of what was handed out before, and was untouched then for certain: more was handed out
/// than was resident.
fn set_aside(process: &Process<'_>, scale: Scale) -> f64 {
    let mut told = process.of_unit(scale.unit).filter(|boundary| boundary.malloc_bytes > 0);
    let (Some(first), Some(last)) = (told.next(), told.last()) else { return 0.0 };
    let handed_out = first.malloc_bytes + first.small_bytes;
    handed_out.saturating_sub(private_bytes(first)) as f64 / last.index.abs_diff(first.index).max(1) as f64
}
