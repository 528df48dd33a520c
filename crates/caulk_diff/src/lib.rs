//! Two runs of one program, or two groups of repeats, compared: growth, peaks, containers, lines, time per step.
//!
//! Values in, values out. A change counts if the intervals of both sides do not touch; else the change is not decided.

mod change;
mod comparable;
mod measured;
mod rows;
mod run_facts;

pub use change::{RowChange, Trend};
pub use comparable::Incomparable;
pub use measured::MedianOfRepeats;
pub use rows::{Difference, diff};
pub use run_facts::{ContainerGrowth, LineGrowth, Quantity, RunFacts};
