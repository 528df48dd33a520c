//! Edits that are tried, not believed: which edits to try on a leaking program, whether a run with them has the same
//! output and less growth, and which of them to keep.
//!
//! Reports, texts and outputs in, verdicts out. Starts no program and opens no file: `caulk heal` runs what [`Search`]
//! asks for. Equal input gives equal output.

mod alternatives;
mod candidate;
mod effect;
mod output;
mod search;
mod tokens;

pub use candidate::{EditCandidate, candidates, outside, patched};
pub use effect::{Effect, Measure, Slope, effects};
pub use output::{Compared, NotComparable, Output, OutputDifference, Reference};
pub use search::{EditRefusal, EditVerdict, Search, Trial, expected_runs};
