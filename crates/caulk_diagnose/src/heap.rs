//! The heap profile: what stacks and lines have allocated and not given back, boundary by boundary.

use std::collections::BTreeMap;

use caulk_core::wire::heap::stack as flags;
use caulk_core::wire::{HeapFrame, HeapStack, Unit};
use caulk_core::{HeapTotal, LineUse, Recording, Sampled, StackFrame, StackUse, State};
use caulk_growth::{Judgement, Point};

use crate::Sources;
use crate::baselines::Baselines;
use crate::process::Process;
use crate::units::{Scale, position};

/// What some stacks held together at a boundary.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held {
    boundary: u32,
    pub(crate) live: Sampled,
    blocks: u64,
}

/// What some stacks held together at every boundary. What is not told of a stack has not changed enough.
pub(crate) fn held(process: &Process<'_>, ids: &[u32]) -> Vec<Held> {
    let mut known: BTreeMap<u32, (Sampled, u64)> = ids.iter().map(|id| (*id, Default::default())).collect();
    let at = |heap: &&caulk_core::wire::HeapLive| {
        for row in &heap.rows {
            if let Some(known) = known.get_mut(&row.id) {
                let live = Sampled { bytes: row.bytes as f64, deviation: row.deviation as f64 };
                *known = (live, row.blocks);
            }
        }
        let live = known.values().map(|(live, _)| *live).sum();
        Held { boundary: heap.boundary, live, blocks: known.values().map(|(_, blocks)| blocks).sum() }
    };
    process.heaps.iter().map(at).collect()
}

/// What is allocated at one line of the user's.
pub(crate) struct Line<'a> {
    pub(crate) frame: &'a HeapFrame,
    pub(crate) stacks: Vec<&'a HeapStack>,
    pub(crate) judgement: Judgement,
    pub(crate) blocks_per_unit: f64,
    /// At the last boundary.
    pub(crate) live: Sampled,
    /// Most that was held at a boundary.
    peak: Sampled,
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

impl<'a> Line<'a> {
    fn of(process: &'a Process<'_>, scale: Scale, ids: &[u32]) -> Option<Self> {
        let stacks: Vec<&HeapStack> = ids.iter().map(|id| process.stacks[id]).collect();
        let frame = blamed(stacks.first()?)?;
        let held = held(process, ids);
        let live = held.last()?.live;
        let peak = held.iter().map(|held| held.live).max_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
        let readings = readings(process, scale, &held, |held| held.live.bytes);
        let units = readings.first().zip(readings.last()).map_or(0.0, |(first, last)| last.at - first.at);
        let judgement = Baselines::of(readings, scale).judge();
        let interval = judgement.interval.unwrap_or([judgement.slope; 2]);
        let mut growth = Sampled::of_interval(judgement.slope, interval);
        // Samples that live on from boundary to boundary carry their error along: the trend does not see it.
        growth.deviation = growth.deviation.max(live.deviation / units.max(1.0));
        let blocks_per_unit = blocks_per_unit(process, scale, ids);
        Some(Self { frame, stacks, judgement, blocks_per_unit, live, peak, growth })
    }

    /// Does it grow, in a process that does? Samples of few blocks make steps uneven: then a trend that is surely upward
    /// is enough.
    pub(crate) fn grows(&self) -> bool {
        let upward = self.judgement.interval.is_some_and(|[low, _]| low > 0.0);
        match self.judgement.state {
            State::Grows => true,
            State::Undecided => upward,
            _ => false,
        }
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
fn readings(process: &Process<'_>, scale: Scale, held: &[Held], value: impl Fn(&Held) -> f64) -> Vec<Point> {
    let of_unit = |unit: Unit| unit == scale.unit;
    let point = |held: &Held| {
        let boundary = process.boundary(held.boundary).filter(|boundary| of_unit(boundary.unit))?;
        Some(Point { at: position(boundary), value: value(held) })
    };
    held.iter().filter_map(point).collect()
}

/// What was held at a boundary, or at the last one before it that tells.
pub(crate) fn at_boundary(held: &[Held], boundary: u32) -> Option<Sampled> {
    held.iter().rev().find(|held| held.boundary <= boundary).map(|held| held.live)
}

/// The frame to blame: the innermost of the user's own, else the innermost.
pub(crate) fn blamed(stack: &HeapStack) -> Option<&HeapFrame> {
    let own = stack.frames.iter().find(|frame| is_of_user(&frame.file));
    let blamed = own.or(stack.frames.first())?;
    // What a thread has borrowed was lent from within the hook in the backward pass.
    let borrowed = stack.flags & flags::BORROWED != 0;
    let by_caulk = stack.frames.first().is_some_and(|frame| is_of_caulk(&frame.file));
    (borrowed || !by_caulk).then_some(blamed)
}

/// Files of what caulk puts into the program, wherever it is installed.
fn is_of_caulk(file: &str) -> bool {
    file.contains("/caulk/_")
}

/// Files that are not of the standard library, an installed package or the interpreter itself.
pub(crate) fn is_of_user(file: &str) -> bool {
    let installed = ["/site-packages/", "/dist-packages/", "/lib/python3"];
    !file.starts_with('<') && !is_of_caulk(file) && !installed.iter().any(|folder| file.contains(folder))
}

/// What every line of the user's has allocated and not given back, the largest first; empty where the heap was not
/// sampled.
pub fn lines(recording: &Recording, sources: &dyn Sources) -> Vec<LineUse> {
    let processes = Process::all(recording);
    let mut all = Vec::new();
    for process in &processes {
        let scale = scale(process);
        let of_process = of_process(process, scale);
        all.extend(of_process.iter().filter(|line| is_of_user(&line.frame.file)).map(|line| LineUse {
            process: process.reference(),
            file: sources.display(&line.frame.file),
            line: line.frame.line,
            function: line.frame.function.clone(),
            rank: 0,
            live: line.live,
            peak: line.peak,
            growth: (line.judgement.state == State::Grows).then_some(line.growth),
            unit: scale.verdict_unit(),
        }));
    }
    rank(&mut all, |line| line.live, |line, rank| line.rank = rank);
    all.sort_by(|a, b| {
        let key = |line: &LineUse| (line.rank, line.process.clone(), line.file.clone(), line.line);
        key(a).cmp(&key(b))
    });
    all
}

/// What every process whose heap was sampled has allocated and not given back.
pub fn totals(recording: &Recording) -> Vec<HeapTotal> {
    let total = |process: &Process<'_>| {
        let last = process.heaps.last()?;
        let live = Sampled { bytes: last.bytes as f64, deviation: last.deviation as f64 };
        Some(HeapTotal { process: process.reference(), interval: last.interval, live })
    };
    Process::all(recording).iter().filter_map(total).collect()
}

/// A process that was killed before its first boundary has told what it held all the same.
fn scale(process: &Process<'_>) -> Scale {
    Scale::of(process).unwrap_or(Scale::BY_TIME)
}

/// Gives places from 1 by an amount, the largest first; what sampling cannot tell from the first of a place shares it.
pub(crate) fn rank<T>(all: &mut [T], amount: impl Fn(&T) -> Sampled, mut set: impl FnMut(&mut T, u32)) {
    all.sort_by(|a, b| amount(b).bytes.total_cmp(&amount(a).bytes));
    let (mut rank, mut first) = (1, all.first().map_or_else(Sampled::default, &amount));
    for (place, one) in (1..).zip(all.iter_mut()) {
        if first.exceeds(amount(one)) {
            (rank, first) = (place, amount(one));
        }
        set(one, rank);
    }
}

/// What every stack has allocated and not given back, with what was not told by stack.
pub fn stacks(recording: &Recording, sources: &dyn Sources) -> Vec<StackUse> {
    let processes = Process::all(recording);
    let mut all = Vec::new();
    for process in &processes {
        let Some(last) = process.heaps.last() else { continue };
        let scale = scale(process);
        let mut told = 0.0;
        for (id, stack) in &process.stacks {
            let held = held(process, &[*id]);
            let live = held.last().map_or_else(Sampled::default, |held| held.live);
            if live.bytes <= 0.0 {
                continue;
            }
            told += live.bytes;
            all.push(StackUse {
                process: process.reference(),
                frames: frames(stack, sources),
                rest: stack.flags & flags::OTHERS != 0,
                truncated: stack.flags & flags::TRUNCATED != 0,
                live,
                growth: growth(&readings(process, scale, &held, |held| held.live.bytes), scale),
                unit: scale.verdict_unit(),
            });
        }
        let rest = last.bytes as f64 - told;
        if rest > 0.0 {
            all.push(StackUse {
                process: process.reference(),
                frames: Vec::new(),
                rest: true,
                truncated: false,
                live: Sampled { bytes: rest, deviation: 0.0 },
                growth: 0.0,
                unit: scale.verdict_unit(),
            });
        }
    }
    all
}

fn frames(stack: &HeapStack, sources: &dyn Sources) -> Vec<StackFrame> {
    let frame = |frame: &HeapFrame| StackFrame {
        file: sources.display(&frame.file),
        line: frame.line,
        function: frame.function.clone(),
        own: is_of_user(&frame.file),
    };
    stack.frames.iter().rev().map(frame).collect()
}

/// Growth of one stack per unit. One of many that grow together may be too small to matter alone, so that its rate need
/// not matter, but must be above zero beyond doubt and must not have come to an end.
fn growth(readings: &[Point], scale: Scale) -> f64 {
    let judgement = Baselines::of(readings.to_vec(), scale).judge();
    let ended = matches!(judgement.state, State::Plateaus | State::Sawtooth);
    let rises = judgement.interval.is_some_and(|[low, _]| low > 0.0);
    if rises && !ended { judgement.slope } else { 0.0 }
}
