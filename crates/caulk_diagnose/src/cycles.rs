//! Growth that no container accounts for, because objects hold each other in cycles.
//!
//! Two kinds: those that the garbage collector would free if it came by, and those through C++, which it cannot see.

mod collectable;
mod gradients;

use caulk_core::Evidence;

use crate::claim::{Claim, Observed};
use crate::files::Files;
use crate::judged::Judged;
use crate::process::Process;

pub(crate) use collectable::{until_collected, waiting};

/// Is it about cycles that the collector would free?
pub(crate) fn is_collectable(finding: &Claim) -> bool {
    finding.evidence.iter().any(|evidence| matches!(evidence, Evidence::Garbage { .. }))
}

/// The cycles that make a process grow, of whose growth so much is `open`.
pub(crate) fn finding(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    open: f64,
) -> Option<Observed> {
    collectable::finding(files, process, judged, open)
        .or_else(|| gradients::finding(files, process, judged, open))
}
