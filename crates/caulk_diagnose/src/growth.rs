//! How fast one container or graph grows: in elements exactly, in bytes by what was found in it.

use caulk_core::State;
use caulk_core::wire::{ContainerKind, ContainerLen, Contents, Trait};
use caulk_growth::{Judgement, Point, judge_counts};

use crate::process::Process;
use crate::units::{self, Scale, median, position};

/// Times its mean growth over the time in which memory grows from which on something has grown for a part of it alone.
const SHORT: f64 = 2.0;

/// Censuses at which a container must not have been met any more before it is taken to be gone.
const GONE: usize = 3;

/// Is it a container that the last censuses, between units, have not met: let go of, or as good as empty? What grows under
/// a name, and what no census counts, is looked for beside them, where there is time.
pub(crate) fn is_gone(process: &Process<'_>, scale: Scale, id: u32) -> bool {
    let Some(last) = process.lengths.get(&id).and_then(|lengths| lengths.last()) else { return false };
    let later = process.of_unit(scale.unit).filter(|boundary| boundary.seq > last.boundary);
    let is_counted =
        !matches!(last.kind, ContainerKind::Graph | ContainerKind::Tensor | ContainerKind::Chain);
    is_counted && later.filter(|boundary| boundary.census_objects > 0).count() >= GONE
}

/// Is it a graph that was made anew between any two looks at it, oldest node and all? It gets longer, with the sequences of
/// a curriculum say, and reaches through no more than one step.
pub(crate) fn is_made_anew(looks: &[&Contents]) -> bool {
    let numbers = |look: &&Contents| {
        look.traits.iter().find_map(|fact| match fact {
            Trait::Numbers { oldest, newest } => Some((*oldest, *newest)),
            _ => None,
        })
    };
    let numbers: Option<Vec<(u64, u64)>> = looks.iter().map(numbers).collect();
    let anew = |pair: &[(u64, u64)]| pair[1].0 > pair[0].1;
    numbers.is_some_and(|numbers| numbers.len() > 1 && numbers.windows(2).all(anew))
}

/// What was counted last and where, on the axis of a scale: amid a unit, if the program was about to end.
fn newest(process: &Process<'_>, scale: Scale, lengths: &[&ContainerLen]) -> Option<(f64, u64)> {
    let newest = lengths.iter().max_by_key(|length| length.boundary)?;
    let at = units::interpolated(process, scale, process.boundary(newest.boundary)?)?;
    Some((at, newest.len))
}

/// The growth of one thing that was followed.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) judgement: Judgement,
    pub(crate) elements_per_unit: f64,
    pub(crate) bytes_per_unit: f64,
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) elements: u64,
    pub(crate) first: u64,
    pub(crate) points: usize,
    /// Units from the first to the last reading, and where that was.
    pub(crate) span: f64,
    pub(crate) at: f64,
    /// It has grown for a part of the time in which memory grows.
    pub(crate) is_late: bool,
}

impl Rate {
    /// Growth of the thing with this number; `None` where it was seen less than twice.
    pub(crate) fn of(process: &Process<'_>, scale: Scale, id: u32) -> Option<Self> {
        let lengths = process.lengths.get(&id)?;
        let in_scale = |length: &&ContainerLen| {
            let boundary =
                process.boundary(length.boundary).filter(|boundary| boundary.unit == scale.unit)?;
            Some(Point { at: position(boundary), value: length.len as f64 })
        };
        // What grew before the first of these, while data were read say, is no part of what is judged.
        let first = process.of_unit(scale.unit).next().map_or(0, |boundary| boundary.seq);
        let between = |length: &&ContainerLen| {
            let boundary = process.boundary(length.boundary).filter(|boundary| boundary.seq >= first)?;
            let at = units::interpolated(process, scale, boundary)?;
            Some(Point { at, value: length.len as f64 })
        };
        // Censuses may have been taken at finer boundaries than those that the process is judged at.
        let mut points: Vec<Point> = lengths.iter().filter_map(in_scale).collect();
        if points.len() < 3 {
            points = lengths.iter().filter_map(between).collect();
        }
        points.sort_by(|a, b| a.at.total_cmp(&b.at));
        points.dedup_by(|a, b| (a.at - b.at).abs() < f64::EPSILON);
        let (first, last) = (*points.first()?, *points.last()?);
        if points.len() < 2 || last.at <= first.at {
            return None;
        }
        let judgement = judge_counts(&points, scale.has_equal_phases());
        let (at, elements) = newest(process, scale, lengths)
            .filter(|(at, len)| *at > last.at && *len as f64 > last.value)
            .unwrap_or((last.at, last.value as u64));
        let kind = lengths[0].kind;
        let empty = Vec::new();
        let contents = process.contents.get(&id).unwrap_or(&empty);
        let per_element = bytes_per_element(kind, contents);
        // Few readings, or growth in jumps: the whole rise over the whole time says more than a median of rates.
        let mean = (last.value - first.value) / (last.at - first.at);
        let elements_per_unit = if judgement.slope > 0.0 { judgement.slope } else { mean };
        let graph =
            (kind == ContainerKind::Graph).then(|| saved_per_unit(process, scale, contents)).flatten();
        let bytes_per_unit = graph.unwrap_or(elements_per_unit * per_element);
        let spread = |bound: f64| {
            if elements_per_unit > 0.0 { bound / elements_per_unit * bytes_per_unit } else { 0.0 }
        };
        Some(Self {
            elements_per_unit,
            bytes_per_unit,
            interval: judgement.interval.map(|[low, high]| [spread(low.max(0.0)), spread(high)]),
            elements,
            first: first.value as u64,
            points: points.len(),
            span: last.at - first.at,
            at,
            is_late: false,
            judgement,
        })
    }

    /// No part grows faster than the whole: elements that share what they keep are counted too high by a sample.
    pub(crate) fn limit(&mut self, ceiling: f64) {
        if self.bytes_per_unit > ceiling {
            let share = ceiling / self.bytes_per_unit;
            self.bytes_per_unit = ceiling;
            self.interval = self.interval.map(|bounds| bounds.map(|bound| bound * share));
        }
    }

    /// Nothing has gained more since then than it holds: what began to grow long after memory did, and is as fast while it
    /// fills, has made up but a part.
    pub(crate) fn spread_since(&mut self, since: f64) {
        let most = self.elements as f64 / (self.at - since);
        if self.at > since && self.elements_per_unit > SHORT * most {
            self.is_late = true;
            self.limit(self.bytes_per_unit * most / self.elements_per_unit);
        }
    }

    /// Bytes that all its elements keep, if each keeps its own.
    pub(crate) fn kept(&self) -> f64 {
        if self.elements_per_unit > 0.0 {
            self.bytes_per_unit / self.elements_per_unit * self.elements as f64
        } else {
            0.0
        }
    }

    /// Takes each element to keep so many bytes.
    pub(crate) fn weigh(&mut self, per_element: u64) {
        let before = self.bytes_per_unit;
        self.bytes_per_unit = self.elements_per_unit * per_element as f64;
        let share = self.bytes_per_unit / before;
        self.interval = self.interval.map(|bounds| bounds.map(|bound| bound * share));
    }

    /// Forgets how much it weighs.
    pub(crate) fn forget_bytes(&mut self) {
        self.bytes_per_unit = 0.0;
        self.interval = None;
    }

    /// Does it grow, as far as exact counts can tell?
    pub(crate) fn grows(&self) -> bool {
        match self.judgement.state {
            State::Grows => true,
            State::Undecided => self.points <= 3 && self.has_grown(),
            _ => false,
        }
    }

    /// Is there more of it than there was, whatever it does now?
    pub(crate) fn has_grown(&self) -> bool {
        self.elements > self.first
    }
}

/// Bytes that one element keeps, over all looks.
pub(crate) fn bytes_per_element(kind: ContainerKind, contents: &[&Contents]) -> f64 {
    if matches!(kind, ContainerKind::Tensor | ContainerKind::Buffer) {
        return 1.0;
    }
    if contents.is_empty() {
        return 0.0;
    }
    // What was found by following what lasts is surer than what was found in the elements, and what elements share is told by
    // a walk over all of them.
    let surest = [lasts, is_sure, |look: &Contents| !counts_often(look)]
        .into_iter()
        .map(|sure| contents.iter().copied().filter(|look| sure(look)).collect::<Vec<_>>())
        .find(|sure| !sure.is_empty());
    let looks = surest.unwrap_or_else(|| contents.to_vec());
    // The first looks find few elements, which may share what later ones do not.
    median(looks.iter().map(|look| look.bytes_per_element as f64).collect()).unwrap_or(0.0)
}

fn lasts(contents: &Contents) -> bool {
    contents.traits.contains(&Trait::Lasts)
}

/// Elements that are in use elsewhere keep nothing that is known; at the next look they may be no more.
fn is_sure(contents: &Contents) -> bool {
    let in_use = contents.bytes_per_element == 0 && contents.traits.contains(&Trait::Shared);
    !in_use && !counts_often(contents)
}

/// Do elements share a graph of which this look saw what a few of them pin together?
pub(crate) fn counts_often(contents: &Contents) -> bool {
    contents.walked == 0 && contents.traits.contains(&Trait::Overlapping)
}

/// Growth of a graph's nodes and of what they have saved for backward.
fn saved_per_unit(process: &Process<'_>, scale: Scale, contents: &[&Contents]) -> Option<f64> {
    let at = |look: &Contents| {
        process.boundary(look.boundary).filter(|boundary| boundary.unit == scale.unit).map(position)
    };
    let points: Vec<(f64, f64)> = contents
        .iter()
        .filter_map(|look| Some((at(look)?, (look.bytes_per_element * look.graph_nodes) as f64)))
        .collect();
    let (first, last) = (points.first()?, points.last()?);
    (last.0 > first.0).then(|| ((last.1 - first.1) / (last.0 - first.0)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_in_use_do_not_count_for_the_weight() {
        let look = |bytes_per_element, traits: &[Trait]| Contents {
            bytes_per_element,
            traits: traits.to_vec(),
            ..Contents::default()
        };
        let (in_use, known) = (look(0, &[Trait::Shared]), look(700_000, &[Trait::Tensor]));
        let of = |looks: &[&Contents]| bytes_per_element(ContainerKind::List, looks).round() as u64;
        assert_eq!(of(&[&in_use, &in_use, &known]), 700_000);
        assert_eq!(of(&[&in_use, &in_use]), 0, "nothing else is known");
    }
}
