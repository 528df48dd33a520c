//! What lines and stacks of the program hold of the heap, for people: processes that follow one another are joined.

use std::collections::BTreeMap;

use caulk_core::wire::heap::stack as flags;
use caulk_core::wire::{HeapFrame, HeapStack};
use caulk_core::{HeapTotal, LineUse, Recording, Sampled, StackFrame, StackUse, State, rank};

use crate::files::Sources;
use crate::generations::Generations;
use crate::heap::{self, Course, is_of_user};
use crate::process::Process;
use crate::units::Scale;

/// What every line of the user's has allocated and not given back, the largest first; empty where the heap was not
/// sampled.
pub fn lines(recording: &Recording, sources: &dyn Sources) -> Vec<LineUse> {
    let processes = Process::all(recording);
    let mut all: Vec<LineUse> = Generations::join(recording, &processes)
        .iter()
        .flat_map(|generations| of_generations(generations, sources))
        .collect();
    // What those that have ended hold is nothing: they take the place of what they held.
    let weight = |line: &LineUse| if line.ended { line.peak } else { line.live };
    rank(&mut all, weight, |line, rank| line.rank = rank);
    all.sort_by(|a, b| {
        let key = |line: &LineUse| (line.rank, line.process.clone(), line.file.clone(), line.line);
        key(a).cmp(&key(b))
    });
    all
}

fn of_generations(generations: &Generations<'_, '_>, sources: &dyn Sources) -> Vec<LineUse> {
    let scale = generations.scale();
    let mut frames: BTreeMap<(&str, u32), &HeapFrame> = BTreeMap::new();
    let mut stacks: BTreeMap<(&str, u32), Ids> = BTreeMap::new();
    for (at, process) in generations.all.iter().enumerate() {
        for (line, ids) in heap::by_line(process) {
            let frame = ids.first().and_then(|id| heap::blamed(process.stacks[id]));
            let Some(frame) = frame.filter(|frame| is_of_user(&frame.file)) else { continue };
            frames.insert(line, frame);
            stacks.entry(line).or_insert_with(|| Ids::none(generations)).0[at] = ids;
        }
    }
    let line_use = |(line, ids): (&(&str, u32), &Ids)| {
        let (frame, course) = (frames.get(line)?, ids.course(generations, scale)?);
        // A line of a stack that is known for what it has allocated alone held nothing when it was looked at.
        if course.peak.bytes <= 0.0 {
            return None;
        }
        let judgement = course.judge(scale);
        Some(LineUse {
            process: generations.reference(),
            file: sources.display(&frame.file),
            line: frame.line,
            function: frame.function.clone(),
            rank: 0,
            live: if generations.lives { course.last } else { Sampled::default() },
            ended: !generations.lives,
            peak: course.peak,
            growth: (judgement.state == State::Grows).then(|| course.growth(&judgement)),
            unit: scale.verdict_unit(),
        })
    };
    stacks.iter().filter_map(line_use).collect()
}

/// What every process whose heap was sampled has allocated and not given back, where it was there at the end.
pub fn totals(recording: &Recording) -> Vec<HeapTotal> {
    let processes = Process::all(recording);
    let total = |generations: &Generations<'_, '_>| {
        let process = generations.living()?;
        let last = process.heaps.last()?;
        let live = Sampled { bytes: last.bytes as f64, deviation: last.deviation as f64 };
        let boundary = process.boundary(last.boundary).or_else(|| process.boundaries.last().copied());
        Some(HeapTotal {
            process: generations.reference(),
            interval: last.interval,
            live,
            resident_bytes: boundary.map(|boundary| boundary.rss_bytes).filter(|bytes| *bytes > 0),
            file_bytes: boundary.map_or(0, |boundary| boundary.file_bytes),
        })
    };
    Generations::join(recording, &processes).iter().filter_map(total).collect()
}

/// Stacks of each generation.
struct Ids(Vec<Vec<u32>>);

impl Ids {
    fn none(generations: &Generations<'_, '_>) -> Self {
        Self(vec![Vec::new(); generations.all.len()])
    }

    fn course(&self, generations: &Generations<'_, '_>, scale: Scale) -> Option<Course> {
        let ids = self.0.iter().map(Vec::as_slice);
        Course::of(generations.all.iter().copied().zip(ids), scale)
    }

    /// Bytes that these stacks have allocated, by the last profile of each process.
    fn allocated(&self, generations: &Generations<'_, '_>) -> f64 {
        let of = |(process, ids): (&&Process<'_>, &Vec<u32>)| {
            let rows = process.heaps.last().map_or(&[][..], |heap| &heap.allocated);
            rows.iter().filter(|row| ids.contains(&row.id)).map(|row| row.bytes as f64).sum::<f64>()
        };
        generations.all.iter().zip(&self.0).map(of).sum()
    }
}

/// A stack as it is shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    frames: Vec<StackFrame>,
    rest: bool,
    truncated: bool,
    borrowed: bool,
}

impl Shown {
    fn of(stack: &HeapStack, sources: &dyn Sources) -> Self {
        let frame = |frame: &HeapFrame| StackFrame {
            file: sources.display(&frame.file),
            line: frame.line,
            function: frame.function.clone(),
            own: is_of_user(&frame.file),
        };
        Self {
            frames: stack.frames.iter().rev().map(frame).collect(),
            rest: stack.flags & flags::OTHERS != 0,
            truncated: stack.flags & flags::TRUNCATED != 0,
            borrowed: stack.flags & flags::BORROWED != 0,
        }
    }
}

/// Bytes that every stack has allocated and bytes that it still holds, and one entry for everything without a stack.
pub fn stacks(recording: &Recording, sources: &dyn Sources) -> Vec<StackUse> {
    let processes = Process::all(recording);
    let joined = Generations::join(recording, &processes);
    joined.iter().flat_map(|generations| stacks_of(generations, sources)).collect()
}

fn stacks_of(generations: &Generations<'_, '_>, sources: &dyn Sources) -> Vec<StackUse> {
    let scale = generations.scale();
    let stack_use = |shown: Shown, live: Sampled, growth: f64, allocated: f64| StackUse {
        process: generations.reference(),
        frames: shown.frames,
        rest: shown.rest,
        truncated: shown.truncated,
        borrowed: shown.borrowed,
        live,
        growth,
        allocated,
        unit: scale.verdict_unit(),
    };
    let mut stacks: BTreeMap<Shown, Ids> = BTreeMap::new();
    for (at, process) in generations.all.iter().enumerate() {
        for (id, stack) in &process.stacks {
            let ids = stacks.entry(Shown::of(stack, sources)).or_insert_with(|| Ids::none(generations));
            ids.0[at].push(*id);
        }
    }
    let mut all = Vec::new();
    for (shown, ids) in stacks {
        let Some(course) = ids.course(generations, scale) else { continue };
        let live = if generations.lives { course.last } else { Sampled::default() };
        let growth = growth(&course, scale);
        let allocated = ids.allocated(generations).max(live.bytes);
        if live.bytes > 0.0 || growth > 0.0 || allocated > 0.0 {
            all.push(stack_use(shown, live, growth, allocated));
        }
    }
    let told = |bytes: fn(&StackUse) -> f64| -> f64 { all.iter().map(bytes).sum() };
    let lives = generations.living().and_then(|process| process.heaps.last());
    let live = lives.map_or(0.0, |heap| heap.bytes as f64) - told(|stack| stack.live.bytes);
    let heaps = generations.all.iter().filter_map(|process| process.heaps.last());
    let allocated: f64 = heaps.map(|heap| heap.allocated_bytes as f64).sum();
    let allocated = allocated - told(|stack| stack.allocated);
    if live > 0.0 || allocated > 0.0 {
        let shown = Shown { frames: Vec::new(), rest: true, truncated: false, borrowed: false };
        let live = Sampled { bytes: live.max(0.0), deviation: 0.0 };
        all.push(stack_use(shown, live, 0.0, allocated.max(live.bytes)));
    }
    all
}

/// Growth of one stack per unit. One of many that grow together may be too small to matter alone, so that its rate need
/// not matter, but must be above zero beyond doubt and must not have come to an end.
fn growth(course: &Course, scale: Scale) -> f64 {
    let judgement = course.judge(scale);
    let ended = matches!(judgement.state, State::Plateaus | State::Sawtooth);
    let rises = judgement.interval.is_some_and(|[low, _]| low > 0.0);
    if rises && !ended { judgement.slope } else { 0.0 }
}
