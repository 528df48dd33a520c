//! What was observed of a run.

use caulk_core::{Ending, Finding, GpuUse, Recording, Scope, Severity, Verdict};

/// The answer to whether memory grows, with the verdict that decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemoryAnswer<'a> {
    /// For the whole run.
    Grows(&'a Verdict),
    /// Inside each epoch, and freed at its end.
    GrowsWithin(&'a Verdict),
    /// Not in use, but resident: the allocator or mapped files keep pages.
    Retains(&'a Verdict),
    /// No.
    Steady(&'a Verdict),
    /// Too early.
    Undecided(&'a Verdict),
    /// Nothing was measured.
    Unknown,
}

/// A run, judged.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// What was recorded.
    pub recording: &'a Recording,
    /// The answer that the report gives.
    pub memory: MemoryAnswer<'a>,
    /// What every series does.
    pub verdicts: &'a [Verdict],
    /// Leaks and advice.
    pub findings: &'a [Finding],
    /// Memory of each GPU.
    pub gpus: &'a [GpuUse],
    /// How the run ended, if that was seen.
    pub ending: Option<&'a Ending>,
    /// Epochs of the training process.
    pub epochs: Option<u64>,
    /// Whether a run continued from a checkpoint; `None` if nobody asked for one.
    pub restarted: Option<bool>,
}

impl<'a> Observed<'a> {
    /// Findings that are more than advice and more than a peak.
    pub(crate) fn leaks(&self) -> impl Iterator<Item = &'a Finding> + use<'a> {
        let leaks = |finding: &&Finding| finding.severity > Severity::Info && finding.scope != Scope::Peak;
        self.findings.iter().filter(leaks)
    }

    /// An agent was inside: containers, lines and gradients were measured.
    pub(crate) fn saw_inside(&self) -> bool {
        self.recording.processes.iter().any(|process| process.agent)
    }
}
