//! The heap profile of one process: what stacks and lines have allocated and not given back, boundary by boundary.

use std::collections::BTreeMap;

use caulk_core::wire::heap::stack as flags;
use caulk_core::wire::{HeapFrame, HeapLive, HeapStack, Unit};
use caulk_core::{Sampled, State};
use caulk_growth::{Judgement, Point};

use crate::baselines::Baselines;
use crate::judged::Judged;
use crate::process::Process;
use crate::units::{Scale, position};

/// What some stacks held together at a boundary.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holding {
    boundary: u32,
    pub(crate) live: Sampled,
    blocks: u64,
}

/// What some stacks held together at every boundary. What is not told of a stack has not changed enough.
pub(crate) fn held(process: &Process<'_>, ids: &[u32]) -> Vec<Holding> {
    let mut known: BTreeMap<u32, (Sampled, u64)> = ids.iter().map(|id| (*id, Default::default())).collect();
    let at = |heap: &&HeapLive| {
        for row in &heap.rows {
            if let Some(known) = known.get_mut(&row.id) {
                let live = Sampled { bytes: row.bytes as f64, deviation: row.deviation as f64 };
                *known = (live, row.blocks);
            }
        }
        let live = known.values().map(|(live, _)| *live).sum();
        Holding { boundary: heap.boundary, live, blocks: known.values().map(|(_, blocks)| blocks).sum() }
    };
    process.heaps.iter().map(at).collect()
}

/// What some stacks held from beginning to end, of one process or of several, one after the other.
pub(crate) struct Course {
    /// At the last boundary.
    pub(crate) last: Sampled,
    /// Most that was held at a boundary.
    pub(crate) peak: Sampled,
    /// At the boundaries of the scale's unit.
    pub(crate) readings: Vec<Point>,
}

impl Course {
    /// `None` where no process has told of its heap.
    pub(crate) fn of<'p, 'a: 'p>(
        processes: impl IntoIterator<Item = (&'p Process<'a>, &'p [u32])>,
        scale: Scale,
    ) -> Option<Self> {
        let mut whole: Option<Self> = None;
        for (process, ids) in processes {
            let held = held(process, ids);
            let amounts = || held.iter().map(|held| held.live);
            let Some(last) = amounts().next_back() else { continue };
            let whole = whole.get_or_insert_with(|| Self { last, peak: last, readings: Vec::new() });
            whole.last = last;
            whole.peak = amounts().chain([whole.peak]).max_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
            whole.readings.extend(readings(process, scale, &held, |held| held.live.bytes));
        }
        whole
    }

    pub(crate) fn judge(&self, scale: Scale) -> Judgement {
        Baselines::of(self.readings.clone(), scale).judge()
    }

    /// Growth per unit, by trend and by sampling.
    pub(crate) fn growth(&self, judgement: &Judgement) -> Sampled {
        let ends = self.readings.first().zip(self.readings.last());
        let units = ends.map_or(0.0, |(first, last)| last.at - first.at);
        let interval = judgement.interval.unwrap_or([judgement.slope; 2]);
        let growth = Sampled::of_interval(judgement.slope, interval);
        // Samples that live on from boundary to boundary carry their error along: the trend does not see it.
        Sampled { deviation: growth.deviation.max(self.last.deviation / units.max(1.0)), ..growth }
    }
}

/// What is allocated at one line of the user's.
pub(crate) struct Line<'a> {
    pub(crate) frame: &'a HeapFrame,
    pub(crate) stacks: Vec<&'a HeapStack>,
    pub(crate) judgement: Judgement,
    pub(crate) blocks_per_unit: f64,
    /// At the last boundary.
    pub(crate) live: Sampled,
    /// Growth per unit, by trend and by sampling.
    pub(crate) growth: Sampled,
}

/// The stacks of every line of a process.
pub(crate) fn by_line<'a>(process: &Process<'a>) -> BTreeMap<(&'a str, u32), Vec<u32>> {
    let mut lines: BTreeMap<(&str, u32), Vec<u32>> = BTreeMap::new();
    for (id, stack) in &process.stacks {
        if let Some(frame) = blamed(stack) {
            lines.entry((&frame.file, frame.line)).or_default().push(*id);
        }
    }
    lines
}

/// All lines of a process.
pub(crate) fn of_process<'a>(process: &'a Process<'_>, scale: Scale) -> Vec<Line<'a>> {
    let lines = by_line(process);
    lines.values().filter_map(|ids| Line::of(process, scale, ids)).collect()
}

/// Part of the growth of the bytes in use that the profile must have.
const SEEN: f64 = 0.5;

/// Is most of what the bytes in use gain in no stack's allocations?
pub(crate) fn is_beside_profile(process: &Process<'_>, judged: &Judged) -> bool {
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    let (Some(scale), Some(in_use)) = (judged.scale, grows) else { return false };
    let point = |heap: &&HeapLive| {
        let boundary = process.boundary(heap.boundary).filter(|boundary| boundary.unit == scale.unit)?;
        Some(Point { at: position(boundary), value: heap.bytes as f64 })
    };
    let readings: Vec<Point> = process.heaps.iter().filter_map(point).collect();
    readings.len() > 2 && Baselines::of(readings, scale).judge().slope < SEEN * in_use.bytes_per_unit
}

/// Does what was sampled grow, in a process that does? Samples of few blocks make steps uneven, and small growth is level to
/// what judges readings with noise: then a trend that is surely upward is enough.
pub(crate) fn stays(judgement: &Judgement) -> bool {
    match judgement.state {
        State::Grows => true,
        State::Undecided | State::Flat => judgement.interval.is_some_and(|[low, _]| low > 0.0),
        _ => false,
    }
}

/// What these stacks hold more of per unit, in bytes; 0 where they are not known to.
pub(crate) fn gained(process: &Process<'_>, scale: Scale, ids: &[u32]) -> f64 {
    let judgement = Course::of([(process, ids)], scale).map(|course| course.judge(scale));
    judgement.filter(stays).map_or(0.0, |judgement| judgement.slope)
}

impl<'a> Line<'a> {
    fn of(process: &'a Process<'_>, scale: Scale, ids: &[u32]) -> Option<Self> {
        let stacks: Vec<&HeapStack> = ids.iter().map(|id| process.stacks[id]).collect();
        let frame = blamed(stacks.first()?)?;
        let course = Course::of([(process, ids)], scale)?;
        let blocks_per_unit = blocks_per_unit(process, scale, ids);
        let judgement = course.judge(scale);
        let growth = course.growth(&judgement);
        Some(Self { frame, stacks, judgement, blocks_per_unit, live: course.last, growth })
    }

    /// Does it grow, in a process that does?
    pub(crate) fn grows(&self) -> bool {
        stays(&self.judgement)
    }
}

/// Blocks that the stack which holds most gains per unit: a median of rates, since the sample of one tiny object stands
/// for thousands.
fn blocks_per_unit(process: &Process<'_>, scale: Scale, ids: &[u32]) -> f64 {
    let last = process.heaps.last().map_or(&[][..], |heap| &heap.rows);
    let of_line = last.iter().filter(|row| ids.contains(&row.id));
    let heaviest = of_line.max_by_key(|row| row.bytes).map(|row| row.id);
    let held = held(process, heaviest.as_slice());
    Baselines::of(readings(process, scale, &held, |held| held.blocks as f64), scale).judge().slope
}

/// A figure of every boundary of the scale's unit.
fn readings(
    process: &Process<'_>,
    scale: Scale,
    held: &[Holding],
    value: impl Fn(&Holding) -> f64,
) -> Vec<Point> {
    let of_unit = |unit: Unit| unit == scale.unit;
    let point = |held: &Holding| {
        let boundary = process.boundary(held.boundary).filter(|boundary| of_unit(boundary.unit))?;
        Some(Point { at: position(boundary), value: value(held) })
    };
    held.iter().filter_map(point).collect()
}

/// What was held at a boundary, or at the last one before it that tells.
pub(crate) fn at_boundary(held: &[Holding], boundary: u32) -> Option<Sampled> {
    held.iter().rev().find(|held| held.boundary <= boundary).map(|held| held.live)
}

/// The frame to blame: the innermost of the user's own, else the innermost.
pub(crate) fn blamed(stack: &HeapStack) -> Option<&HeapFrame> {
    let own = stack.frames.iter().find(|frame| is_of_user(&frame.file));
    let blamed = own.or(stack.frames.first())?;
    // What a thread has borrowed was lent from within the hook in the backward pass.
    let borrowed = stack.flags & flags::BORROWED != 0;
    let stopped = stack.frames.first().is_some_and(|frame| is_of_caulk(&frame.file));
    (borrowed || !stopped).then_some(blamed)
}

/// Files of what caulk puts into the program, wherever it is installed.
pub(crate) fn is_of_caulk(file: &str) -> bool {
    file.contains("/caulk/_")
}

/// Files that are not of the standard library, an installed package or the interpreter itself.
pub(crate) fn is_of_user(file: &str) -> bool {
    let installed = ["/site-packages/", "/dist-packages/", "/lib/python3"];
    !file.starts_with('<') && !is_of_caulk(file) && !installed.iter().any(|folder| file.contains(folder))
}
