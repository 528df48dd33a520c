//! Torch's profiler, which keeps every event until it is stopped, and is forgotten.

use pyo3::prelude::*;

use crate::heap::{loaded, member};

/// Boundaries in a row at which it must be on: a profiler with a schedule is off at most of them.
const IN_A_ROW: u32 = 4;

/// How often it was on.
#[derive(Default)]
pub(crate) struct Watch {
    in_a_row: u32,
}

impl Watch {
    /// Looks once: has it now been on for long enough to be told of?
    pub(crate) fn look(&mut self, py: Python<'_>) -> bool {
        let enabled =
            loaded(py, "torch._C._autograd").and_then(|module| member(&module, "_profiler_enabled"));
        let is_on = enabled.and_then(|enabled| enabled.call0().ok()?.extract().ok()).unwrap_or(false);
        self.in_a_row = if is_on { self.in_a_row.saturating_add(1) } else { 0 };
        self.in_a_row == IN_A_ROW
    }
}
