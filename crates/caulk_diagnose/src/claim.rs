//! What a detector claims: a cause, its line and process, the bytes, and how well it is witnessed. No words, no severity.

use caulk_core::{
    Cause, ChainStep, Evidence, Fix, Growth, LeakClass, Pinned, Place, ProcessRef, Scope, Series, Site,
};

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

/// A claim that something grows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// The pattern, by the signs that the detector has.
    pub(crate) class: LeakClass,
    /// Why memory grows.
    pub(crate) cause: Cause,
    /// How its line is known.
    pub(crate) witness: Witness,
    /// How its growth stands.
    pub(crate) standing: Standing,
    /// Its elements are large each, or were never measured.
    pub(crate) heavy: bool,
    /// Its share of the growth.
    pub(crate) share: Share,
    /// Another claim explains the same memory better.
    pub(crate) yields: bool,
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
    pub(crate) chain: Vec<ChainStep>,
    /// Whose memory.
    pub(crate) process: ProcessRef,
    /// How fast, in which series.
    pub(crate) growth: Option<Growth>,
    /// What it keeps alive.
    pub(crate) pinned: Option<Pinned>,
    /// The facts.
    pub(crate) evidence: Vec<Evidence>,
    /// What to change.
    pub(crate) fix: Option<Fix>,
    /// Other places with the same pattern.
    pub(crate) twins: Vec<Place>,
    /// Those that are left out.
    pub(crate) more_twins: usize,
}

impl Claim {
    /// A claim with nothing but a class: advice about the main process, for the whole run.
    pub(crate) fn of(class: LeakClass) -> Self {
        Self {
            class,
            cause: Cause::Class,
            witness: Witness::Signs,
            standing: Standing::Light,
            heavy: true,
            share: Share::Open,
            yields: false,
            scope: Scope::Run,
            sites: Vec::new(),
            container: String::new(),
            holder: String::new(),
            holder_path: Vec::new(),
            chain: Vec::new(),
            process: ProcessRef::main(),
            growth: None,
            pinned: None,
            evidence: Vec::new(),
            fix: None,
            twins: Vec::new(),
            more_twins: 0,
        }
    }

    /// Reduces it to a part of its growth.
    pub(crate) fn cut(&mut self, part: f64) {
        if let Some(growth) = &mut self.growth {
            growth.scale(part);
        }
        self.cause.scale(part);
    }

    /// Its growth in this series.
    pub(crate) fn growth_in(&self, series: Series) -> Option<&Growth> {
        self.growth.as_ref().filter(|growth| growth.series == series)
    }

    /// Bytes that it gains per unit in this series.
    pub(crate) fn bytes_in(&self, series: Series) -> f64 {
        self.growth_in(series).map_or(0.0, |growth| growth.bytes_per_unit)
    }
}
