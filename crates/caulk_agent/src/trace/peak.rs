//! The highest level of the bytes in use, and who was running: the same events, read at most once in a while.

use std::time::{Duration, Instant};

use caulk_wire::{Holder, PathStep, StepKind};
use pyo3::prelude::*;

use super::candidates::Candidate;
use super::seen::{Full, PeakHit};
use super::source::Running;
use super::watch::Known;
use crate::census::CollectorPaused;
use crate::heap::{Address, Heap, Shape, type_name};
use crate::{contents, frames};

/// Shortest time between two readings.
const SHORTEST: Duration = Duration::from_millis(1);
/// Longest time between two readings: a reading that had to wait for a processor says nothing about its cost.
const LONGEST: Duration = Duration::from_millis(20);
/// A reading may take one part in this many of the time, up to that.
const SHARE: u32 = 50;
/// A reading that takes longer is the last one.
const DEAREST: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_hours(24);
/// A new peak must be higher than the last by one part in this many, so that a slow climb is not recorded line by line.
const STEP: u64 = 64;
/// Containers are looked into again when the level is higher by one part in this many.
const LOOK_STEP: u64 = 8;
/// Functions on the stack whose locals are looked into.
const MOST_FUNCTIONS: usize = 6;
/// Containers looked into: the longest.
const MOST_LOOKS: usize = 6;
/// Containers told of: the heaviest.
const MOST_FULL: usize = 3;
/// Locals kept with a peak: the largest.
const MOST_LOCALS: usize = 8;

/// A watch on the bytes in use.
pub(super) struct Peak {
    threshold: u64,
    in_use: fn() -> u64,
    next: Instant,
    /// Level at which containers were last looked into.
    looked: u64,
    pub(super) best: Option<PeakHit>,
}

impl Peak {
    pub(super) fn new(threshold: u64, in_use: fn() -> u64) -> Self {
        Self { threshold, in_use, next: Instant::now(), looked: 0, best: None }
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
        let cost = start.elapsed();
        // A heap with very many free blocks is too dear to be read again and again.
        self.next = start + if cost > DEAREST { NEVER } else { (cost * SHARE).clamp(SHORTEST, LONGEST) };
        let highest = self.best.as_ref().map_or(self.threshold, |best| best.bytes + best.bytes / STEP);
        if bytes <= highest {
            return;
        }
        let Some(frame) = running.frame(py) else { return };
        let place = frames::place(&frame);
        let line = line.unwrap_or(place.line);
        let locals = largest_locals(py, &frame);
        let before = self.best.take().map(|best| best.full).unwrap_or_default();
        // Looking into containers costs milliseconds: once for every sizeable rise.
        let full = if bytes > self.looked + self.looked / LOOK_STEP {
            self.looked = bytes;
            fullest(py, frame)
        } else {
            before
        };
        let (file, function) = (candidate.file.clone(), place.function);
        self.best = Some(PeakHit { bytes, file, line, function, locals, full });
    }
}

/// Containers in the locals of the user's functions from `frame` outwards, by what dies with them.
fn fullest(py: Python<'_>, frame: Bound<'_, PyAny>) -> Vec<Full> {
    let _paused = CollectorPaused::new(py);
    let mut heap = Heap::new(py);
    let mut found = Vec::new();
    let stack = frames::stack_of(Some(frame)).map(|frame| (frames::place(&frame), frame));
    for (place, frame) in stack.filter(|(place, _)| frames::is_user_place(place)).take(MOST_FUNCTIONS) {
        frames::for_each_local(&frame, &mut |name, value| {
            let address = value.as_ptr() as Address;
            let container =
                matches!(heap.type_of(address).shape, Shape::List | Shape::Dict | Shape::Deque | Shape::Set);
            let len = heap.length(address).unwrap_or(0);
            if container && len >= 2 {
                found.push((len, value.clone(), name.to_owned(), place.clone()));
            }
        });
    }
    found.sort_by_key(|(len, ..)| std::cmp::Reverse(*len));
    let looked = found.into_iter().take(MOST_LOOKS).map(|(len, value, name, place)| {
        let address = value.as_ptr() as Address;
        let type_name = heap.type_name(address);
        let step = |kind, name: &str, type_name: &str| PathStep {
            kind,
            name: name.into(),
            type_name: type_name.into(),
        };
        let path =
            vec![step(StepKind::Function, &place.function, ""), step(StepKind::Local, &name, &type_name)];
        let holder = Holder {
            path,
            expression: name.clone(),
            function: place.function,
            file: place.file,
            line: place.line,
            name,
            complete: true,
            ..Holder::default()
        };
        Full { holder, contents: contents::look(&mut heap, address, 0), type_name, len: len as u64 }
    });
    let mut full: Vec<Full> = looked.collect();
    full.sort_by_key(|full| std::cmp::Reverse(full.contents.bytes_per_element * full.len));
    full.truncate(MOST_FULL);
    full
}

fn largest_locals(py: Python<'_>, frame: &Bound<'_, PyAny>) -> Vec<(String, String, u64)> {
    let known = Known::find(py);
    let mut locals = Vec::new();
    frames::for_each_local(frame, &mut |name, value| {
        if let Some(size) = known.size_of(value) {
            locals.push((name.to_owned(), type_name(&value.get_type()), size));
        }
    });
    locals.sort_by_key(|(_, _, size)| std::cmp::Reverse(*size));
    locals.truncate(MOST_LOCALS);
    locals
}
