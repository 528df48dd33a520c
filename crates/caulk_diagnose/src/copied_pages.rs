//! Pages of files that are mapped privately (`mode="c"`, `ACCESS_COPY`): written to, a page is the process's own, and does not
//! come back when memory is short.
//!
//! The kernel counts such pages as anonymous, and no allocator counts them. So they show as private memory that grows beside
//! mapped files while neither bytes in use nor free blocks account for it.

use caulk_core::wire::Boundary;
use caulk_core::{Series, State, private_bytes};

use crate::judged::Judged;
use crate::process::Process;
use crate::retention;
use crate::unaccounted::set_aside;

/// Part of the growth of private memory that allocators may account for.
const PART: f64 = 0.5;
/// Part of the growth of resident memory that mapped files make up where it is theirs.
const OF_FILES: f64 = 0.1;

/// Private memory at a boundary.
pub(crate) fn value(boundary: &Boundary) -> Option<f64> {
    (boundary.file_bytes > 0).then(|| private_bytes(boundary) as f64)
}

/// Is the growth of private memory that of such pages?
pub(crate) fn are_copied(process: &Process<'_>, judged: &Judged) -> bool {
    let grows = |series| judged.series(series).filter(|verdict| verdict.state == State::Grows);
    let rate = |series| judged.series(series).map_or(0.0, |verdict| verdict.bytes_per_unit);
    let (Some(scale), Some(private), Some(resident)) =
        (judged.scale, grows(Series::PrivatePages), grows(Series::Rss))
    else {
        return false;
    };
    let settled = judged
        .in_use()
        .is_some_and(|verdict| matches!(verdict.state, State::Flat | State::Plateaus | State::Sawtooth));
    let of_files = rate(Series::MappedFiles) >= OF_FILES * resident.bytes_per_unit;
    let known = retention::rate(process, scale).max(set_aside(process, scale)).max(rate(Series::InUse));
    settled
        && of_files
        && private.bytes_per_unit >= judged.least
        && private.interval.is_some_and(|[low, _]| low > 0.0)
        && known < PART * private.bytes_per_unit
}
