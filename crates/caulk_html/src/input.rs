//! What a page is made from.

use caulk_core::{Comparison, GpuUse, Limit, ProcessRef, Recording, Sampled, Series, StackUse};

/// How good or bad a statement is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mood {
    /// Memory grows, or the run died.
    Bad,
    /// Something to look at.
    Warn,
    /// Nothing grows.
    Good,
    /// Neither.
    #[default]
    Plain,
}

/// The answer to "does it grow?".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageAnswer {
    /// How good or bad it is.
    pub mood: Mood,
    /// How the run ended, if not well.
    pub ended: Option<(Mood, String)>,
    /// The answer in a few words: `grows 16.5 MB per epoch`.
    pub brief: String,
    /// The answer in one sentence.
    pub sentence: String,
    /// The figures that it rests on.
    pub details: Vec<String>,
}

/// A label and its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// What it is about.
    pub label: String,
    /// The text.
    pub text: String,
}

impl Row {
    /// A row of these.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into() }
    }
}

/// One verdict in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerdictRow {
    /// Whose memory.
    pub process: String,
    /// What was measured.
    pub series: String,
    /// What it does.
    pub state: String,
    /// How fast.
    pub rate: String,
    /// The interval of the rate.
    pub interval: String,
    /// Where it is now.
    pub last: String,
    /// When it reaches which limit.
    pub forecast: String,
}

/// The line of the deciding verdict through its readings.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Whose.
    pub process: ProcessRef,
    /// What was measured.
    pub series: Series,
    /// Level at the last reading, in bytes.
    pub last: f64,
    /// Growth in bytes per second.
    pub slope: f64,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// In words: `16.5 MB per epoch (15.3 MB to 17.2 MB)`.
    pub text: String,
}

/// When memory reaches its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The limit.
    pub limit: Limit,
    /// The limit in words.
    pub name: String,
    /// Seconds from the end of the recording, earliest and latest.
    pub until_s: [f64; 2],
    /// In a sentence.
    pub text: String,
}

/// One line of source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLine {
    /// Number, from 1.
    pub number: u32,
    /// Text.
    pub text: String,
    /// It is the line of the finding.
    pub marked: bool,
}

/// Lines around a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// File, line and function.
    pub place: String,
    /// What happens there.
    pub role: String,
    /// The lines; empty without source.
    pub lines: Vec<SourceLine>,
}

/// Lines of one file that change together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// File.
    pub file: String,
    /// Number of the first line taken out, or before which lines are put in.
    pub line: u32,
    /// Lines taken out.
    pub removed: Vec<String>,
    /// Lines put in.
    pub added: Vec<String>,
}

/// One finding in words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FindingCard {
    /// How harmful: `error`, `warning`, `info`.
    pub severity: &'static str,
    /// How sure: `proved`, `likely`, `suspected`.
    pub confidence: &'static str,
    /// Name of the leak class.
    pub class: String,
    /// What is wrong.
    pub message: String,
    /// Where, source included.
    pub excerpts: Vec<Excerpt>,
    /// What keeps it, as a person would type it.
    pub holder: String,
    /// From a root to the container.
    pub path: Vec<String>,
    /// Elements of the container: `4 elements each time, 28 at the last look`.
    pub elements: String,
    /// What the elements keep: `graphs of 4,000 nodes`.
    pub graph: String,
    /// Growth, process, bytes pinned.
    pub rows: Vec<Row>,
    /// From what makes the value to why it lives on.
    pub flow: Vec<Row>,
    /// What it rests on.
    pub evidence: Vec<Row>,
    /// Other places with the same pattern.
    pub twins: Vec<String>,
    /// The change in words.
    pub fix: String,
    /// The change as text.
    pub hunks: Vec<Hunk>,
    /// The change may alter behavior.
    pub is_unsafe: bool,
}

/// What one line holds of the heap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineRow {
    /// Whose memory; empty for the main process.
    pub process: String,
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Function.
    pub function: String,
    /// Source; empty without.
    pub text: String,
    /// At the last boundary.
    pub live: Sampled,
    /// The most at a boundary.
    pub peak: Sampled,
    /// Growth per unit as people read it, if it grows.
    pub growth: Option<Sampled>,
}

/// Everything that a page shows.
#[derive(Debug, Clone)]
pub struct PageInput<'a> {
    /// Name of the run.
    pub title: String,
    /// The command, secrets redacted.
    pub command: String,
    /// What to know before reading: a truncated recording, a run that continues.
    pub banners: Vec<String>,
    /// The answer.
    pub answer: PageAnswer,
    /// Key figures, the most important first.
    pub figures: Vec<Row>,
    /// About the run: host, start, versions.
    pub about: Vec<Row>,
    /// Everything that was measured.
    pub recording: &'a Recording,
    /// What the run's looks at each GPU come to.
    pub gpus: &'a [GpuUse],
    /// The deciding verdict's line.
    pub level: Option<Level>,
    /// When memory reaches its limit.
    pub forecast: Option<Forecast>,
    /// Every verdict.
    pub verdicts: Vec<VerdictRow>,
    /// Every finding, the most harmful first.
    pub findings: Vec<FindingCard>,
    /// The heap by line, the largest first.
    pub lines: Vec<LineRow>,
    /// What the growth of lines and stacks is per, and the factor from the recording's unit.
    pub per: (&'static str, f64),
    /// What changed between the first and the last census.
    pub changes: &'a [Comparison],
    /// The heap by stack.
    pub stacks: &'a [StackUse],
    /// What was not measured, and why.
    pub notes: Vec<String>,
    /// Lives of a command that was started again.
    pub lives: Vec<String>,
}
