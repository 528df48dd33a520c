//! What several things that grow account for together.

use super::item::{Suspect, same_line};
use crate::heap;
use crate::judged::Judged;
use crate::process::Process;

/// Bytes per unit that these suspects account for: what their elements are known to keep, or what their lines allocate that
/// stays (an image that is drawn keeps a copy beside what it was made from), whichever is more.
pub(super) fn accounted_for(process: &Process<'_>, judged: &Judged, known: &[&Suspect<'_>]) -> f64 {
    let lines = judged.scale.map_or_else(Vec::new, |scale| heap::of_process(process, scale));
    let allocated = |suspect: &Suspect<'_>| {
        let located = suspect.located.as_ref();
        let here = |line: &&heap::Line<'_>| {
            located.is_some_and(|located| {
                line.grows() && located.path == line.frame.file && located.spot.covers(line.frame.line)
            })
        };
        lines.iter().filter(here).map(|line| line.judgement.slope).sum::<f64>()
    };
    let first = |at: usize| !known[..at].iter().any(|before| same_line(before, known[at]));
    let of_line = |at: usize| {
        let kept = known.iter().filter(|other| same_line(other, known[at]));
        kept.map(|other| other.rate.bytes_per_unit).sum::<f64>().max(allocated(known[at]))
    };
    (0..known.len()).filter(|at| first(*at)).map(of_line).sum()
}
