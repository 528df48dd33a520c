//! One leak: where, what, why it lives, how fast it grows, what to change. Serialises to the JSON contract.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{Cause, Evidence, LeakClass, Link, MadeAt, ProcessRef, Rate, Remedy, Series, VerdictUnit};

/// Places that share a cause are listed at each of them: more of them would be of no more use, and make a report as long as
/// the square of their number.
pub const MOST_TWINS: usize = 20;

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Seen growing at run time and found in source at the same line.
    Proved,
    /// Seen growing, the line from one witness.
    Likely,
    /// Signs only.
    Suspected,
}

/// How harmful a finding is. Ordered from harmless to harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; never changes an exit code.
    Info,
    /// Grows within an epoch, or only likely.
    Warning,
    /// Grows for the whole run.
    Error,
}

/// For how long the memory is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// For ever.
    Run,
    /// Until the epoch ends.
    Epoch,
    /// Only the high-water mark.
    Peak,
    /// For ever, once for each object that somebody makes: how many there are is not known here.
    Object,
}

/// What a site does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SiteRole {
    /// Makes the container grow.
    Grows,
    /// Allocates what is kept.
    Allocates,
    /// Creates the container without a bound.
    Creates,
    /// Where a release is missing.
    ReleasesMissing,
}

/// A place in source. Lines and columns are 1-based, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Site {
    /// What it does.
    pub role: SiteRole,
    /// Path relative to the directory where caulk was started, when below it.
    pub file: String,
    /// First line.
    pub line: u32,
    /// Last line.
    pub end_line: u32,
    /// First column.
    pub column: u32,
    /// Qualified name of the enclosing function, `<module>` outside of one.
    pub function: String,
    /// The first line's text, without indentation.
    pub text: String,
    /// Cell of a notebook, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cell: Option<u32>,
}

/// How fast it grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// What the rates are per.
    pub unit: VerdictUnit,
    /// What grows: [`Series::InUse`] unless it lies elsewhere or is no memory.
    #[serde(default)]
    pub series: Series,
    /// The finding's own bytes per epoch; `None` for other units. What is in use is given as what it costs in resident memory,
    /// pages that the allocator keeps around it included.
    pub bytes_per_epoch: Option<f64>,
    /// The same per unit.
    pub bytes_per_unit: f64,
    /// ... of which so many bytes are the series' own, told where pages make up a tenth of that or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use_per_unit: Option<f64>,
    /// Elements (graph nodes, bytes of a buffer) per epoch; `None` for other units.
    pub elements_per_epoch: Option<f64>,
    /// Elements per unit.
    pub elements_per_unit: f64,
    /// Interval of `bytes_per_unit`.
    pub interval: Option<[f64; 2]>,
    /// Elements at the end.
    pub elements: u64,
}

impl Growth {
    /// Growth of so many bytes per unit, and per epoch where that is the unit, which is no growth of elements.
    pub const fn of_bytes(unit: VerdictUnit, series: Series, per_unit: f64, per_epoch: Option<f64>) -> Self {
        Self {
            unit,
            series,
            bytes_per_epoch: per_epoch,
            bytes_per_unit: per_unit,
            in_use_per_unit: None,
            elements_per_epoch: None,
            elements_per_unit: 0.0,
            interval: None,
            elements: 0,
        }
    }

    /// Bytes per unit.
    pub fn rate(&self) -> Rate {
        Rate::new(self.bytes_per_unit, self.unit)
    }

    /// A part of it.
    #[must_use]
    pub fn scaled(mut self, part: f64) -> Self {
        self.bytes_per_unit *= part;
        self.bytes_per_epoch = self.bytes_per_epoch.map(|rate| rate * part);
        self.in_use_per_unit = self.in_use_per_unit.map(|rate| rate * part);
        self.elements_per_unit *= part;
        self.elements_per_epoch = self.elements_per_epoch.map(|rate| rate * part);
        self.interval = self.interval.map(|bounds| bounds.map(|bound| bound * part));
        self
    }
}

/// What the container keeps alive beyond its own elements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pinned {
    /// Autograd nodes.
    pub graph_nodes: u64,
    /// Bytes that those nodes saved for backward, each storage once.
    pub saved_bytes: u64,
    /// Those of [`Self::saved_bytes`] that were ever touched; the rest is reserved, and releasing it frees nothing.
    #[serde(default)]
    pub touched_bytes: u64,
    /// Bytes of the nodes themselves, by what one usually takes.
    #[serde(default)]
    pub node_bytes: u64,
    /// Some nodes keep what nobody but torch can see, or elements share graphs and not all were gone through:
    /// [`Self::saved_bytes`] is a lower bound.
    #[serde(default)]
    pub least: bool,
    /// Bytes of tensor storages, each once.
    #[serde(default)]
    pub tensor_bytes: u64,
    /// Distinct storages behind [`Self::saved_bytes`]; 0 where they were not counted over the whole container.
    #[serde(default)]
    pub storages: u64,
    /// Types of the nodes with the part of each in all of them, the most frequent first.
    #[serde(default)]
    pub node_types: Vec<(String, f64)>,
    /// The forward lines that made the storages, most bytes first, as far as the heap was sampled.
    #[serde(default)]
    pub made_at: Vec<MadeAt>,
    /// Not all was gone through: what was not is taken to be like what was.
    #[serde(default)]
    pub estimated: bool,
}

/// Another place with the same pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Path, as in [`Site::file`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub text: String,
}

/// What a finding consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The pattern.
    pub class: LeakClass,
    /// How sure.
    pub confidence: Confidence,
    /// For how long it is kept.
    pub scope: Scope,
    /// How harmful.
    pub severity: Severity,
    /// Why memory grows: the facts of the message.
    pub cause: Cause,
    /// Where; the first is the line that the report names. Empty if no line is known.
    pub sites: Vec<Site>,
    /// The container as the first site writes it.
    pub container: String,
    /// The container as a person would type it from a root.
    pub holder: String,
    /// From a root to the container.
    pub holder_path: Vec<String>,
    /// From what makes the value to why it outlives the step.
    pub chain: Vec<Link>,
    /// Whose memory.
    pub process: ProcessRef,
    /// How fast.
    pub growth: Option<Growth>,
    /// What it keeps alive.
    pub pinned: Option<Pinned>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to change.
    pub remedy: Option<Remedy>,
    /// Other places with the same pattern, [`MOST_TWINS`] at most in a diagnosis.
    pub twins: Vec<Place>,
    /// So many more of them are left out.
    pub more_twins: usize,
}

impl Settled {
    /// A finding with nothing but a class: advice about the main process, suspected for the whole run.
    pub fn of(class: LeakClass) -> Self {
        Self {
            class,
            confidence: Confidence::Suspected,
            scope: Scope::Run,
            severity: Severity::Info,
            cause: Cause::Class,
            sites: Vec::new(),
            container: String::new(),
            holder: String::new(),
            holder_path: Vec::new(),
            chain: Vec::new(),
            process: ProcessRef::main(),
            growth: None,
            pinned: None,
            evidence: Vec::new(),
            remedy: None,
            twins: Vec::new(),
            more_twins: 0,
        }
    }
}

/// One leak that was observed. It can be read, and not changed: `caulk_diagnose` makes it in one place (`settle.rs`).
#[derive(Debug, Clone, PartialEq)]
pub struct Finding(Settled);

impl Finding {
    /// The finding, with at most [`MOST_TWINS`] twins; the others are counted.
    pub fn new(mut settled: Settled) -> Self {
        settled.more_twins += settled.twins.len().saturating_sub(MOST_TWINS);
        settled.twins.truncate(MOST_TWINS);
        Self(settled)
    }
}

impl std::ops::Deref for Finding {
    type Target = Settled;

    fn deref(&self) -> &Settled {
        &self.0
    }
}

/// By what reports order findings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Harm {
    /// How harmful.
    pub severity: Severity,
    /// For how long memory is kept.
    pub scope: Scope,
    /// The pattern.
    pub class: LeakClass,
    /// How sure.
    pub confidence: Confidence,
    /// Bytes that it gains.
    pub bytes_per_unit: f64,
}

impl Harm {
    /// The order of reports: by severity, growth of the whole run before that of an epoch, a line that only allocates after
    /// a known holder, by bytes, and the surer ones first.
    pub fn in_order(&self, other: &Self) -> Ordering {
        let keeps =
            |one: &Self| one.class != LeakClass::NativeGrowth || one.confidence != Confidence::Suspected;
        let key = |one: &Self| (one.severity, one.scope == Scope::Run, keeps(one));
        let by_bytes = other.bytes_per_unit.total_cmp(&self.bytes_per_unit);
        key(other).cmp(&key(self)).then(by_bytes).then(self.confidence.cmp(&other.confidence))
    }
}

/// Puts findings into the order of reports.
pub fn most_harmful_first(findings: &mut [Finding]) {
    let harm = |finding: &Finding| Harm {
        severity: finding.severity,
        scope: finding.scope,
        class: finding.class,
        confidence: finding.confidence,
        bytes_per_unit: finding.growth.as_ref().map_or(0.0, |growth| growth.bytes_per_unit),
    };
    findings.sort_by(|a, b| harm(a).in_order(&harm(b)));
}
