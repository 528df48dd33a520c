//! The armed trace as functions of `caulk._agent`, for tests and for people who want to see it work.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Limits, Target, Watch};

/// Adds this module's functions to `caulk._agent`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_arm, module)?)?;
    module.add_function(wrap_pyfunction!(trace_poll, module)?)?;
    module.add_function(wrap_pyfunction!(trace_disarm, module)?)?;
    module.add_function(wrap_pyfunction!(peak_arm, module)?)?;
    module.add_function(wrap_pyfunction!(peak_disarm, module)?)
}

/// Arms a trace for `(id, kind, owner, slot, name, home)` watches, kind being `object`, `slot` or `local` (of which the
/// owner is the function's qualified name); answers with
/// the number of functions that are watched and raises `RuntimeError` with the reason where it is not armed.
#[pyfunction]
#[pyo3(signature = (watches, max_hits = 50, max_candidates = 64))]
fn trace_arm(
    py: Python<'_>,
    watches: Vec<(u32, String, Py<PyAny>, String, String, String)>,
    max_hits: u32,
    max_candidates: usize,
) -> PyResult<usize> {
    let watches = watches.into_iter().map(|(id, kind, owner, slot, name, home)| {
        let target = match kind.as_str() {
            "object" => Target::Object(owner),
            "slot" => Target::Slot { owner, name: slot },
            "local" => Target::Local { function: owner.extract(py)?, name: slot },
            _ => return Err(PyValueError::new_err(kind)),
        };
        Ok(Watch { id, target, names: vec![name], home, is_local: false, links: false })
    });
    let watches = watches.collect::<PyResult<_>>()?;
    super::arm(py, watches, &Limits { max_hits_per_watch: max_hits, max_candidates })
        .map_err(PyRuntimeError::new_err)
}

/// What the armed trace has seen.
#[pyfunction]
fn trace_poll(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let progress = super::poll(py);
    let answer = PyDict::new(py);
    answer.set_item("hits", progress.hits)?;
    answer.set_item("unexplained", progress.unexplained)?;
    answer.set_item("events_seen", progress.events_seen)?;
    answer.set_item("enough", progress.enough)?;
    answer.set_item("blind", progress.blind)?;
    answer.set_item("stopped", progress.stopped)?;
    Ok(answer)
}

/// Ends the trace; the lines that made something grow.
#[pyfunction]
fn trace_disarm(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let hits = super::disarm(py).into_iter().map(|hit| {
        let answer = PyDict::new(py);
        answer.set_item("id", hit.id)?;
        answer.set_item("file", hit.file)?;
        answer.set_item("line", hit.line)?;
        answer.set_item("function", hit.function)?;
        answer.set_item("user_file", hit.user_file)?;
        answer.set_item("user_line", hit.user_line)?;
        answer.set_item("user_function", hit.user_function)?;
        answer.set_item("growth", hit.growth)?;
        answer.set_item("count", hit.count)?;
        Ok(answer)
    });
    hits.collect()
}

/// Watches the resident bytes for a level above `threshold`.
#[pyfunction]
fn peak_arm(py: Python<'_>, threshold: u64) -> PyResult<usize> {
    super::arm_peak(py, threshold, resident_bytes).map_err(PyRuntimeError::new_err)
}

/// What [`super::disarm_peak`] answers: bytes, file, line, function, locals.
type PeakTuple = (u64, String, u32, String, Vec<(String, String, u64)>);

/// Ends the watch; `(bytes, file, line, function, locals)` of the highest level, or `None`.
#[pyfunction]
fn peak_disarm(py: Python<'_>) -> Option<PeakTuple> {
    super::disarm_peak(py).map(|hit| (hit.bytes, hit.file, hit.line, hit.function, hit.locals))
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    // SAFETY: a constant of the system.
    pages.unwrap_or(0) * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}
