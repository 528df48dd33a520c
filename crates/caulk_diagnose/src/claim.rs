//! What a detector claims: a cause, its line and process, the bytes, and how well it is witnessed. No words, no severity.

mod relation;

use std::ops::Deref;

use caulk_core::{
    Cause, Evidence, Growth, LeakClass, Link, Pinned, Place, ProcessRef, Remedy, Scope, Series, Site,
};

pub(crate) use relation::{PatternAt, Relation, Relations, Stored, of_each, settle};

/// How the line of a claim is known, in the order in which claims get their share of the growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Witness {
    /// An exact count or reading.
    Exact,
    /// The armed trace saw the line grow it.
    TracedLine,
    /// The only line in source that fits.
    OnlyLine,
    /// The line allocates memory that is retained, by the heap profile or torch's record.
    HeapLine,
    /// A pattern in source.
    SourcePattern,
    /// Signs only.
    Signs,
}

/// How the growth of a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It does not matter to the memory of the process.
    Light,
    /// It matters, but it began late, is small or undecided, or lasts for an epoch.
    Partial,
    /// It matters for the whole run.
    Whole,
}

/// What a claim has of the growth of its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// The series was not judged to grow.
    Open,
    /// A fifth or more, alone or with others that are small.
    Leading,
    /// From a twentieth to a fifth.
    Some,
    /// Less.
    Little,
}

/// What a detector observed: a cause and its facts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observed {
    /// Why memory grows. Class and severity follow from it, see [`crate::table`].
    pub(crate) cause: Cause,
    /// How its line is known.
    pub(crate) witness: Witness,
    /// How its growth stands.
    pub(crate) standing: Standing,
    /// Its elements are large each, or were never measured.
    pub(crate) heavy: bool,
    /// For how long memory is kept.
    pub(crate) scope: Scope,
    /// Where; the first is the line that the report names.
    pub(crate) sites: Vec<Site>,
    /// The container as the first site writes it.
    pub(crate) container: String,
    /// The container from a root.
    pub(crate) holder: String,
    /// From a root to the container.
    pub(crate) holder_path: Vec<String>,
    /// From the value to the reason why it outlives the step.
    pub(crate) chain: Vec<Link>,
    /// Whose memory.
    pub(crate) process: ProcessRef,
    /// How fast, in which series.
    pub(crate) growth: Option<Growth>,
    /// What it keeps alive.
    pub(crate) pinned: Option<Pinned>,
    /// The facts.
    pub(crate) evidence: Vec<Evidence>,
    /// What to change.
    pub(crate) remedy: Option<Remedy>,
    /// Other places with the same pattern.
    pub(crate) twins: Vec<Place>,
    /// Those that are left out.
    pub(crate) more_twins: usize,
}

impl Observed {
    /// Its growth in this series.
    pub(crate) fn growth_in(&self, series: Series) -> Option<&Growth> {
        self.growth.as_ref().filter(|growth| growth.series == series)
    }

    /// Bytes that it gains per unit in this series.
    pub(crate) fn bytes_in(&self, series: Series) -> f64 {
        self.growth_in(series).map_or(0.0, |growth| growth.bytes_per_unit)
    }

    /// Bytes that it gains per unit.
    pub(crate) fn bytes_per_unit(&self) -> f64 {
        self.growth.as_ref().map_or(0.0, |growth| growth.bytes_per_unit)
    }
}

/// A claim that something grows. It can be read, and not changed: relations to other claims are stated and settled, see
/// [`Relation`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    observed: Observed,
    share: Share,
    yields: bool,
    in_worker: bool,
    pattern: Option<LeakClass>,
}

impl From<Observed> for Claim {
    fn from(observed: Observed) -> Self {
        Self { observed, share: Share::Open, yields: false, in_worker: false, pattern: None }
    }
}

impl Deref for Claim {
    type Target = Observed;

    fn deref(&self) -> &Observed {
        &self.observed
    }
}

impl Claim {
    /// Its share of the growth.
    pub(crate) const fn share(&self) -> Share {
        self.share
    }

    /// Does another claim explain the same memory better?
    pub(crate) const fn yields(&self) -> bool {
        self.yields
    }

    /// Does a worker keep it?
    pub(crate) const fn in_worker(&self) -> bool {
        self.in_worker
    }

    /// The class by which the source knows it closer.
    pub(crate) const fn pattern(&self) -> Option<LeakClass> {
        self.pattern
    }

    /// The facts.
    pub(crate) fn into_observed(self) -> Observed {
        self.observed
    }
}
