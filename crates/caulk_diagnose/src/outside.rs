//! The whole tree, seen from outside: for programs that no agent could look into, or that never gave it the occasion.

use caulk_core::wire::{Boundary, Unit};
use caulk_core::{ProcessRef, Recording, Remark, Series, State, Verdict};
use caulk_growth::Point;

use crate::baselines::{Baselines, open};
use crate::limits::room;
use crate::loading;
use crate::process::Process;
use crate::units::Scale;

/// Time from which growth is called that, in seconds, from the start and since the program has loaded.
const SHORTEST: f64 = 20.0;
const SHORTEST_LOADED: f64 = 10.0;
/// Looks from which there is anything to say, and those at the end that are not taken for more than they are.
const FEWEST: usize = 3;
const LAST: usize = 2;

/// How the tree's resident memory moves by the second; `None` where a process has told for most of the run what it has
/// in use.
pub(crate) fn of_tree(recording: &Recording, processes: &[Process<'_>]) -> Option<Verdict> {
    // As a process ends it gives back what it holds.
    let looks = recording.system.iter().rev().skip(LAST).rev();
    let looks: Vec<Point> = looks
        .map(|sample| Point { at: seconds(recording, sample.time_ns), value: sample.tree_rss_bytes as f64 })
        .collect();
    let (first, last) = (looks.first()?.at, looks.last()?.at);
    let told = |process: &Process<'_>| {
        let scale = Scale::of(process)?;
        let boundaries: Vec<_> = process.of_unit(scale.unit).collect();
        let last = seconds(recording, boundaries.last()?.time_ns);
        (boundaries.len() >= FEWEST).then_some(last)
    };
    let silent = last - processes.iter().filter_map(told).fold(f64::NEG_INFINITY, f64::max);
    if looks.len() < FEWEST || silent <= (last - first) / 2.0 {
        return None;
    }
    let loaded = loading::until(recording).map_or(first, |time_ns| seconds(recording, time_ns));
    let before = looks.partition_point(|look| look.at <= loaded).min(looks.len() - FEWEST);
    let baselines = Baselines::of(looks[before..].to_vec(), Scale::BY_TIME);
    let mut judgement = baselines.judge();
    let missing = (SHORTEST - (last - first)).max(SHORTEST_LOADED - (last - loaded));
    if missing > 0.0 && matches!(judgement.state, State::Grows | State::Undecided) {
        let text =
            if judgement.slope > 0.0 { "rises, as programs do while they load" } else { "too short a time" };
        judgement = open(&judgement, baselines.count_of(missing), text);
    }
    let tree = ProcessRef { role: "tree".into(), index: 0, count: recording.processes.len().max(1) as u32 };
    Some(baselines.verdict(tree, Series::Rss, &judgement, room(recording, None, Series::Rss)))
}

/// Why there is nothing but that.
pub(crate) fn remark(verdict: &Verdict, processes: &[Process<'_>]) -> Option<Remark> {
    let open = matches!(verdict.state, State::Grows | State::Undecided);
    let inside = processes.iter().any(|process| process.hello.is_some());
    let unit = |boundary: &&Boundary| matches!(boundary.unit, Unit::Epoch | Unit::Steps);
    let few = processes.iter().any(|process| process.boundaries.iter().any(unit));
    (open && inside).then_some(Remark::GrowsOutside { few })
}

fn seconds(recording: &Recording, time_ns: u64) -> f64 {
    time_ns.saturating_sub(recording.info.start_ns) as f64 / 1e9
}
