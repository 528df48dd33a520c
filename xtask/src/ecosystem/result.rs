//! What was found in the packages: written as JSON, so that a later build can be compared with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::ratio;
use crate::checker::Checked;
use crate::ecosystem::packages::{Package, Size};
use crate::findings::{ChainStep, Finding, Severity};

/// Lines shown around the reported line.
const BEFORE: u32 = 8;
const AFTER: u32 = 4;

/// All packages.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) packages: Vec<Measured>,
}

/// One package.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) files: usize,
    pub(crate) lines: usize,
    pub(crate) cpu_seconds: f64,
    pub(crate) wall_seconds: f64,
    pub(crate) peak_megabytes: f64,
    /// Why there is nothing to count: a crash, a hang.
    pub(crate) failure: Option<String>,
    /// Files that were not read as a whole.
    pub(crate) problems: Vec<String>,
    pub(crate) findings: Vec<Noted>,
}

/// One finding, with what a person needs to judge it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) class: String,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) function: String,
    /// The reported line.
    pub(crate) text: String,
    /// Lines around it, each with its number.
    pub(crate) excerpt: String,
    pub(crate) chain: Vec<ChainStep>,
    /// What is offered, with its applicability.
    pub(crate) fix: Option<String>,
}

impl Outcome {
    /// Reads an earlier result.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("failed to read `{}`", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("`{}` is no result of `cargo xtask ecosystem`", path.display()))
    }

    /// Findings by class and severity.
    pub(crate) fn counts(&self) -> BTreeMap<&str, [usize; 3]> {
        let mut counts = BTreeMap::<_, [usize; 3]>::new();
        for finding in self.packages.iter().flat_map(|package| &package.findings) {
            counts.entry(finding.class.as_str()).or_default()[finding.severity as usize] += 1;
        }
        counts
    }
}

impl Measured {
    /// What came of the check of a package that lies in `folder`.
    pub(crate) fn new(
        package: &Package,
        folder: &Path,
        size: Size,
        checked: &anyhow::Result<Checked>,
    ) -> Self {
        let (usage, report) = match checked {
            Ok(checked) => (Some(checked.usage), Some(&checked.report)),
            Err(_) => (None, None),
        };
        let findings = report.map(|report| report.findings.as_slice()).unwrap_or_default();
        let problems = report.map(|report| report.problems.as_slice()).unwrap_or_default();
        Self {
            name: package.name.clone(),
            version: package.version.clone(),
            files: size.files,
            lines: size.lines,
            cpu_seconds: usage.map_or(0.0, |usage| ratio::cpu(&usage)),
            wall_seconds: usage.map_or(0.0, |usage| ratio::wall(&usage)),
            peak_megabytes: usage.map_or(0.0, |usage| ratio::peak(&usage)),
            failure: checked.as_ref().err().map(|error| format!("{error:#}")),
            problems: problems.iter().map(|problem| problem.message.clone()).collect(),
            findings: findings.iter().map(|finding| Noted::new(folder, finding)).collect(),
        }
    }
}

impl Noted {
    fn new(folder: &Path, finding: &Finding) -> Self {
        let site = finding.sites.first().cloned().unwrap_or_default();
        let source = fs::read(folder.join(&site.file)).unwrap_or_default();
        let source = String::from_utf8_lossy(&source);
        let source = site.cell.map_or(source.clone(), |cell| cell_of(&source, cell).into());
        Self {
            class: finding.class.clone(),
            severity: finding.severity,
            message: finding.message.clone(),
            excerpt: excerpt(&source, site.line),
            file: site.file,
            line: site.line,
            function: site.function,
            text: site.text,
            chain: finding.chain.clone(),
            fix: finding.fix.as_ref().map(|fix| format!("{} ({})", fix.description, fix.applicability)),
        }
    }

    /// What makes it the same finding in another build: lines may move.
    pub(crate) fn identity(&self) -> (&str, &str, &str, &str) {
        (&self.class, &self.file, &self.function, &self.text)
    }
}

/// The source of a notebook's cell; nothing where there is no such cell.
fn cell_of(notebook: &str, cell: u32) -> String {
    let notebook: Value = serde_json::from_str(notebook).unwrap_or_default();
    match &notebook["cells"][cell.saturating_sub(1) as usize]["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        source => source.as_str().unwrap_or_default().to_owned(),
    }
}

fn excerpt(source: &str, line: u32) -> String {
    let shown = line.saturating_sub(BEFORE)..=line + AFTER;
    let lines = source.lines().zip(1_u32..).filter(|(_, number)| shown.contains(number));
    let mark = |number| if number == line { '>' } else { ' ' };
    lines.map(|(text, number)| format!("{}{number:5} {text}\n", mark(number))).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_shows_the_lines_of_its_cell() {
        let notebook = r#"{"cells": [{"source": "a\nb\n"}, {"source": ["c\n", "d\n"]}]}"#;
        assert_eq!(excerpt(&cell_of(notebook, 1), 2), "     1 a\n>    2 b\n");
        assert_eq!(cell_of(notebook, 2), "c\nd\n");
        assert_eq!((cell_of(notebook, 3), cell_of("{", 1)), (String::new(), String::new()));
    }

    #[test]
    fn an_excerpt_marks_its_line() {
        let source = (1..=30).map(|number| format!("x{number}\n")).collect::<Vec<_>>().concat();
        let shown = excerpt(&source, 10);
        assert!(shown.starts_with("     2 x2\n") && shown.ends_with("    14 x14\n"), "{shown}");
        assert!(shown.contains("\n>   10 x10\n"), "{shown}");
        assert_eq!(excerpt("x\n", 1), ">    1 x\n");
        assert_eq!(excerpt("", 1), "");
    }
}
