//! What came of the scenarios on a device: which leaks were found there, and what was claimed of clean programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use crate::zoo::run::Outcome;
use crate::zoo::score::{self, Found};
use crate::zoo::truth::{LeakSite, Side, Truth};

/// What the script wrote.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    /// The machine.
    pub(crate) machine: Machine,
    /// By scenario and side, why it was not run.
    failures: BTreeMap<String, String>,
}

/// Where it ran.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Machine {
    /// As the driver names it.
    pub(crate) device: String,
    /// Version of Python.
    pub(crate) python: String,
    /// Version of torch.
    pub(crate) torch: String,
    /// `2026-11-22`.
    pub(crate) date: String,
}

/// What came of one side of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It was not run under caulk, and why.
    NotRun(String),
    /// The leaking line was named, or nothing was claimed of a clean program. The series that it was judged by.
    Right(String),
    /// What went wrong.
    Wrong(String),
}

impl Run {
    /// Reads what the script wrote into a folder.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("run.json");
        let text = fs::read_to_string(&path).with_context(|| {
            format!("failed to read `{}`: is this the folder `results` that came back?", path.display())
        })?;
        serde_json::from_str(&text).with_context(|| format!("`{}` is not as expected", path.display()))
    }

    /// Judges both sides of every scenario.
    pub(crate) fn judge(&self, folder: &Path, scenarios: &[Truth]) -> Vec<(String, Judgement)> {
        let sides =
            scenarios.iter().flat_map(|truth| truth.sides().into_iter().map(move |side| (truth, side)));
        sides.map(|(truth, side)| self.one(folder, truth, side)).collect()
    }

    fn one(&self, folder: &Path, truth: &Truth, side: Side) -> (String, Judgement) {
        let name = format!("{}-{}", truth.id, side.folder());
        let of = |file: &str| folder.join(&name).join(file);
        let read = || Outcome::read(&of("report.json"), &of("stdout.out"));
        let result = self.failures.get(&name).map_or_else(
            || {
                read().map_or_else(
                    |error| Judgement::Wrong(format!("{error:#}")),
                    |outcome| judged(truth, side, &outcome),
                )
            },
            |reason| Judgement::NotRun(reason.clone()),
        );
        (name, result)
    }
}

fn judged(truth: &Truth, side: Side, outcome: &Outcome) -> Judgement {
    if side == Side::Clean {
        let alarms = score::clean(truth, outcome).alarms;
        return if alarms.is_empty() {
            Judgement::Right(String::new())
        } else {
            Judgement::Wrong(alarms.join("; "))
        };
    }
    let score = score::leak(truth, outcome);
    if score.found != Found::Line && truth.is_due_on_gpu() {
        return Judgement::Wrong(score.why);
    }
    let names =
        |site: &LeakSite| outcome.report.alarms().find(|finding| finding.names(&site.file, site.line));
    let growth = truth.leak_sites.iter().find_map(names).and_then(|finding| finding.growth.as_ref());
    Judgement::Right(growth.map_or_else(String::new, |growth| growth.series.clone()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn truth(kind: &str, symptom: &str) -> Truth {
        let text = format!(
            "id = 'a'\nleak_class = 'device-tensor-kept'\nkind = '{kind}'\nsymptom = '{symptom}'\ndefault_epochs = 8\n\
             default_steps = 24\nleak_sites = [{{ file = 'leaky/main.py', line = 9, function = 'f', container = 'kept' }}]"
        );
        toml::from_str(&text).unwrap()
    }

    fn outcome(findings: &str) -> Outcome {
        let verdict =
            r#"{"series": "in_use", "state": "flat", "boundaries": 8, "process": {"role": "main"}}"#;
        let report = format!(r#"{{"verdicts": [{verdict}], "findings": [{findings}]}}"#);
        Outcome { report: serde_json::from_str(&report).unwrap(), epochs: 8 }
    }

    fn check(truth: &Truth, findings: &str, right: bool) {
        let judgement = judged(truth, Side::Leaky, &outcome(findings));
        assert_eq!(matches!(judgement, Judgement::Right(_)), right, "{truth:?} {judgement:?}");
    }

    #[test]
    fn a_leak_that_a_gpu_alone_shows_must_be_found_there() {
        let gpu_only = truth("static-only", "gpu-only");
        check(&gpu_only, "", false);
        let found = r#"{"class": "device-tensor-kept", "severity": "error", "container": "kept", "holder": "kept",
            "sites": [{"file": "leaky/main.py", "line": 9, "function": "f"}], "growth": null}"#;
        check(&gpu_only, found, true);
    }

    #[test]
    fn what_stands_in_the_source_alone_need_not_be_found_by_running() {
        check(&truth("static-only", "tiny-growth"), "", true);
        check(&truth("static+dynamic", "growth"), "", false);
    }
}
