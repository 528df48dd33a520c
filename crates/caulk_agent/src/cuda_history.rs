//! Which lines make what stays on a GPU: torch's own record of allocations, on for one stretch between two boundaries.
//!
//! Torch notes a Python stack of some two microseconds with every allocation, for as long as the block lives. That is asked for
//! once, after memory on the GPU was seen to rise from epoch to epoch (and once before, from step to step, as long as there are
//! no epochs), and never where the program records for itself.

use std::collections::HashMap;

use caulk_wire::{CodePlace, GpuLine, GpuMade, Unit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::cuda::Figures;
use crate::cuda_blocks;
use crate::frames::{is_caulk_file, is_user_file};
use crate::handlers::own_failure;
use crate::heap::{loaded, member};

/// Boundaries in a row at which more is allocated than at the one before, by so many bytes, until growth is taken for seen.
const RISES: u32 = 3;
const LEAST: u64 = 1 << 20;
/// Lines that are told.
const LINES: usize = 16;

/// What is known of the process's memory on GPUs, and whether torch records.
#[derive(Debug)]
pub(crate) struct History {
    state: State,
    unit: Unit,
    last: u64,
    rises: u32,
}

/// What comes of a stretch that was recorded.
#[derive(Debug)]
pub(crate) enum Recorded {
    Made(GpuMade),
    /// There are so many blocks that looking through them would hold the program up for too long.
    TooMany,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Watching,
    /// Since this boundary.
    Recording(u32),
    /// It was done, or cannot be done.
    Over,
}

impl Default for History {
    fn default() -> Self {
        Self { state: State::Watching, unit: Unit::Seconds, last: 0, rises: 0 }
    }
}

impl History {
    /// Something is to be done at this boundary, with so much memory in use on GPUs.
    pub(crate) fn is_due(&mut self, unit: Unit, cuda: &Figures) -> bool {
        if unit < self.unit {
            // What rose within an epoch says nothing of what rises from one to the next.
            (self.unit, self.last, self.rises) = (unit, 0, 0);
            if matches!(self.state, State::Over) {
                self.state = State::Watching;
            }
        }
        let rose = self.last > 0 && cuda.allocated >= self.last + LEAST;
        self.rises = if rose { self.rises + 1 } else { 0 };
        self.last = cuda.allocated;
        match self.state {
            State::Watching => self.rises >= RISES,
            State::Recording(_) => true,
            State::Over => false,
        }
    }

    /// Begins to record, or tells what was recorded. What fails is not tried again.
    ///
    /// # Errors
    /// What the program itself must see, such as Ctrl-C.
    pub(crate) fn proceed(
        &mut self,
        py: Python<'_>,
        boundary: u32,
        cuda: &Figures,
    ) -> PyResult<Option<Recorded>> {
        let done = match std::mem::replace(&mut self.state, State::Over) {
            State::Over => return Ok(None),
            State::Watching => begin(py).map(|begun| {
                if begun {
                    self.state = State::Recording(boundary);
                }
                None
            }),
            State::Recording(since) => end(py, since, boundary, cuda.blocks),
        };
        done.or_else(|error| own_failure(py, error).map(|_| None))
    }
}

/// Has torch record, unless somebody else has, or it cannot be told.
fn begin(py: Python<'_>) -> PyResult<bool> {
    let recorded = loaded(py, "torch._C").and_then(|inner| member(&inner, "_cuda_isHistoryEnabled"));
    let (Some(recorded), Some(memory)) = (recorded, loaded(py, "torch.cuda.memory")) else {
        return Ok(false);
    };
    if recorded.call0()?.is_truthy()? {
        return Ok(false);
    }
    let options = PyDict::new(py);
    options.set_item("enabled", "state")?;
    options.set_item("context", "state")?;
    options.set_item("stacks", "python")?;
    options.set_item("max_entries", 1)?;
    memory.getattr("_record_memory_history")?.call((), Some(&options))?;
    Ok(true)
}

/// What was made since then and is still there. Torch stops recording, whatever comes of it.
fn end(py: Python<'_>, from: u32, to: u32, blocks: u64) -> PyResult<Option<Recorded>> {
    let Some(memory) = loaded(py, "torch.cuda.memory") else { return Ok(None) };
    let snapshot = if blocks <= cuda_blocks::MOST {
        Some(memory.call_method0("_snapshot")).transpose()
    } else {
        Ok(None)
    };
    // A history of events was not asked for, and torch keeps the last one: where there are more, the program has begun to
    // record by now.
    let of_others = |snapshot: &Bound<'_, PyAny>| -> PyResult<bool> {
        let traces = snapshot.get_item("device_traces")?.cast_into::<PyList>()?;
        Ok(traces.iter().any(|trace| trace.len().is_ok_and(|events| events > 1)))
    };
    let others = matches!(&snapshot, Ok(Some(snapshot)) if of_others(snapshot).unwrap_or(false));
    if !others {
        let options = PyDict::new(py);
        options.set_item("enabled", py.None())?;
        memory.getattr("_record_memory_history")?.call((), Some(&options))?;
    }
    Ok(Some(match snapshot? {
        Some(snapshot) => Recorded::Made(made(&snapshot, from, to)?),
        None => Recorded::TooMany,
    }))
}

fn made(snapshot: &Bound<'_, PyAny>, from: u32, to: u32) -> PyResult<GpuMade> {
    let (mut lines, mut bytes) = (HashMap::<(String, u32), GpuLine>::new(), 0);
    for segment in snapshot.get_item("segments")?.try_iter()? {
        for block in segment?.get_item("blocks")?.try_iter()? {
            let block = block?;
            if block.get_item("state")?.extract::<String>()? != "active_allocated" {
                continue;
            }
            // What was there before has no stack.
            let Some(place) = place(&block)? else { continue };
            let size: u64 = block.get_item("size")?.extract()?;
            bytes += size;
            let line = lines.entry((place.file.clone(), place.line)).or_default();
            line.bytes += size;
            line.blocks += 1;
            line.place = place;
        }
    }
    let mut lines: Vec<GpuLine> = lines.into_values().collect();
    lines.sort_by(|a, b| (b.bytes, &a.place.file, a.place.line).cmp(&(a.bytes, &b.place.file, b.place.line)));
    lines.truncate(LINES);
    Ok(GpuMade { from, to, bytes, lines })
}

/// The innermost line of the user's own in a block's stack; else the innermost of a library.
fn place(block: &Bound<'_, PyAny>) -> PyResult<Option<CodePlace>> {
    let Ok(frames) = block.get_item("frames") else { return Ok(None) };
    let mut innermost = None;
    for frame in frames.try_iter()? {
        let frame = frame?;
        let file: String = frame.get_item("filename")?.extract()?;
        if is_caulk_file(&file) {
            continue;
        }
        let user = is_user_file(&file);
        let line: u32 = frame.get_item("line")?.extract()?;
        let found = CodePlace { file, line, function: frame.get_item("name")?.extract()? };
        if user {
            return Ok(Some(found));
        }
        innermost = innermost.or(Some(found));
    }
    Ok(innermost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(megabytes: u64) -> Figures {
        Figures { allocated: megabytes << 20, ..Figures::default() }
    }

    #[test]
    fn it_is_due_after_three_rises_in_a_row() {
        let mut history = History::default();
        let mut due = |megabytes| history.is_due(Unit::Epoch, &at(megabytes));
        assert_eq!([0, 100, 110, 120].map(&mut due), [false; 4], "two rises, after what was made first");
        assert_eq!([115, 125, 135, 145].map(&mut due), [false, false, false, true], "a fall begins anew");
    }

    #[test]
    fn what_is_over_is_due_again_once_there_are_epochs() {
        let over = History { state: State::Over, unit: Unit::Steps, ..History::default() };
        let mut history = over;
        assert!((1..9).all(|step| !history.is_due(Unit::Steps, &at(step * 10))));
        let due = [100, 110, 120, 130].map(|megabytes| history.is_due(Unit::Epoch, &at(megabytes)));
        assert_eq!(due, [false, false, false, true]);
    }
}
