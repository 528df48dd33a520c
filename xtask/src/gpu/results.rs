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
    if score.found != Found::Line && truth.is_due() {
        return Judgement::Wrong(score.why);
    }
    let names =
        |site: &LeakSite| outcome.report.alarms().find(|finding| finding.names(&site.file, site.line));
    let growth = truth.leak_sites.iter().find_map(names).and_then(|finding| finding.growth.as_ref());
    Judgement::Right(growth.map_or_else(String::new, |growth| growth.series.clone()))
}
