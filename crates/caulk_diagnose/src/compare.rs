//! Two moments of one run compared, process by process: memory, types, containers, lines.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::wire::{Boundary, ContainerKind, Types, Unit};
use caulk_core::{
    Comparison, ContainerChange, LineChange, Moment, Recording, Role, Sampled, TypeChange, VerdictUnit, rank,
};

use crate::files::Sources;
use crate::generations::by_role;
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

/// Compares moments of every process that has them: where epochs of these numbers begin (where steps end; seconds where it
/// has neither), the first and the last one where not given.
///
/// # Errors
/// If the training process, or else every process, lacks one of the moments.
pub fn compare(
    recording: &Recording,
    sources: &dyn Sources,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<Vec<Comparison>, CompareError> {
    let processes = Process::all(recording);
    let (workers, others): (Vec<_>, Vec<_>) = processes
        .iter()
        .filter(|process| !process.boundaries.is_empty())
        .partition(|process| process.record.role == Role::Worker);
    let others = others.into_iter().map(|process| vec![process]);
    let mut groups: Vec<_> = others.chain(by_role(workers.into_iter())).collect();
    // Whose moments are meant is the training process; a program that spawns its ranks makes no steps.
    let makes_no_steps = |process: &Process| process.boundaries.iter().all(|boundary| boundary.steps == 0);
    groups.sort_by_key(|all| (all.iter().all(|one| makes_no_steps(one)), all[0].record.role != Role::Main));
    let mut found = Vec::new();
    for group in &groups {
        match of_group(group, sources, from, to) {
            Ok(comparison) => found.push(comparison),
            Err(error) if found.is_empty() && group[0].record.role == Role::Main => return Err(error),
            Err(error) if found.is_empty() && groups.len() == 1 => return Err(error),
            Err(_) => {}
        }
    }
    if found.is_empty() { Err(CompareError::NoMoments) } else { Ok(found) }
}

/// A boundary, and the process that cut it.
#[derive(Clone, Copy)]
struct Cut<'p, 'a> {
    process: &'p Process<'a>,
    boundary: &'a Boundary,
}

impl<'a> Cut<'_, 'a> {
    /// The last census by then.
    fn census(self) -> Option<&'a Types> {
        self.process.types.iter().copied().rev().find(|types| types.boundary <= self.boundary.seq)
    }
}

/// Compares two moments of a process, or of workers that followed one another. Two of them may work in one epoch, for
/// training and for validation: both moments are of the first.
fn of_group(
    all: &[&Process<'_>],
    sources: &dyn Sources,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<Comparison, CompareError> {
    let boundaries: Vec<&Boundary> =
        all.iter().flat_map(|process| process.boundaries.iter().copied()).collect();
    let scale = Scale::among(&boundaries).ok_or(CompareError::NoMoments)?;
    let cuts =
        all.iter().flat_map(|process| process.of_unit(scale.unit).map(|boundary| Cut { process, boundary }));
    let cuts: Vec<Cut<'_, '_>> = cuts.collect();
    let (Some(first), Some(last)) = (cuts.first(), cuts.last()) else {
        return Err(CompareError::NoMoments);
    };
    let from = at(&cuts, from.unwrap_or(number(first.boundary)))?;
    let to = at(&cuts, to.unwrap_or(number(last.boundary)))?;
    if from.boundary.time_ns >= to.boundary.time_ns {
        let unit = unit_name(scale.unit);
        return Err(CompareError::Order { unit, from: number(from.boundary), to: number(to.boundary) });
    }
    let pair = [from, to];
    let is_one = std::ptr::eq(from.process, to.process);
    let counted = from.census().zip(to.census());
    let counted = counted.filter(|(before, after)| !is_one || before.boundary < after.boundary);
    let counted_at = counted.and_then(|(before, after)| {
        let [before, after] =
            [(from, before), (to, after)].map(|(cut, types)| cut.process.boundary(types.boundary));
        Some([moment(before?), moment(after?)])
    });
    let in_use = |cut: Cut<'_, '_>| Held::of(cut.process, scale).at(cut.boundary).map(|bytes| bytes as u64);
    Ok(Comparison {
        process: from.process.reference(),
        moments: pair.map(|cut| moment(cut.boundary)),
        in_use: pair.map(in_use),
        resident: pair.map(|cut| cut.boundary.rss_bytes),
        private: private(pair),
        cuda_allocated: pair.map(|cut| cut.boundary.cuda_allocated_bytes),
        counted_at,
        types: counted.map_or_else(Vec::new, |(before, after)| types(before, after)),
        containers: if is_one { containers(pair) } else { containers_by_name(pair) },
        lines: lines(sources, pair),
    })
}

/// What was private by then, at the last of the boundaries at which that was looked at; nothing of the later moment where
/// that was the same look.
fn private(pair: [Cut<'_, '_>; 2]) -> [Option<u64>; 2] {
    let [from, to] = pair.map(|cut| {
        let by_then = cut.process.boundaries.iter().rev().filter(|look| look.seq <= cut.boundary.seq);
        by_then.copied().find(|look| look.private_bytes > 0)
    });
    let is_new = |look: &&Boundary| from.is_none_or(|before| !std::ptr::eq(before, *look));
    [from, to.filter(is_new)].map(|look| look.map(|look| look.private_bytes))
}

/// The boundary of a number: an epoch's own; of steps and seconds, which are not all looked at, the last one by then.
fn at<'p, 'a>(cuts: &[Cut<'p, 'a>], wanted: u64) -> Result<Cut<'p, 'a>, CompareError> {
    let (first, last) = (cuts[0].boundary, cuts[cuts.len() - 1].boundary);
    let exact = cuts.iter().find(|cut| number(cut.boundary) == wanted);
    let before = || cuts.iter().rev().find(|cut| number(cut.boundary) <= wanted);
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

fn types(before: &Types, after: &Types) -> Vec<TypeChange> {
    let names = before.rows.iter().chain(&after.rows).map(|row| row.name.as_str());
    let names: BTreeSet<&str> = names.collect();
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

/// Containers whose length differs, by their numbers: one process knows them again whatever they are called.
fn containers([from, to]: [Cut<'_, '_>; 2]) -> Vec<ContainerChange> {
    let process = to.process;
    let change = |id: u32| {
        let length = [from, to].map(|cut| length_at(process, id, cut.boundary.seq));
        change(process, id, length)
    };
    heaviest(process.ids().into_iter().filter_map(change).collect())
}

/// A container of one of two processes, and how long it was.
type Known<'p, 'a> = (u64, &'p Process<'a>, u32);

/// The same of two processes: by their names, and of those of one name the longest. What has no name cannot be known again.
fn containers_by_name(pair: [Cut<'_, '_>; 2]) -> Vec<ContainerChange> {
    let mut by_name: BTreeMap<&str, [Option<Known<'_, '_>>; 2]> = BTreeMap::new();
    for (index, cut) in pair.into_iter().enumerate() {
        for id in cut.process.ids() {
            let name = cut.process.holders.get(&id).map(|holder| holder.expression.as_str());
            let length = length_at(cut.process, id, cut.boundary.seq);
            if let (Some(name), Some(length)) = (name.filter(|name| !name.is_empty()), length) {
                let longest = &mut by_name.entry(name).or_default()[index];
                if longest.is_none_or(|(known, ..)| known < length) {
                    *longest = Some((length, cut.process, id));
                }
            }
        }
    }
    let change = |both: [Option<Known<'_, '_>>; 2]| {
        let (_, process, id) = both[1].or(both[0])?;
        change(process, id, both.map(|known| known.map(|(length, ..)| length)))
    };
    heaviest(by_name.into_values().filter_map(change).collect())
}

/// How long a container was at a boundary, where it was known by then.
fn length_at(process: &Process<'_>, id: u32, seq: u32) -> Option<u64> {
    process.lengths[&id].iter().rev().find(|length| length.boundary <= seq).map(|length| length.len)
}

fn change(process: &Process<'_>, id: u32, length: [Option<u64>; 2]) -> Option<ContainerChange> {
    let holder = process.holders.get(&id).copied();
    if length[0] == length[1] || holder.is_some_and(of_caulk) {
        return None;
    }
    let kind = process.lengths[&id].last().map_or(ContainerKind::List, |length| length.kind);
    let contents = process.contents.get(&id).map_or(&[][..], Vec::as_slice);
    let each = bytes_per_element(kind, contents);
    Some(ContainerChange {
        holder: holder.map_or_else(String::new, |holder| holder.expression.clone()),
        kind: kind.as_str().into(),
        length,
        bytes: difference(length).filter(|_| each > 0.0).map(|gained| gained as f64 * each),
    })
}

fn heaviest(mut changes: Vec<ContainerChange>) -> Vec<ContainerChange> {
    changes.sort_by(|a, b| {
        let key = |change: &ContainerChange| change.bytes.map_or(0.0, f64::abs);
        key(b).total_cmp(&key(a)).then_with(|| a.holder.cmp(&b.holder))
    });
    changes
}

fn lines(sources: &dyn Sources, pair: [Cut<'_, '_>; 2]) -> Vec<LineChange> {
    // A process that had no profile yet held something all the same.
    let [Some(before), Some(after)] = pair.map(live_by_line) else { return Vec::new() };
    let places: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
    let mut changes = Vec::new();
    for (file, line) in places {
        let known = [&before, &after].map(|lines| lines.get(&(file, line)));
        let Some((function, _)) = known[1].or(known[0]) else { continue };
        let live = known.map(|known| known.map_or_else(Sampled::default, |(_, live)| *live));
        let [before, after] = live;
        let change =
            Sampled { bytes: after.bytes - before.bytes, deviation: before.deviation.hypot(after.deviation) };
        if before != after {
            let (file, function) = (sources.display(file), (*function).to_owned());
            changes.push(LineChange { file, line, function, rank: 0, live, change });
        }
    }
    rank(&mut changes, |line| line.change, |line, rank| line.rank = rank);
    changes.sort_by(|a, b| (a.rank, &a.file, a.line).cmp(&(b.rank, &b.file, b.line)));
    changes
}

/// By file and line: the function, and what is held.
type LiveByLine<'p> = BTreeMap<(&'p str, u32), (&'p str, Sampled)>;

/// What each line of the user's held; `None` where the process had no profile by then.
fn live_by_line<'p>(cut: Cut<'p, '_>) -> Option<LiveByLine<'p>> {
    cut.process.heaps.iter().find(|heap| heap.boundary <= cut.boundary.seq)?;
    let of_line = |((file, line), ids): ((&'p str, u32), Vec<u32>)| {
        let frame = heap::blamed(cut.process.stacks.get(&ids[0])?).filter(|frame| is_of_user(&frame.file))?;
        let live = heap::at_boundary(&held(cut.process, &ids), cut.boundary.seq).unwrap_or_default();
        Some(((file, line), (frame.function.as_str(), live)))
    };
    Some(by_line(cut.process).into_iter().filter_map(of_line).collect())
}
