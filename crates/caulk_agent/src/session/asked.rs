//! What a supervisor that guards the program asks for, and what the program says to it.

use std::time::{Duration, Instant};

use caulk_wire::{Answer, AskOutcome, Command, Standing, Uncaught};
use pyo3::prelude::*;

use super::guard::guarded;

/// Between two looks for a request that is waited for.
const LOOK: Duration = Duration::from_millis(2);

/// The next request: its number, what to do and the step; `None` where there is none within `seconds`.
#[pyfunction]
#[pyo3(signature = (seconds = 0.0))]
fn asked(py: Python<'_>, seconds: f64) -> Option<(u32, u32, u64)> {
    let until = (seconds > 0.0).then(|| Instant::now() + Duration::from_secs_f64(seconds));
    loop {
        let command = guarded(|session| session.channel.receive()).flatten();
        if let Some(Command::Ask(ask)) = command {
            return Some((ask.id, ask.wish as u32, ask.step));
        }
        if command.is_none() && until.is_none_or(|until| Instant::now() >= until) {
            return None;
        }
        if command.is_none() {
            py.detach(|| std::thread::sleep(LOOK));
        }
    }
}

/// How far the process is, how it can save its state, and what it has reserved on GPUs of how much there.
#[pyfunction]
fn standing(steps: u64, epochs: u64, way: String, spare_signal: bool, cuda: (u64, u64)) {
    let (cuda_reserved_bytes, cuda_total_bytes) = cuda;
    let standing = Standing { steps, epochs, way, spare_signal, cuda_reserved_bytes, cuda_total_bytes };
    guarded(|session| session.channel.send(&standing.into()));
}

/// What came of a request.
#[pyfunction]
fn answer(id: u32, outcome: u32, steps: u64, freed_bytes: u64, path: String, text: String) {
    let outcome = AskOutcome::ALL.get(outcome as usize).copied().unwrap_or_default();
    let answer = Answer { id, outcome, steps, freed_bytes, path, text };
    guarded(|session| session.channel.send(&answer.into()));
}

/// An exception that nobody has caught ends the program.
#[pyfunction]
fn uncaught(types: Vec<String>, text: String) {
    guarded(|session| session.channel.send(&Uncaught { types, text }.into()));
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for function in [
        wrap_pyfunction!(asked, module)?,
        wrap_pyfunction!(standing, module)?,
        wrap_pyfunction!(answer, module)?,
        wrap_pyfunction!(uncaught, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
