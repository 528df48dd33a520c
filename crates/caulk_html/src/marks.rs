//! Moments of a run: beginnings of epochs, validations, events.

use std::collections::BTreeMap;

use caulk_core::wire::{Boundary, Message, NoteCode, Phase, Unit};
use caulk_core::{AgentEvent, Bytes, ProcessRecord, ProcessRef, Recording, Role};

use crate::series::Curves;
use crate::words;

/// Epochs, validations and events that a chart shows.
const EPOCHS: usize = 60;
const VALIDATIONS: usize = 150;
const EVENTS: usize = 20;

/// Characters of an event's text.
const TEXT: usize = 200;

/// An event with its number in the chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) at_s: f64,
    pub(crate) text: String,
}

/// The moments of a run, in seconds since its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Marks {
    /// Beginnings of epochs with their numbers, from 1; of many every so many.
    pub(crate) epochs: Vec<(f64, u64)>,
    /// Beginnings and ends of validations; of many none.
    pub(crate) validations: Vec<[f64; 2]>,
    /// Alarms, actions of the guard, errors.
    pub(crate) events: Vec<Event>,
    /// More events than are shown.
    pub(crate) more_events: usize,
}

impl Marks {
    pub(crate) fn of(recording: &Recording, curves: &Curves) -> Self {
        let boundaries = training(recording);
        let mut marks = Self {
            epochs: epochs(&boundaries, curves),
            validations: validations(&boundaries, curves),
            ..Self::default()
        };
        let mut events: Vec<Event> =
            recording.events.iter().filter_map(|event| of_event(event, curves)).collect();
        if let Some(death) = &recording.info.death
            && (death.signal.is_some() || death.code != Some(0))
        {
            let text = if death.text.is_empty() { "the command failed" } else { death.text.as_str() };
            let text = words::plain(text, TEXT).into_owned();
            events.push(Event { at_s: curves.end_s, text });
        }
        events.dedup_by(|a, b| a.text == b.text);
        marks.more_events = events.len().saturating_sub(EVENTS);
        // The last ones are nearest to the end.
        marks.events = events.split_off(marks.more_events);
        marks
    }
}

/// Times of the first and the last reading of a process from inside; the whole run where there are none.
pub(crate) fn read(recording: &Recording, process: &ProcessRef, curves: &Curves) -> [f64; 2] {
    let is_it =
        |record: &&ProcessRecord| record.role.as_str() == process.role && record.index == process.index;
    let pids: Vec<u32> = recording.processes.iter().filter(is_it).map(|record| record.pid).collect();
    let times = recording.events.iter().filter_map(|event| match &event.message {
        Message::Boundary(boundary) if pids.contains(&event.pid) => Some(curves.seconds(boundary.time_ns)),
        _ => None,
    });
    let [first, last] = times.fold([f64::INFINITY, 0.0], |[first, last], at| [at.min(first), at.max(last)]);
    if first < last { [first, last] } else { [0.0, curves.end_s] }
}

/// Boundaries of the process that trains.
fn training(recording: &Recording) -> Vec<&Boundary> {
    let mut all: BTreeMap<u32, Vec<&Boundary>> = BTreeMap::new();
    for event in &recording.events {
        if let Message::Boundary(boundary) = &event.message
            && boundary.of == 0
        {
            all.entry(event.pid).or_default().push(boundary);
        }
    }
    let leads = |pid: u32| {
        let record = recording.processes.iter().find(|record| record.pid == pid);
        record.is_some_and(|record| record.role == Role::Main)
    };
    let of_epochs = |boundaries: &[&Boundary]| boundaries.iter().any(|boundary| boundary.unit == Unit::Epoch);
    let best = all.into_iter().max_by_key(|(pid, own)| (of_epochs(own), leads(*pid), own.len()));
    best.map(|(_, boundaries)| boundaries).unwrap_or_default()
}

fn epochs(boundaries: &[&Boundary], curves: &Curves) -> Vec<(f64, u64)> {
    let all: Vec<_> = boundaries.iter().filter(|boundary| boundary.unit == Unit::Epoch).collect();
    let step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000];
    let step = step.into_iter().find(|step| all.len() / step <= EPOCHS).unwrap_or(1_000_000);
    let shown = all.into_iter().filter(|boundary| (boundary.index + 1) % step as u64 == 0);
    shown.map(|boundary| (curves.seconds(boundary.time_ns), boundary.index + 1)).take(2 * EPOCHS).collect()
}

fn validations(boundaries: &[&Boundary], curves: &Curves) -> Vec<[f64; 2]> {
    let mut all: Vec<[f64; 2]> = Vec::new();
    for pair in boundaries.windows(2) {
        if matches!(pair[1].phase, Phase::Validation | Phase::Test) {
            let [from, to] = [pair[0], pair[1]].map(|boundary| curves.seconds(boundary.time_ns));
            match all.last_mut() {
                Some([_, end]) if *end >= from => *end = to,
                _ => all.push([from, to]),
            }
        }
    }
    if all.len() > VALIDATIONS { Vec::new() } else { all }
}

fn of_event(event: &AgentEvent, curves: &Curves) -> Option<Event> {
    let text = match &event.message {
        Message::Note(note)
            if matches!(note.code, NoteCode::Alarm | NoteCode::Guard | NoteCode::MemoryError) =>
        {
            note.text.clone()
        }
        Message::Uncaught(error) => match error.types.first() {
            Some(name) => format!("{name}: {}", error.text),
            None => error.text.clone(),
        },
        Message::GpuRefusal(refusal) => {
            format!("GPU {} had no memory for {}", refusal.device, Bytes(refusal.asked_bytes))
        }
        Message::Answer(answer) => format!("cleanup: {} bytes came back", answer.freed_bytes),
        _ => return None,
    };
    Some(Event { at_s: curves.seconds(event.time_ns), text: words::plain(&text, TEXT).into_owned() })
}
