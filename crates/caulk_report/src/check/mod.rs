//! What `caulk check` found, in the formats that people, editors and continuous integration read.

mod concise;
mod github;
mod gitlab;
mod json;
mod markdown;
mod place;
mod sarif;
mod statistics;
mod text;

use caulk_core::{Applicability, Diagnostic, Finding, LeakClass, Problem, Severity, no_command};

pub use concise::concise;
pub use github::github;
pub use gitlab::gitlab;
pub use json::json;
pub use markdown::markdown;
pub use sarif::sarif;
pub use statistics::{statistics, statistics_json};
pub(crate) use text::summary_lines;
pub use text::{summary, text};

use crate::page::harmless;
use crate::{Cells, Excerpts};

/// Everything that one check has to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckReport {
    /// Leak patterns, most harmful first.
    pub findings: Vec<Diagnostic>,
    /// What a recorded run saw of each finding, where one was brought along; in the order of `findings`.
    pub observed: Vec<Option<Finding>>,
    /// Suppressions that silence nothing.
    pub notices: Vec<Problem>,
    /// What could not be looked at or done, `unread` and `left` included.
    pub problems: Vec<Problem>,
    /// Files that were not looked at, or not as a whole, each with the first reason.
    pub unread: Vec<Problem>,
    /// Not all of these are all right by the user.
    pub incomplete: bool,
    /// Files that have fixes and were left as they are, each with the reason.
    pub left: Vec<Problem>,
    /// Files that were looked at as a whole and reported on.
    pub files: usize,
    /// Findings that a comment silences.
    pub suppressed: usize,
    /// Hints that are not shown.
    pub hints: usize,
    /// Findings that the baseline knows.
    pub known: usize,
    /// What fixes did; `None` where none were asked for.
    pub fixed: Option<FixSummary>,
    /// Source lines that the findings point at.
    pub excerpts: Excerpts,
    /// Cells of notebooks.
    pub cells: Cells,
}

/// How many fixes were applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FixSummary {
    /// By rule.
    pub applied: Vec<(LeakClass, usize)>,
    /// Nothing was written: the changes were only shown.
    pub only_shown: bool,
}

impl FixSummary {
    /// All of them.
    pub fn total(&self) -> usize {
        self.applied.iter().map(|(_, count)| count).sum()
    }
}

impl CheckReport {
    /// Puts the most harmful findings first, those that a run saw before all others of their severity.
    pub fn sort(&mut self) {
        self.observed.resize(self.findings.len(), None);
        let findings = std::mem::take(&mut self.findings).into_iter();
        let mut pairs: Vec<_> = findings.zip(std::mem::take(&mut self.observed)).collect();
        pairs.sort_by(|(a, seen_a), (b, seen_b)| {
            let key = |diagnostic: &Diagnostic, seen: &Option<Finding>| {
                (std::cmp::Reverse(seen.is_some()), std::cmp::Reverse(diagnostic.severity))
            };
            let bytes = |seen: &Option<Finding>| {
                seen.as_ref()
                    .and_then(|finding| finding.growth.as_ref())
                    .map_or(0.0, |growth| growth.bytes_per_unit)
            };
            key(a, seen_a).cmp(&key(b, seen_b)).then(bytes(seen_b).total_cmp(&bytes(seen_a)))
        });
        (self.findings, self.observed) = pairs.into_iter().unzip();
    }

    /// Leaves out hints, and counts them. What a run saw stays.
    pub fn hide_hints(&mut self) {
        self.observed.resize(self.findings.len(), None);
        let findings = std::mem::take(&mut self.findings).into_iter();
        let pairs = findings.zip(std::mem::take(&mut self.observed));
        let (hints, shown): (Vec<_>, Vec<_>) =
            pairs.partition(|(finding, seen)| finding.severity == Severity::Info && seen.is_none());
        self.hints += hints.len();
        (self.findings, self.observed) = shown.into_iter().unzip();
    }

    /// Whether anything was found that is more than a hint.
    pub fn fails(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity > Severity::Info)
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Findings that a program can fix at exactly this level.
    fn fixable(&self, applicability: Applicability) -> usize {
        self.findings.iter().filter(|finding| fixable(finding) == Some(applicability)).count()
    }
}

/// At which level a program can fix a finding.
fn fixable(finding: &Diagnostic) -> Option<Applicability> {
    let fix = finding.fix.as_ref().filter(|fix| !fix.edits.is_empty())?;
    (fix.applicability != Applicability::DisplayOnly).then_some(fix.applicability)
}

/// `error`, `warning`, `info`.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// A problem in one line: `broken.py:3:5: expected ...`
pub fn place_and_message(problem: &Problem, cells: &Cells) -> String {
    no_command(&harmless(&place::problem(problem, cells))).into_owned()
}

/// A finding's message, the class's summary where it has none.
fn message(finding: &Diagnostic) -> &str {
    if finding.message.is_empty() { finding.class.summary() } else { &finding.message }
}
