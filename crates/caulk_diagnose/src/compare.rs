//! Two moments of one run compared, process by process: memory, types, containers, lines.

use caulk_core::wire::{Boundary, ContainerKind, Types, Unit};
use caulk_core::{
    Comparison, ContainerChange, LineChange, Moment, Recording, Role, Sampled, TypeChange, VerdictUnit, rank,
};

use crate::Sources;
use crate::growth::bytes_per_element;
use crate::heap::{self, by_line, held, is_of_user};
use crate::held::Held;
use crate::process::Process;
use crate::suspect::of_caulk;
use crate::units::Scale;

/// Why two moments of a run cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// No agent ever reported.
    #[error("this run has no moments that can be compared: it was seen from outside only")]
    NoMoments,
    /// There is no such moment.
    #[error("there is no {unit} {number} in this run\nhint: it has {known}")]
    NotThere {
        /// `epoch`, `step`, `second`.
        unit: &'static str,
        /// What was asked for.
        number: u64,
        /// What there is: `epochs 1 to 8`.
        known: String,
    },
    /// The later moment is not later.
    #[error("{unit} {from} is not before {unit} {to}")]
    Order {
        /// `epoch`, `step`, `second`.
        unit: &'static str,
        /// The earlier moment,
        from: u64,
        /// ... the later one.
        to: u64,
    },
}

/// Compares moments of every process that has them: numbers of epochs (steps, seconds where it has no epochs), the first
/// and the last one where not given.
///
/// # Errors
/// If the training process, or else every process, lacks one of the moments.
pub fn compare(
    recording: &Recording,
    sources: &dyn Sources,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<Vec<Comparison>, CompareError> {
    let mut processes = Process::all(recording);
    processes.retain(|process| !process.boundaries.is_empty());
    // Whose moments are meant is the training process; a program that spawns its ranks makes no steps.
    let makes_no_steps = |process: &Process| process.boundaries.iter().all(|boundary| boundary.steps == 0);
    processes.sort_by_key(|process| (makes_no_steps(process), process.record.role != Role::Main));
    let mut found = Vec::new();
    for process in &processes {
        match of_process(process, sources, from, to) {
            Ok(comparison) => found.push(comparison),
            Err(error) if found.is_empty() && process.record.role == Role::Main => return Err(error),
            Err(error) if found.is_empty() && processes.len() == 1 => return Err(error),
            Err(_) => {}
        }
    }
    if found.is_empty() { Err(CompareError::NoMoments) } else { Ok(found) }
}

fn of_process(
    process: &Process<'_>,
    sources: &dyn Sources,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<Comparison, CompareError> {
    let scale = Scale::of(process).ok_or(CompareError::NoMoments)?;
    let boundaries: Vec<&Boundary> = process.of_unit(scale.unit).collect();
    let (Some(first), Some(last)) = (boundaries.first(), boundaries.last()) else {
        return Err(CompareError::NoMoments);
    };
    let from = from.map_or(Ok(*first), |number| at(&boundaries, number))?;
    let to = to.map_or(Ok(*last), |number| at(&boundaries, number))?;
    if from.seq >= to.seq {
        let unit = unit_name(scale.unit);
        return Err(CompareError::Order { unit, from: number(from), to: number(to) });
    }
    let pair = [from, to];
    let in_use = Held::of(process, scale);
    let counted = pair.map(|boundary| last_census(process, boundary.seq));
    let counted = counted[0].zip(counted[1]).filter(|(before, after)| before.boundary < after.boundary);
    Ok(Comparison {
        process: process.reference(),
        moments: pair.map(moment),
        in_use: pair.map(|boundary| in_use.at(boundary).map(|bytes| bytes as u64)),
        resident: pair.map(|boundary| boundary.rss_bytes),
        cuda_allocated: pair.map(|boundary| boundary.cuda_allocated_bytes),
        counted_at: counted.and_then(|(before, after)| {
            Some([moment(process.boundary(before.boundary)?), moment(process.boundary(after.boundary)?)])
        }),
        types: counted.map_or_else(Vec::new, |(before, after)| types(before, after)),
        containers: containers(process, [from.seq, to.seq]),
        lines: lines(process, sources, [from.seq, to.seq]),
    })
}

/// The boundary of a number: an epoch's own; of steps and seconds, which are not all looked at, the last one by then.
fn at<'a>(boundaries: &[&'a Boundary], wanted: u64) -> Result<&'a Boundary, CompareError> {
    let (first, last) = (boundaries[0], boundaries[boundaries.len() - 1]);
    let exact = boundaries.iter().find(|boundary| number(boundary) == wanted);
    let before = || boundaries.iter().rev().find(|boundary| number(boundary) <= wanted);
    let found = match first.unit {
        Unit::Epoch => exact,
        _ => exact.or_else(before).filter(|_| wanted <= number(last)),
    };
    found.copied().ok_or_else(|| {
        let unit = unit_name(first.unit);
        let known = format!("{unit}s {} to {}", number(first), number(last));
        CompareError::NotThere { unit, number: wanted, known }
    })
}

/// Epochs are counted from 1 for people; steps and seconds say how many are over.
fn number(boundary: &Boundary) -> u64 {
    boundary.index + u64::from(boundary.unit == Unit::Epoch)
}

fn moment(boundary: &Boundary) -> Moment {
    let unit = match boundary.unit {
        Unit::Epoch => VerdictUnit::Epoch,
        Unit::Steps => VerdictUnit::Steps,
        Unit::Seconds => VerdictUnit::Seconds,
    };
    Moment { unit, number: number(boundary) }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Epoch => "epoch",
        Unit::Steps => "step",
        Unit::Seconds => "second",
    }
}

fn last_census<'a>(process: &Process<'a>, seq: u32) -> Option<&'a Types> {
    process.types.iter().copied().rev().find(|types| types.boundary <= seq)
}

fn types(before: &Types, after: &Types) -> Vec<TypeChange> {
    let names = before.rows.iter().chain(&after.rows).map(|row| row.name.as_str());
    let names: std::collections::BTreeSet<&str> = names.collect();
    let row = |types: &Types, name: &str| {
        types.rows.iter().find(|row| row.name == name).map(|row| (row.count, row.bytes))
    };
    let change = |name: &str| {
        let pair = [row(before, name), row(after, name)];
        TypeChange {
            name: name.to_owned(),
            objects: pair.map(|row| row.map(|(count, _)| count)),
            bytes: pair.map(|row| row.map(|(_, bytes)| bytes)),
        }
    };
    let mut changes: Vec<TypeChange> = names.into_iter().map(change).collect();
    // The largest types are told, and those that grew fastest: what is no longer among them did not grow, and what was
    // not yet was smaller than they.
    changes.retain(|change| change.objects[1].is_some() && change.objects[0] != change.objects[1]);
    let gained = |[before, after]: [Option<u64>; 2]| after.unwrap_or(0).abs_diff(before.unwrap_or(0));
    changes.sort_by_key(|change| std::cmp::Reverse(gained(change.bytes)));
    changes
}

/// Later less earlier, where both are known.
fn difference([before, after]: [Option<u64>; 2]) -> Option<i64> {
    Some(after? as i64 - before? as i64)
}

fn containers(process: &Process<'_>, [from, to]: [u32; 2]) -> Vec<ContainerChange> {
    let mut changes = Vec::new();
    for id in process.ids() {
        let lengths = &process.lengths[&id];
        let at =
            |seq: u32| lengths.iter().rev().find(|length| length.boundary <= seq).map(|length| length.len);
        let length = [at(from), at(to)];
        let holder = process.holders.get(&id).copied();
        if length[0] == length[1] || holder.is_some_and(of_caulk) {
            continue;
        }
        let kind = lengths.last().map_or(ContainerKind::List, |length| length.kind);
        let contents = process.contents.get(&id).map_or(&[][..], Vec::as_slice);
        let each = bytes_per_element(kind, contents);
        changes.push(ContainerChange {
            holder: holder.map_or_else(String::new, |holder| holder.expression.clone()),
            kind: kind.as_str().into(),
            length,
            bytes: difference(length).filter(|_| each > 0.0).map(|gained| gained as f64 * each),
        });
    }
    changes.sort_by(|a, b| {
        let key = |change: &ContainerChange| change.bytes.map_or(0.0, f64::abs);
        key(b).total_cmp(&key(a)).then_with(|| a.holder.cmp(&b.holder))
    });
    changes
}

fn lines(process: &Process<'_>, sources: &dyn Sources, moments: [u32; 2]) -> Vec<LineChange> {
    let mut changes = Vec::new();
    for ((file, line), ids) in by_line(process) {
        let frame = process.stacks.get(&ids[0]).and_then(|stack| heap::blamed(stack));
        let Some(frame) = frame.filter(|frame| is_of_user(&frame.file)) else { continue };
        let held = held(process, &ids);
        let live = moments.map(|seq| heap::at_boundary(&held, seq).unwrap_or_default());
        let [before, after] = live;
        let change =
            Sampled { bytes: after.bytes - before.bytes, deviation: before.deviation.hypot(after.deviation) };
        if before != after {
            let (file, function) = (sources.display(file), frame.function.clone());
            changes.push(LineChange { file, line, function, rank: 0, live, change });
        }
    }
    rank(&mut changes, |line| line.change, |line, rank| line.rank = rank);
    changes.sort_by(|a, b| (a.rank, &a.file, a.line).cmp(&(b.rank, &b.file, b.line)));
    changes
}
