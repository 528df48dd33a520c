//! The result of `caulk heal`, as JSON has it.

use caulk_core::{LeakClass, VerdictUnit};
use caulk_heal::{EditCandidate, EditVerdict};
use caulk_report::{Outlook, Report, outlook};
use serde::Serialize;

/// Version of the document. Fields may be added under one number.
const SCHEMA: u32 = 1;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// Nothing grew from the beginning.
    NothingToHeal,
    /// Nothing grows any more.
    Healed,
    /// Something still grows.
    GrowthLeft,
    /// It cannot be judged.
    Undecided,
    /// The unedited command fails.
    CommandFailed,
    /// The unedited command prints something else in every run.
    NotComparable,
    /// A signal ended it.
    Interrupted,
    /// An error of caulk ended it.
    Failed,
}

/// Everything about it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Document {
    schema: u32,
    caulk: &'static str,
    command: &'static str,
    /// The command that ran.
    pub(crate) target: Vec<String>,
    pub(crate) outcome: Outcome,
    /// The reason, if the outcome alone does not explain it.
    pub(crate) reason: Option<String>,
    /// Folder with the runs and the patch.
    pub(crate) folder: String,
    pub(crate) runs: Vec<RunRow>,
    pub(crate) edits: Vec<EditRow>,
    /// Findings of the last run without an edit that could be tried.
    pub(crate) left: Vec<LeftRow>,
    pub(crate) compared: Option<ComparedRow>,
    /// The edits that were proven, as a patch; empty if there are none.
    pub(crate) patch: String,
    /// The patch was applied to the project.
    pub(crate) applied: bool,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunRow {
    pub(crate) number: usize,
    /// Places of the edits in it.
    pub(crate) edits: Vec<String>,
    /// The answer of the report: `grows`, `steady`, ...
    pub(crate) state: &'static str,
    /// The same for people.
    pub(crate) brief: String,
    pub(crate) bytes_per_unit: Option<f64>,
    pub(crate) interval: Option<[f64; 2]>,
    pub(crate) unit: Option<VerdictUnit>,
    pub(crate) peak_bytes: Option<u64>,
    pub(crate) epochs: Option<u64>,
    pub(crate) duration_s: f64,
    /// Memory in use at the boundaries of the training process, in bytes.
    pub(crate) in_use: Vec<u64>,
    /// caulk ended it.
    pub(crate) stopped: bool,
    /// What followed from it.
    pub(crate) result: String,
}

/// One edit.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EditRow {
    pub(crate) class: LeakClass,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) text: String,
    pub(crate) holder: String,
    pub(crate) description: String,
    /// `proven`, `unproven` or `refused`.
    pub(crate) verdict: &'static str,
    /// Why, unless it is proven.
    pub(crate) reason: Option<String>,
}

/// A finding that is left.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LeftRow {
    pub(crate) class: LeakClass,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) message: String,
    /// What to do, in words.
    pub(crate) advice: Option<String>,
}

/// How the output of the runs was compared.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ComparedRow {
    pub(crate) lines: usize,
    pub(crate) numbers: usize,
    /// Numbers that differ between two runs of the unedited program.
    pub(crate) masked: usize,
    /// Other files that are the same.
    pub(crate) files: Vec<String>,
}

impl Document {
    pub(super) fn new(target: Vec<String>, folder: String) -> Self {
        Self {
            schema: SCHEMA,
            caulk: env!("CARGO_PKG_VERSION"),
            command: "heal",
            target,
            outcome: Outcome::Undecided,
            reason: None,
            folder,
            runs: Vec::new(),
            edits: Vec::new(),
            left: Vec::new(),
            compared: None,
            patch: String::new(),
            applied: false,
        }
    }

    /// As text.
    ///
    /// # Errors
    /// Never, as all of it can be written as JSON.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The first run, and the last one with all edits that are kept.
    pub(super) fn before_and_after(&self) -> Option<(&RunRow, &RunRow)> {
        let after = self.runs.iter().rev().find(|run| run.result == KEPT)?;
        Some((self.runs.first()?, after))
    }
}

/// [`RunRow::result`] of a run whose edits are kept.
pub(super) const KEPT: &str = "kept";

impl RunRow {
    pub(super) fn of(number: usize, report: &Report, stopped: bool, in_use: Vec<u64>) -> Self {
        let found = outlook(&report.verdicts);
        let verdict = match found {
            Outlook::Grows(verdict) | Outlook::Steady(verdict) => Some(verdict),
            _ => None,
        };
        Self {
            number,
            edits: Vec::new(),
            state: found.as_str(),
            brief: found.brief(),
            bytes_per_unit: verdict.map(|verdict| verdict.bytes_per_unit),
            interval: verdict.and_then(|verdict| verdict.interval),
            unit: verdict.map(|verdict| verdict.unit),
            peak_bytes: report.summary.peak_bytes,
            epochs: report.summary.epochs,
            duration_s: report.summary.duration_s,
            in_use,
            stopped,
            result: String::new(),
        }
    }
}

impl EditRow {
    pub(super) fn of(candidate: &EditCandidate, verdict: &EditVerdict) -> Self {
        let (verdict, reason) = match verdict {
            EditVerdict::Proven => ("proven", None),
            EditVerdict::Unproven(reason) => ("unproven", Some(reason.clone())),
            EditVerdict::Refused(refusal) => ("refused", Some(refusal.to_string())),
        };
        Self {
            class: candidate.class,
            file: candidate.site.file.clone(),
            line: candidate.site.line,
            text: candidate.site.text.clone(),
            holder: candidate.holder.clone(),
            description: caulk_report::fix_of(&candidate.remedy).description,
            verdict,
            reason,
        }
    }
}
