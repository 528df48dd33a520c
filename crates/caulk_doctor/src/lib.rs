//! Is this machine fit for a training? Figures in, advice out.
//!
//! Knows no files and starts nothing: [`Machine`] says what was read, [`checks`] what follows from it. [`slurm`] reads the
//! account of a job, [`logs`] finds out-of-memory messages.

mod environment;
mod gpu;
mod limits;
pub mod logs;
mod machine;
mod memory;
pub mod slurm;

use serde::Serialize;

pub use environment::variables;
pub use machine::{Gpu, Machine, Python, Space};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// It could not be found out.
    Unknown,
    /// It may do harm, depending on the program.
    Advice,
    /// A training is likely to fail or to be slow.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name: `memory`, `swap`, `shared-memory`.
    pub name: &'static str,
    /// How it came out.
    pub state: State,
    /// What was found, with figures.
    pub text: String,
    /// What to do; empty where there is nothing to do.
    pub advice: String,
}

impl Check {
    fn new(name: &'static str, state: State, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state, text: text.into(), advice: advice.into() }
    }

    fn good(name: &'static str, text: impl Into<String>) -> Self {
        Self::new(name, State::Good, text, "")
    }
}

/// Everything that can be said of a machine, in an order in which people ask.
pub fn checks(machine: &Machine) -> Vec<Check> {
    let mut checks = memory::checks(machine);
    checks.extend(limits::checks(machine));
    checks.extend(gpu::checks(machine));
    checks.extend(environment::checks(machine));
    checks
}
