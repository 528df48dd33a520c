//! Notes of the hooks in Python: they bring facts, and the sentences are made here.

use caulk_wire::NoteCode;
use pyo3::prelude::*;

use super::guard::guarded;

/// Why a plan leaves a data loader as it is.
#[pyclass(frozen, eq, module = "caulk._agent")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoaderKept {
    /// The process is a rank of a distributed job.
    Rank,
    /// Its data set is iterable.
    Iterable,
    /// The program has brought a sampler.
    OwnSampler,
}

/// A hook has failed.
#[pyfunction]
#[pyo3(name = "note_hook_failed")]
fn hook_failed(place: &str, reason: &str) {
    let text = format!(
        "caulk failed inside the program ({place}: {reason}) and has taken itself out: what comes later is seen from outside \
         alone. The program is not affected; please report it"
    );
    note(NoteCode::HookFailed, &text);
}

/// A library lacks what a hook needs.
#[pyfunction]
#[pyo3(name = "note_no_callbacks")]
fn no_callbacks(library: &str, lacks: &str) {
    let text =
        format!("this {library} has no {lacks}: epochs are told from its loops instead, and may be missed");
    note(NoteCode::NotHooked, &text);
}

/// A module is loaded in a way that takes no hook.
#[pyfunction]
#[pyo3(name = "note_not_watched")]
fn not_watched(module: &str) {
    let text = format!(
        "{module} is loaded in a way that cannot be watched, so that its steps are not seen: tell them with `caulk.step()` and \
         `caulk.epoch()`"
    );
    note(NoteCode::NotHooked, &text);
}

/// A plan has left a loader as it is.
#[pyfunction]
#[pyo3(name = "note_loader_kept")]
fn loader_kept(file: &str, line: u32, reason: &Bound<'_, LoaderKept>) {
    let reason = match reason.get() {
        LoaderKept::Rank => "a rank of a distributed job",
        LoaderKept::Iterable => "an iterable data set",
        LoaderKept::OwnSampler => "a sampler of its own",
    };
    note(NoteCode::Applied, &planned(file, line, &format!("{reason}: left as it is")));
}

/// A plan has changed settings of a loader.
#[pyfunction]
#[pyo3(name = "note_loader_changed")]
#[expect(clippy::needless_pass_by_value, reason = "a list of Python's arrives as a vector")]
fn loader_changed(file: &str, line: u32, changes: Vec<(String, String, String)>) {
    let changes: Vec<String> =
        changes.iter().map(|(name, old, new)| format!("{name} {old} -> {new}")).collect();
    note(NoteCode::Applied, &planned(file, line, &changes.join(", ")));
}

fn planned(file: &str, line: u32, text: &str) -> String {
    let place = if file.is_empty() { String::new() } else { format!(" at {file}:{line}") };
    format!("plan for the DataLoader{place}: {text}")
}

fn note(code: NoteCode, text: &str) {
    guarded(|session| session.note(code, text));
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LoaderKept>()?;
    for function in [
        wrap_pyfunction!(hook_failed, module)?,
        wrap_pyfunction!(no_callbacks, module)?,
        wrap_pyfunction!(not_watched, module)?,
        wrap_pyfunction!(loader_kept, module)?,
        wrap_pyfunction!(loader_changed, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
