//! The highest level of the bytes in use, and who was running: the same events, read at most once in a while.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::PeakHit;
use super::candidates::Candidate;
use super::watch::{Known, Running};
use crate::frames;

/// Shortest time between two readings.
const SHORTEST: Duration = Duration::from_millis(1);
/// A reading may take one part in this many of the time.
const SHARE: u32 = 50;
/// A new peak must be higher than the last by one part in this many, so that a slow climb is not recorded line by line.
const STEP: u64 = 64;
/// Locals kept with a peak: the largest.
const MOST_LOCALS: usize = 8;

/// A watch on the bytes in use.
pub(super) struct Peak {
    threshold: u64,
    in_use: fn() -> u64,
    next: Instant,
    pub(super) best: Option<PeakHit>,
}

impl Peak {
    pub(super) fn new(threshold: u64, in_use: fn() -> u64) -> Self {
        Self { threshold, in_use, next: Instant::now(), best: None }
    }

    /// Reads the memory if it is time; `line` is the one that the frame was on until this event.
    pub(super) fn look(
        &mut self,
        py: Python<'_>,
        candidate: &Candidate,
        line: Option<u32>,
        running: Running,
    ) {
        let start = Instant::now();
        if start < self.next {
            return;
        }
        let bytes = (self.in_use)();
        self.next = start + SHORTEST.max(start.elapsed() * SHARE);
        let highest = self.best.as_ref().map_or(self.threshold, |best| best.bytes + best.bytes / STEP);
        if bytes <= highest {
            return;
        }
        let Some(frame) = running.frame(py) else { return };
        let place = frames::place(&frame);
        let line = line.unwrap_or(place.line);
        let locals = largest_locals(py, &frame);
        self.best =
            Some(PeakHit { bytes, file: candidate.file.clone(), line, function: place.function, locals });
    }
}

fn largest_locals(py: Python<'_>, frame: &Bound<'_, PyAny>) -> Vec<(String, String, u64)> {
    let known = Known::find(py);
    let mut locals = Vec::new();
    frames::for_each_local(frame, &mut |name, value| {
        if let Some(size) = known.size_of(value) {
            let type_name = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
            locals.push((name.to_owned(), type_name, size));
        }
    });
    locals.sort_by_key(|(_, _, size)| std::cmp::Reverse(*size));
    locals.truncate(MOST_LOCALS);
    locals
}
