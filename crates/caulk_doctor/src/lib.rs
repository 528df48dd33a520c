//! Is this machine fit for a training? Figures in, advice out.
//!
//! Knows no files and starts nothing: [`HostFacts`] says what was read, [`checks`] what follows from it. [`slurm`] reads the
//! account of a job, [`logs`] finds out-of-memory messages.

mod check;
mod environment;
mod gpu;
mod limits;
pub mod logs;
mod machine;
mod memory;
pub mod slurm;

pub use check::{Check, CheckState};
pub use environment::variables;
pub use machine::{GpuFacts, HostFacts, Python, Space};

/// Everything that can be said of a machine, in an order in which people ask.
pub fn checks(machine: &HostFacts) -> Vec<Check> {
    let mut checks = memory::checks(machine);
    checks.extend(limits::checks(machine));
    checks.extend(gpu::checks(machine));
    checks.extend(environment::checks(machine));
    checks
}
