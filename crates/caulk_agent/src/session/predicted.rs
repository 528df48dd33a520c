//! What a census is taken to cost before there was one.

use std::time::Duration;

use crate::budget::LONGEST_PAUSE;
use crate::census::Depth;

/// CPU time that a census of an unknown heap is taken to cost, per block of pymalloc.
const CENSUS_PER_BLOCK: Duration = Duration::from_nanos(60);

/// What a first census is taken to cost, by the number of pymalloc's blocks. A guess that could not be paid would never be put
/// right, and a census that takes too long gives itself up.
pub(super) fn predicted_cost(depth: Depth, blocks: u64) -> Duration {
    let whole = CENSUS_PER_BLOCK * u32::try_from(blocks).unwrap_or(u32::MAX);
    if depth == Depth::Whole { whole } else { whole.min(LONGEST_PAUSE / 2) }
}
