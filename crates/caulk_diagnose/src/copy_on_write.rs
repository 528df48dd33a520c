//! Copy-on-write: forked workers that hold nothing new, and share less and less with the process they come from.
//!
//! To read a Python object is to write its reference count, and to write is to copy the page. What was inherited turns
//! private, at the pace at which elements are read for the first time.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use caulk_core::wire::{Boundary, Contents, Holder};
use caulk_core::{Cause, Evidence, Growth, ProcessRef, Rate, Series, Site, SiteRole, State, Verdict};
use caulk_growth::{Judgement, Point};

use crate::baselines::Baselines;
use crate::claim::{Observed, Standing, Witness};
use crate::files::Files;
use crate::held::Held;
use crate::name;
use crate::part::Part;
use crate::process::Process;
use crate::units::{self, Scale, position};
use crate::{suspect, workers};

/// Readings from which there is anything to say, and how many of the last rises must all weigh: it settles by itself
/// once everything has been read.
const FEWEST: usize = 5;
const LAST: usize = 3;
/// Growth of one worker per unit that matters, in bytes.
const LEAST: f64 = 1024.0 * 1024.0;
/// Copies of one worker that are worth a word though they have come to an end, in bytes.
const MUCH: f64 = 32.0 * 1024.0 * 1024.0;

/// How one worker's copies grow.
struct Copies<'a> {
    process: &'a Process<'a>,
    /// The one of the workers that do the same whose containers were inspected.
    looked_into: &'a Process<'a>,
    scale: Scale,
    judgement: Judgement,
    /// Bytes that are the worker's alone at the last reading.
    private: u64,
    /// Boundaries up to there.
    boundaries: u32,
    /// Units from the first reading to the last.
    units: f64,
    /// Bytes copied in that time, where it has come to an end.
    ended: Option<f64>,
    /// Workers that do the same.
    count: usize,
}

/// A finding, and what the memory of all these workers does together.
pub(crate) fn findings(
    files: &Files<'_>,
    parts: &[Part<'_>],
    paths: &BTreeSet<String>,
) -> Vec<(Observed, Option<Verdict>)> {
    let mut told: BTreeSet<u32> = BTreeSet::new();
    let copies = parts.iter().filter_map(|part| Copies::of(part, parts));
    let mut copies: Vec<Copies<'_>> = copies.collect();
    // The one that was read furthest speaks for all; of several, one whose copying continues.
    let order = |copies: &Copies<'_>| {
        (Reverse(copies.boundaries), copies.ended.is_some(), copies.process.record.index)
    };
    copies.sort_by_key(order);
    copies.retain(|copies| workers::master(copies.process).is_some_and(|master| told.insert(master)));
    copies.iter().map(|copies| (copies.finding(files, paths), copies.verdict())).collect()
}

impl<'a> Copies<'a> {
    fn of(part: &Part<'a>, parts: &[Part<'a>]) -> Option<Self> {
        let process = part.process;
        let master = workers::master(process)?;
        let scale = part.judged.scale?;
        let read: Vec<_> =
            process.of_unit(scale.unit).filter(|boundary| boundary.private_bytes > 0).collect();
        let held = Held::of(process, scale);
        // What is newly in use lies in pages that were inherited and free, or in new ones: those are no copies.
        let shared = |boundary: &Boundary| {
            boundary.inherited_bytes as f64 + held.at(boundary).unwrap_or(boundary.rss_bytes as f64)
        };
        let first = shared(read.first()?);
        let point = |boundary: &&Boundary| Point { at: position(boundary), value: first - shared(boundary) };
        let points: Vec<Point> = read.iter().map(point).collect();
        let rises: Vec<f64> = points
            .windows(2)
            .map(|pair| (pair[1].value - pair[0].value) / (pair[1].at - pair[0].at).max(f64::MIN_POSITIVE))
            .collect();
        let weighs = |rises: &[f64]| rises.iter().all(|rise| *rise >= LEAST);
        let goes_on = weighs(&rises[rises.len().saturating_sub(LAST)..]);
        let was_read = rises.windows(LAST).any(weighs);
        // A full collection, or a look at the heap, copies much at once: that is not the pace.
        let pace = units::median(rises)?;
        let (from, to) = (*points.first()?, *points.last()?);
        let (copied, units) = (to.value - from.value, to.at - from.at);
        let turned = read.last()?.private_bytes.saturating_sub(read.first()?.private_bytes) as f64;
        let mut judgement = Baselines::of(points, scale).judge();
        judgement.slope = pace;
        judgement.interval = judgement.interval.map(|[low, high]| [low.min(pace), high.max(pace)]);
        let ended = (!goes_on).then_some(copied);
        let much = was_read && copied >= MUCH && turned >= copied / 2.0;
        let copies = read.len() >= FEWEST && if goes_on { pace >= LEAST } else { much };
        let sibling = |other: &&Part<'_>| {
            let seen = other.process.of_unit(scale.unit).count();
            workers::master(other.process) == Some(master) && 2 * seen > read.len()
        };
        let mut siblings = parts.iter().filter(sibling).map(|part| part.process);
        let count = siblings.clone().count();
        let looked_into = siblings.find(|sibling| container(sibling).is_some()).unwrap_or(process);
        let last = read.last()?;
        let boundaries = process.of_unit(scale.unit).filter(|boundary| boundary.seq <= last.seq).count();
        let (private, boundaries) = (last.private_bytes, boundaries as u32);
        copies.then_some(Self {
            process,
            looked_into,
            scale,
            judgement,
            private,
            boundaries,
            units,
            ended,
            count,
        })
    }

    fn reference(&self) -> ProcessRef {
        ProcessRef { count: self.count as u32, ..self.process.reference() }
    }

    /// Per unit, all workers together.
    fn rate(&self) -> f64 {
        self.judgement.slope * self.count as f64
    }

    fn interval(&self) -> Option<[f64; 2]> {
        self.judgement.interval.map(|bounds| bounds.map(|bound| bound.max(0.0) * self.count as f64))
    }

    /// What they do from here on; nothing where they have come to an end.
    fn verdict(&self) -> Option<Verdict> {
        self.ended.is_none().then(|| Verdict {
            process: self.reference(),
            series: Series::Pss,
            state: State::Grows,
            unit: self.scale.verdict_unit(),
            bytes_per_unit: self.rate(),
            bytes_per_epoch: self.scale.per_epoch(self.rate()),
            interval: self.interval(),
            level: 0.95,
            boundaries: self.boundaries,
            warmup: 0,
            more_needed: None,
            boundary_units: self.scale.spacing,
            last: (self.private * self.count as u64) as f64,
            unit_steps: self.scale.steps,
            unit_seconds: self.scale.seconds,
            limit: None,
            oom_in_s: None,
            text: "what was shared is copied, page by page; it ends when all has been read".into(),
        })
    }

    fn finding(&self, files: &Files<'_>, paths: &BTreeSet<String>) -> Observed {
        let container = container(self.looked_into);
        let made = container.and_then(|(holder, ..)| made(files, holder, paths));
        let expression = container.map_or("", |(holder, ..)| holder.expression.as_str());
        let written = made.as_ref().map_or(expression, |(_, target)| target.as_str()).to_owned();
        let weighs = self.ended.is_none() && container.is_some();
        let cause = Cause::Copied {
            container: container.map(|(.., len)| (written.clone(), len)),
            ended: self.ended.map(|copied| copied as u64),
            workers: self.count,
            rate: Rate::new(self.rate(), self.scale.verdict_unit()),
        };
        Observed {
            witness: if made.is_some() { Witness::Exact } else { Witness::OnlyLine },
            standing: if weighs { Standing::Whole } else { Standing::Light },
            sites: made.into_iter().map(|(site, _)| site).collect(),
            container: written,
            holder: expression.to_owned(),
            holder_path: container.map_or_else(Vec::new, |(holder, contents, _)| {
                let lengths = &self.looked_into.lengths[&contents.id];
                let kind = lengths.last().map_or_else(Default::default, |len| len.kind);
                suspect::path(holder, kind)
            }),
            process: self.reference(),
            growth: self.ended.is_none().then(|| Growth {
                interval: self.interval(),
                elements: container.map_or(0, |(.., len)| len),
                ..self.scale.growth(Series::Pss, self.rate())
            }),
            evidence: self.evidence(container),
            ..Observed::of(cause)
        }
    }

    fn evidence(&self, container: Option<(&Holder, &Contents, u64)>) -> Vec<Evidence> {
        let mut evidence = vec![Evidence::PrivateMemory {
            workers: self.count,
            copied_bytes: self.ended.map(|copied| copied as u64),
            rate: Rate::new(self.judgement.slope, self.scale.verdict_unit()),
            units: self.units,
            private_bytes: self.private,
        }];
        evidence.extend(
            container.map(|(_, contents, _)| Evidence::Pages {
                copied: contents.copied,
                sampled: contents.sampled,
            }),
        );
        evidence
    }
}

/// The container of which a worker has copied pages, and how long it is.
fn container<'a>(process: &'a Process<'a>) -> Option<(&'a Holder, &'a Contents, u64)> {
    let looks = process.contents.values().flatten();
    let contents = looks.filter(|contents| contents.copied > 0).max_by_key(|contents| contents.boundary)?;
    let len = process.lengths.get(&contents.id)?.last()?.len;
    Some((process.holders.get(&contents.id)?, contents, len))
}

/// Where the container is made, and how the line writes it.
fn made(files: &Files<'_>, holder: &Holder, paths: &BTreeSet<String>) -> Option<(Site, String)> {
    let owner = name::owner(holder);
    paths.iter().find_map(|path| {
        let creation = files.source(path)?.lines().creations_of(&holder.name, &owner).into_iter().next()?;
        Some((creation.spot.site(&files.display(path), SiteRole::Grows), creation.target))
    })
}
