//! How large a run was, from its recording.

use std::collections::BTreeMap;

use caulk_core::wire::{Boundary, HeapLive, Message, Unit};
use caulk_core::{Counted, ProcessRecord, Recording, Role};
use caulk_report::Summary;

/// What one process said of itself.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    epochs: u64,
    steps: u64,
    cost_ns: u64,
    longest_pause_ns: u64,
}

/// Counts epochs, steps, time and memory.
pub(crate) fn of(recording: &Recording) -> Summary {
    let mut counted: BTreeMap<u32, Told> = BTreeMap::new();
    for event in &recording.events {
        let own = counted.entry(event.pid).or_default();
        match &event.message {
            Message::Boundary(boundary) => {
                if boundary.unit == Unit::Epoch {
                    own.epochs = own.epochs.max(boundary.index + 1);
                }
                own.steps = own.steps.max(boundary.steps);
                own.cost_ns += boundary.cost_ns;
                own.longest_pause_ns = own.longest_pause_ns.max(boundary.cost_ns);
            }
            // The last word replaces what was added up so far.
            Message::Bye(bye) => {
                own.epochs = own.epochs.max(bye.epochs);
                own.steps = own.steps.max(bye.steps);
                own.cost_ns = own.cost_ns.max(bye.cost_ns);
                own.longest_pause_ns = own.longest_pause_ns.max(bye.longest_pause_ns);
            }
            _ => (),
        }
    }
    // Workers and helpers have steps of their own, which are not the training's.
    let trains = |pid: u32| {
        let record = recording.processes.iter().find(|record| record.pid == pid);
        record.is_none_or(|record| matches!(record.role, Role::Main | Role::Rank))
    };
    let training = || counted.iter().filter(|(pid, _)| trains(**pid)).map(|(_, own)| own);
    let cost_ns: u64 = counted.values().map(|own| own.cost_ns).sum();
    let pause_ns = counted.values().map(|own| own.longest_pause_ns).max().unwrap_or(0);
    Summary {
        epochs: training().map(|own| own.epochs).max().filter(|epochs| *epochs > 0),
        steps: training().map(|own| own.steps).max().filter(|steps| *steps > 0),
        duration_s: last_ns(recording).saturating_sub(start_ns(recording)) as f64 / 1e9,
        peak_bytes: peak(recording),
        processes: recording.processes.len() as u32,
        cost_s: (cost_ns > 0).then_some(cost_ns as f64 / 1e9),
        longest_pause_s: (pause_ns > 0).then_some(pause_ns as f64 / 1e9),
        in_use_at_end_bytes: in_use_at_end(recording),
    }
}

/// What the program's own process, or its first rank, had in use when it was looked at last: after its end, where that came
/// by a signal, and before it began to take itself down, where it said so.
fn in_use_at_end(recording: &Recording) -> Option<u64> {
    let own = |record: &&ProcessRecord| matches!((record.role, record.index), (Role::Main | Role::Rank, 0));
    let pids: Vec<u32> = recording.processes.iter().filter(own).map(|record| record.pid).collect();
    let looks = recording.samples.iter().filter(|sample| pids.contains(&sample.pid));
    let looks = looks.filter_map(|sample| Some((sample.time_ns, sample.counted?)));
    let events = || recording.events.iter().filter(|event| pids.contains(&event.pid));
    let said = events().filter_map(|event| Some((event.time_ns, counted(&event.message)?)));
    let bye = events().find(|event| matches!(event.message, Message::Bye(_)));
    let until_ns = bye.map_or(u64::MAX, |bye| bye.time_ns);
    // What malloc says of itself is no exact count, and may be of long before.
    let is_counted = looks.clone().next().is_some();
    let all = looks.chain(said).filter(|(time_ns, _)| is_counted && *time_ns <= until_ns);
    let last = all.max_by_key(|(time_ns, _)| *time_ns)?;
    Some(last.1.bytes())
}

/// What was counted at a boundary, or at a process's end.
fn counted(message: &Message) -> Option<Counted> {
    let counted = match message {
        Message::Boundary(Boundary { malloc_bytes, arena_bytes, .. })
        | Message::HeapLive(HeapLive { malloc_bytes, arena_bytes, .. }) => {
            Counted { malloc_bytes: *malloc_bytes, blocks: 0, arena_bytes: *arena_bytes }
        }
        _ => return None,
    };
    (counted.malloc_bytes > 0).then_some(counted)
}

/// Highest resident memory of the tree, as it was seen from outside, and at least what one process said of itself. The first
/// look is at a process that is about to become the command.
fn peak(recording: &Recording) -> Option<u64> {
    let looks = recording.system.iter().skip(1).map(|sample| sample.tree_rss_bytes);
    let said = recording.events.iter().filter_map(|event| match &event.message {
        Message::Boundary(boundary) => Some(boundary.rss_bytes),
        _ => None,
    });
    looks.chain(said).max().filter(|peak| *peak > 0)
}

/// The start, or the first thing that was recorded where the head of the recording is damaged.
fn start_ns(recording: &Recording) -> u64 {
    match recording.info.start_ns {
        0 => times(recording).min().unwrap_or(0),
        start_ns => start_ns,
    }
}

/// The end, or the last thing that was recorded.
fn last_ns(recording: &Recording) -> u64 {
    recording.info.end_ns.unwrap_or_else(|| times(recording).max().unwrap_or(recording.info.start_ns))
}

fn times(recording: &Recording) -> impl Iterator<Item = u64> {
    let samples = recording.samples.iter().map(|sample| sample.time_ns);
    let system = recording.system.iter().map(|sample| sample.time_ns);
    samples.chain(system).chain(recording.events.iter().map(|event| event.time_ns))
}

#[cfg(test)]
mod tests {
    use caulk_core::wire::Bye;
    use caulk_core::{AgentEvent, Sample, SystemSample};

    use super::*;

    fn boundary(pid: u32, unit: Unit, index: u64, steps: u64) -> AgentEvent {
        let boundary = Boundary { unit, index, steps, cost_ns: 2_000_000, ..Boundary::default() };
        AgentEvent { time_ns: 3_000_000_000, pid, message: Message::Boundary(boundary) }
    }

    #[test]
    fn the_training_counts_and_its_workers_do_not() {
        let mut recording = Recording::default();
        recording.info.start_ns = 1_000_000_000;
        recording.processes = vec![
            ProcessRecord { pid: 1, role: Role::Main, ..ProcessRecord::default() },
            ProcessRecord { pid: 2, role: Role::Worker, ..ProcessRecord::default() },
        ];
        recording.events = vec![
            boundary(1, Unit::Epoch, 0, 24),
            boundary(1, Unit::Epoch, 1, 48),
            boundary(2, Unit::Epoch, 8, 900),
            boundary(1, Unit::Steps, 50, 50),
        ];
        let look =
            |tree_rss_bytes, time_ns| SystemSample { tree_rss_bytes, time_ns, ..SystemSample::default() };
        recording.system = vec![look(9, 1_000_000_000), look(7, 4_500_000_000)];
        let summary = of(&recording);
        assert_eq!((summary.epochs, summary.steps, summary.processes), (Some(2), Some(50), 2));
        assert_eq!((summary.peak_bytes, summary.duration_s, summary.cost_s), (Some(7), 3.5, Some(0.008)));
        let Message::Boundary(boundary) = &mut recording.events[1].message else { unreachable!() };
        boundary.rss_bytes = 8;
        assert_eq!(of(&recording).peak_bytes, Some(8));
        let bye = Bye { steps: 60, epochs: 3, cost_ns: 9_000_000, longest_pause_ns: 5_000_000 };
        recording.events.push(AgentEvent { time_ns: 0, pid: 1, message: Message::Bye(bye) });
        let summary = of(&recording);
        assert_eq!(
            (summary.epochs, summary.steps, summary.longest_pause_s),
            (Some(3), Some(60), Some(0.005))
        );
    }

    #[test]
    fn what_was_read_last_was_in_use_at_the_end() {
        let record = |pid, role| ProcessRecord { pid, role, ..ProcessRecord::default() };
        let mut recording = Recording {
            processes: vec![record(1, Role::Main), record(2, Role::Worker)],
            ..Recording::default()
        };
        let look = |pid, time_ns, malloc_bytes| {
            let counted = Counted { malloc_bytes, blocks: 1, arena_bytes: 5 };
            Sample { pid, time_ns, counted: Some(counted), ..Sample::default() }
        };
        recording.samples = vec![look(1, 10, 100), look(1, 20, 70), look(2, 30, 900)];
        recording.samples.push(Sample { pid: 1, time_ns: 30, ..Sample::default() });
        assert_eq!(
            of(&recording).in_use_at_end_bytes,
            Some(75),
            "others and looks without a count do not matter"
        );
        let end = HeapLive { malloc_bytes: 200, arena_bytes: 5, ..HeapLive::default() };
        recording.events.push(AgentEvent { time_ns: 40, pid: 1, message: end.into() });
        recording.events.push(AgentEvent { time_ns: 50, pid: 1, message: HeapLive::default().into() });
        assert_eq!(of(&recording).in_use_at_end_bytes, Some(205), "after it was killed");
        let told = Boundary { malloc_bytes: 300, arena_bytes: 5, ..Boundary::default() };
        recording.events.push(AgentEvent { time_ns: 60, pid: 1, message: told.into() });
        recording.events.push(AgentEvent { time_ns: 70, pid: 1, message: Bye::default().into() });
        recording.samples.push(look(1, 80, 7));
        assert_eq!(
            of(&recording).in_use_at_end_bytes,
            Some(305),
            "what it took down by itself is not its end"
        );
    }

    #[test]
    fn without_a_head_the_first_thing_recorded_is_the_start() {
        let look = |time_ns| SystemSample { time_ns, ..SystemSample::default() };
        let system = vec![look(60_000_000_000), look(64_500_000_000)];
        let summary = of(&Recording { system, ..Recording::default() });
        assert!((summary.duration_s - 4.5).abs() < 1e-9, "{}", summary.duration_s);
    }

    #[test]
    fn an_empty_recording_has_no_figures() {
        assert_eq!(of(&Recording::default()), Summary::default());
    }
}
