//! What is shown of a run, and how large it was.

use caulk_core::{Ending, Finding, GpuUse, Note, RunInfo, Scope, Severity, Verdict};
use serde::{Deserialize, Serialize};

use crate::excerpt::Excerpts;
use crate::headline::headline;
use crate::life::Life;
use crate::outlook::{Outlook, outlook};

/// How large the run was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Epochs of the training process; `None` where none could be told.
    pub epochs: Option<u64>,
    /// Optimizer steps of the training process; `None` where none were seen.
    pub steps: Option<u64>,
    /// From the start to the end, or to the last thing that was recorded, in seconds.
    pub duration_s: f64,
    /// Highest resident memory of the whole tree, in bytes: a page that processes share counts in each.
    pub peak_bytes: Option<u64>,
    /// Processes that were seen.
    pub processes: u32,
    /// CPU time that caulk took inside the program, in seconds.
    pub cost_s: Option<f64>,
    /// Longest pause that caulk made in the program, in seconds.
    pub longest_pause_s: Option<f64>,
    /// What the program's own process had in use when it was looked at last, in bytes: what malloc had handed out, counted
    /// block by block, and what pymalloc had mapped. `None` where that was not counted.
    pub in_use_at_end_bytes: Option<u64>,
}

/// Everything that is known of one run, ready to be shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Command of caulk that looked: `run`.
    pub command: String,
    /// Head of the recording, with the way the run ended.
    pub info: RunInfo,
    /// How it ended, where that was seen.
    pub ending: Option<Ending>,
    /// The run is not over.
    pub running: bool,
    /// Folder of the recording as a person would type it; empty where there is none.
    pub folder: String,
    /// What every series does.
    pub verdicts: Vec<Verdict>,
    /// Leaks, most harmful first.
    pub findings: Vec<Finding>,
    /// What the run's looks at each GPU come to; empty where it uses none.
    pub gpus: Vec<GpuUse>,
    /// What could not be looked at and why, and other lines for people.
    pub notes: Vec<Note>,
    /// What could not be read: files, parts of the recording.
    pub problems: Vec<String>,
    /// How large the run was.
    pub summary: Summary,
    /// Source lines that the findings point at.
    pub excerpts: Excerpts,
    /// Of a command that was started again: its lives, in order. Empty where there was one.
    pub lives: Vec<Life>,
}

impl Report {
    /// The answer in one sentence.
    pub(crate) fn sentence(&self) -> String {
        headline(outlook(&self.verdicts), !self.running, false, &self.findings).sentence
    }

    /// Whether a leak was observed: memory grows, or a finding that is more than advice says why it will.
    /// Peaks are findings, but no leaks.
    pub fn leak_found(&self) -> bool {
        let leaks = |finding: &Finding| finding.severity > Severity::Info && finding.scope != Scope::Peak;
        matches!(outlook(&self.verdicts), Outlook::Grows(_)) || self.findings.iter().any(leaks)
    }
}
