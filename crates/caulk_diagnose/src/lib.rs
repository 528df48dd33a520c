//! A recording and the program's sources to verdicts and findings: the join of what was seen from outside, what the
//! agents saw from inside, and what the source says.
//!
//! Values in, values out: no I/O. Sources come through [`Sources`], so that a recording can be judged in memory. Nothing
//! is invented: growth without a cause found stays without one, and what was looked at is said.

mod allocated;
mod baselines;
mod children;
mod claim;
mod class;
mod compare;
mod copy_on_write;
mod covered;
mod cycles;
mod ending;
mod exhausted;
mod files;
mod gathered;
mod generations;
mod gpu;
mod gpu_lines;
mod gpu_parts;
mod gpu_rest;
mod gpu_retention;
mod growth;
mod heap;
mod held;
mod judged;
mod ledger;
mod left_behind;
mod limits;
mod loading;
mod loss;
mod makers;
mod merge;
mod name;
mod native;
mod noted;
mod opened;
mod outside;
mod page_cache;
mod part;
mod patterns;
mod peaks;
mod pinned;
mod pipeline;
mod place;
mod process;
mod profiler;
mod ranks;
mod reached;
mod refusals;
mod released;
mod remedy;
mod resources;
mod retention;
mod settle;
mod share;
mod shm_files;
mod small;
mod stored;
mod suspect;
mod table;
mod training;
mod unaccounted;
mod unended;
mod unexplained;
mod units;
mod unknown;
mod uses;
mod verdicts;
mod within;
mod workers;

pub use crate::compare::{CompareError, compare};
pub use crate::files::Sources;
pub use crate::pipeline::{Diagnosis, diagnose};
pub use crate::uses::{lines, stacks, totals};
