//! Is a training fit to run for days? What was observed of a run against a checklist: one result per criterion.
//!
//! Values in, values out: [`Observed`] has the verdicts and findings of a run, [`Checklist`] the limits, and [`verify`] gives a
//! [`Verification`]. Rendering is left to `caulk_report`.

mod checklist;
mod classes;
mod criterion;
mod host;
mod leaks;
mod observed;
mod outcome;
mod presence;
mod stable;
mod verification;

pub use checklist::{Checklist, ChecklistError, ChecklistItem};
pub use criterion::Criterion;
pub use host::host_peak;
pub use observed::{MemoryAnswer, Observed};
pub use outcome::{Checked, Grade};
pub use verification::{Verification, verify};
