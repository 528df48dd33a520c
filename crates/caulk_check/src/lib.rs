//! Checking a project: what a linter does around its rules.
//!
//! Texts and settings in, an [`CheckOutcome`] out. Which rules are on, what comments suppress, what a baseline already
//! knows, and which fixes are applied together. Knows no files, terminals or formats.

mod baseline;
mod fix;
mod nearest;
mod outcome;
mod selection;
mod suppress;

pub use baseline::{Baseline, Entry};
pub use fix::{Applied, Fixed, MAX_ROUNDS, Refused, Texts, edited, fix, touch};
pub use nearest::nearest;
pub use outcome::{CheckOutcome, Job, check, outcome};
pub use selection::{Selection, UnknownRule};
