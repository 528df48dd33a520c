//! What xtask reads of a JSON report, by the published contract and nothing more.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// A report; keys that are not needed here are skipped.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Report {
    /// What the run was and what watching it took.
    #[serde(default)]
    pub(crate) summary: Summary,
    /// Judgements on series.
    #[serde(default)]
    pub(crate) verdicts: Vec<Verdict>,
    /// Leaks, most harmful first.
    pub(crate) findings: Vec<Finding>,
    /// Reasons why something was not inspected.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    /// What could not be read.
    #[serde(default)]
    pub(crate) problems: Vec<Problem>,
}

/// What watching a run took.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Summary {
    /// CPU time in the program, in seconds.
    #[serde(default)]
    pub(crate) cost_s: f64,
    /// The most at once, in seconds.
    #[serde(default)]
    pub(crate) longest_pause_s: f64,
}

/// Something that could not be read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Problem {
    /// What, for people.
    pub(crate) message: String,
}

/// The judgement on one series of one process.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Verdict {
    /// `in_use`, `rss`, ...
    pub(crate) series: String,
    /// `grows`, `flat`, ...
    pub(crate) state: String,
    /// What lies between boundaries: `epochs`, `steps`, `seconds`.
    #[serde(default)]
    pub(crate) unit: String,
    /// Boundaries judged.
    #[serde(default)]
    pub(crate) boundaries: u32,
    /// Units that lie between two of them.
    #[serde(default)]
    pub(crate) boundary_units: f64,
    /// Whose memory.
    #[serde(default)]
    pub(crate) process: Process,
}

/// Whose memory.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Process {
    /// `main`, `worker`, ...
    #[serde(default)]
    pub(crate) role: String,
}

/// How harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Advice.
    Info,
    /// Grows slowly, or likely.
    Warning,
    /// Grows for the whole run.
    Error,
}

/// One leak.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Finding {
    /// Leak class.
    pub(crate) class: String,
    /// How harmful.
    pub(crate) severity: Severity,
    /// One sentence.
    #[serde(default)]
    pub(crate) message: String,
    /// Where; the first is the reported line.
    #[serde(default)]
    pub(crate) sites: Vec<Site>,
    /// The container as the first site writes it.
    #[serde(default)]
    pub(crate) container: String,
    /// The container as a person would type it from a root.
    #[serde(default)]
    pub(crate) holder: String,
    /// How fast.
    #[serde(default)]
    pub(crate) growth: Option<Growth>,
    /// From what makes the value to why it outlives the step.
    #[serde(default)]
    pub(crate) chain: Vec<ChainStep>,
    /// What to change.
    #[serde(default)]
    pub(crate) fix: Option<Fix>,
}

/// One link of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ChainStep {
    /// As in [`Site`].
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: u32,
    /// The line's text.
    pub(crate) text: String,
    /// What happens there.
    pub(crate) note: String,
}

/// What to change.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fix {
    /// `safe`, `unsafe`, `display-only`.
    pub(crate) applicability: String,
    /// For people.
    pub(crate) description: String,
    /// How; only whether there are any matters here.
    #[serde(default)]
    pub(crate) edits: Vec<serde::de::IgnoredAny>,
}

/// A place in source.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Site {
    /// Relative to the folder in which caulk was started.
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: u32,
    /// Last line.
    #[serde(default)]
    pub(crate) end_line: u32,
    /// Of a notebook, the cell that the lines are of, from 1.
    #[serde(default)]
    pub(crate) cell: Option<u32>,
    /// Qualified name.
    #[serde(default)]
    pub(crate) function: String,
    /// The first line's text.
    #[serde(default)]
    pub(crate) text: String,
}

/// How fast.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Growth {
    /// What grows: `in_use`, `cuda_allocated`, ...
    #[serde(default)]
    pub(crate) series: String,
    /// Null where the unit is not the epoch.
    pub(crate) bytes_per_epoch: Option<f64>,
    /// Per unit, whatever it is.
    #[serde(default)]
    pub(crate) bytes_per_unit: f64,
}

impl Report {
    /// Reads a report.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("failed to read report `{}`", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("report `{}` breaks the contract", path.display()))
    }

    /// Findings that claim harm.
    pub(crate) fn alarms(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity >= Severity::Warning)
    }
}

impl Finding {
    /// Severity, class and first place, for people.
    pub(crate) fn told(&self) -> String {
        let place = self
            .sites
            .first()
            .map_or_else(|| "no line".into(), |site| format!("{}:{}", site.file, site.line));
        format!("{:?} {} at {place}", self.severity, self.class).to_lowercase()
    }

    /// Whether one of its sites is at a line of a file.
    pub(crate) fn names(&self, file: &str, line: u32) -> bool {
        self.sites.iter().any(|site| site.is_at(file, line))
    }
}

impl Site {
    /// Whether it covers a line of a file.
    pub(crate) fn is_at(&self, file: &str, line: u32) -> bool {
        same_file(&self.file, file) && (self.line..=self.end_line.max(self.line)).contains(&line)
    }
}

fn same_file(reported: &str, relative: &str) -> bool {
    let reported = reported.trim_start_matches("./");
    reported == relative || reported.strip_suffix(relative).is_some_and(|folder| folder.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, line: u32, expected: bool) {
        let site = Site { file: file.into(), line: 7, end_line: 9, ..Site::default() };
        assert_eq!(site.is_at("leaky/main.py", line), expected, "{file}:{line}");
    }

    #[test]
    fn a_site_covers_its_lines_of_its_file() {
        check("leaky/main.py", 7, true);
        check("./leaky/main.py", 9, true);
        check("/somewhere/leaky/main.py", 8, true);
        check("leaky/main.py", 10, false);
        check("sneaky/main.py", 7, false);
        check("clean/main.py", 7, false);
    }
}
