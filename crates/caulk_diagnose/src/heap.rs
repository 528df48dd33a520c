//! The heap profile by line: what the user's lines have allocated and not given back, boundary by boundary.

use std::collections::BTreeMap;

use caulk_core::wire::{HeapFrame, HeapLive, HeapRow, HeapStack};
use caulk_core::{LineUse, Recording, State};
use caulk_growth::{Judgement, Point};

use crate::Sources;
use crate::baselines::Baselines;
use crate::process::Process;
use crate::units::{Scale, position};

/// What is allocated at one line of the user's.
pub(crate) struct Line<'a> {
    pub(crate) frame: &'a HeapFrame,
    pub(crate) stacks: Vec<&'a HeapStack>,
    pub(crate) judgement: Judgement,
    pub(crate) blocks_per_unit: f64,
    /// Standard deviation of its bytes at the end.
    pub(crate) deviation: f64,
    /// Most that was held at a boundary, in bytes.
    pub(crate) peak: f64,
}

/// All lines of a process.
pub(crate) fn of_process<'a>(process: &'a Process<'_>, scale: Scale) -> Vec<Line<'a>> {
    let mut by_line: BTreeMap<(&str, u32), Vec<u32>> = BTreeMap::new();
    for (id, stack) in &process.stacks {
        if let Some(frame) = blamed(stack) {
            by_line.entry((&frame.file, frame.line)).or_default().push(*id);
        }
    }
    let of = |ids: &Vec<u32>| {
        let stacks: Vec<&HeapStack> = ids.iter().map(|id| process.stacks[id]).collect();
        let frame = blamed(stacks.first()?)?;
        let points = points(process, scale, ids, |row| row.bytes);
        let last = process.heaps.last()?;
        let of_line = last.rows.iter().filter(|row| ids.contains(&row.id));
        let variance: f64 = of_line.map(|row| (row.deviation as f64).powi(2)).sum();
        let peak = points.iter().map(|point| point.value).fold(0.0, f64::max);
        let judgement = Baselines::of(points, scale).judge();
        Some(Line {
            peak,
            frame,
            stacks,
            judgement,
            blocks_per_unit: blocks_per_unit(process, scale, ids, last),
            deviation: variance.sqrt(),
        })
    };
    by_line.values().filter_map(of).collect()
}

/// Blocks that the stack which holds most gains per unit: a median of rates, since the sample of one tiny object stands
/// for thousands.
fn blocks_per_unit(process: &Process<'_>, scale: Scale, ids: &[u32], last: &HeapLive) -> f64 {
    let of_line = last.rows.iter().filter(|row| ids.contains(&row.id));
    let heaviest = of_line.max_by_key(|row| row.bytes).map(|row| row.id);
    let blocks = points(process, scale, heaviest.as_slice(), |row| row.blocks);
    Baselines::of(blocks, scale).judge().slope
}

/// What some stacks held together at the boundaries of a scale. What is not told of a stack has not changed enough.
fn points(process: &Process<'_>, scale: Scale, ids: &[u32], value: impl Fn(&HeapRow) -> u64) -> Vec<Point> {
    let mut held: BTreeMap<u32, u64> = ids.iter().map(|id| (*id, 0)).collect();
    let mut points = Vec::new();
    for heap in &process.heaps {
        for row in &heap.rows {
            if let Some(known) = held.get_mut(&row.id) {
                *known = value(row);
            }
        }
        if let Some(boundary) = process.boundary(heap.boundary).filter(|cut| cut.unit == scale.unit) {
            points.push(Point { at: position(boundary), value: held.values().sum::<u64>() as f64 });
        }
    }
    points
}

/// The frame to blame: the innermost of the user's own, else the innermost.
fn blamed(stack: &HeapStack) -> Option<&HeapFrame> {
    let own = stack.frames.iter().find(|frame| is_of_user(&frame.file));
    let blamed = own.or(stack.frames.first())?;
    let of_caulk = stack.frames.first().is_some_and(|frame| frame.file.contains("/caulk/_"));
    (!of_caulk).then_some(blamed)
}

/// Files that are not of the standard library, an installed package or the interpreter itself.
pub(crate) fn is_of_user(file: &str) -> bool {
    let installed = ["/site-packages/", "/dist-packages/", "/lib/python3"];
    !file.starts_with('<') && !installed.iter().any(|folder| file.contains(folder))
}

/// What every line of the user's has allocated and not given back, the largest first; empty where the heap was not
/// sampled.
pub fn lines(recording: &Recording, sources: &dyn Sources) -> Vec<LineUse> {
    let processes = Process::all(recording);
    let mut all = Vec::new();
    for process in &processes {
        let Some(scale) = Scale::of(process) else { continue };
        let of_process = of_process(process, scale);
        all.extend(of_process.iter().filter(|line| is_of_user(&line.frame.file)).map(|line| LineUse {
            process: process.reference(),
            file: sources.display(&line.frame.file),
            line: line.frame.line,
            function: line.frame.function.clone(),
            bytes: line.judgement.last,
            deviation: line.deviation,
            peak: line.peak,
            growth: (line.judgement.state == State::Grows).then_some(line.judgement.slope),
            unit: scale.verdict_unit(),
        }));
    }
    all.sort_by(|a, b| b.bytes.total_cmp(&a.bytes).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
    all
}
