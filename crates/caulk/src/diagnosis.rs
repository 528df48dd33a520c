//! The one door to the judgement: a recording and the program's sources in, verdicts and findings out.

use caulk_core::{Finding, Recording, Verdict};

use crate::sources::Disk;

/// What the recording says.
#[derive(Debug, Default)]
pub(crate) struct Diagnosis {
    /// What every series does.
    pub(crate) verdicts: Vec<Verdict>,
    /// Leaks, most harmful first.
    pub(crate) findings: Vec<Finding>,
    /// What could not be looked at, and what was looked at in vain.
    pub(crate) notes: Vec<String>,
}

/// Judges a recording. Nothing is judged yet: reports say that too little was measured.
pub(crate) fn diagnose(recording: &Recording, sources: &Disk) -> Diagnosis {
    let _ = (recording, sources);
    Diagnosis::default()
}
