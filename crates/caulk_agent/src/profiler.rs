//! Torch's profiler, which keeps every event until it is stopped, and is forgotten.

use pyo3::prelude::*;

use crate::heap::{loaded, member};

/// Boundaries in a row at which it must be on: a profiler with a schedule is off at most of them.
const IN_A_ROW: u32 = 4;
/// Kinds that keep events; others mark ranges for another program.
const KEEPING: [&str; 2] = ["KINETO", "LEGACY"];

/// How often it was on.
#[derive(Default)]
pub(crate) struct Watch {
    in_a_row: u32,
    told: bool,
}

impl Watch {
    /// Looks once: whether it is on is told, where that may be, when it has been for long enough, and when it is off again.
    pub(crate) fn look(&mut self, py: Python<'_>, may_tell: bool) -> Option<bool> {
        self.in_a_row = if is_on(py) { self.in_a_row.saturating_add(1) } else { 0 };
        let stays = self.in_a_row >= IN_A_ROW;
        if !may_tell || stays == self.told {
            return None;
        }
        self.told = stays;
        Some(stays)
    }
}

fn is_on(py: Python<'_>) -> bool {
    let Some(module) = loaded(py, "torch._C._autograd") else { return false };
    let ask = |name: &str| member(&module, name)?.call0().ok();
    let enabled = ask("_profiler_enabled").and_then(|enabled| enabled.extract().ok()).unwrap_or(false);
    // An enumeration of C++ code.
    let kind = || ask("_profiler_type")?.getattr("name").ok()?.extract::<String>().ok();
    enabled && kind().is_none_or(|kind| KEEPING.contains(&kind.as_str()))
}
