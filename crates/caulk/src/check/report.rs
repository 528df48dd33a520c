//! From what was found in each project to one report, in the names that people use.

use std::collections::BTreeMap;

use caulk_core::{Diagnostic, Problem};
use caulk_report::Excerpts;
use caulk_report::check::CheckReport;
use caulk_source::Names;

use super::{Found, Project};

/// Findings of several projects.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) report: CheckReport,
}

impl Collected {
    /// Adds what was found in one project.
    pub(crate) fn add(&mut self, project: &Project, found: Found) {
        let Found { outcome, known } = found;
        let unread = unread(project, &outcome.problems);
        let report = &mut self.report;
        report.incomplete |= !unread.is_empty() && !project.settings.allow_unread;
        let whole = |file: &&String| !unread.contains_key(&project.names.shown(file));
        report.files += project.reported.iter().filter(whole).count();
        report.unread.extend(unread.into_values());
        report.suppressed += outcome.suppressed;
        report.known += known;
        self.excerpts(project, &outcome.diagnostics);
        self.cells(project);
        let report = &mut self.report;
        let names = &project.names;
        report.findings.extend(outcome.diagnostics.into_iter().map(|finding| shown(finding, names)));
        report.notices.extend(outcome.notices.into_iter().map(|notice| shown_problem(notice, names)));
        report.problems.extend(project.problems.iter().cloned());
        report.problems.extend(outcome.problems.into_iter().map(|problem| shown_problem(problem, names)));
    }

    /// The whole report, the most harmful findings first.
    pub(crate) fn finish(mut self) -> CheckReport {
        self.report.unread.sort();
        self.report.sort();
        self.report
    }

    fn cells(&mut self, project: &Project) {
        for (file, document) in &project.documents {
            if let Some(cells) = document.cells() {
                self.report.cells.insert(&project.names.shown(file), cells);
            }
        }
    }

    fn excerpts(&mut self, project: &Project, findings: &[Diagnostic]) {
        for (file, lines) in Excerpts::wanted_by(findings) {
            let Some(document) = project.documents.get(&file) else { continue };
            let shown = project.names.shown(&file);
            let text = document.text.trim_start_matches('\u{feff}');
            let numbered = (1..).zip(split(text)).filter(|(number, _)| lines.contains(number));
            for (number, line) in numbered.filter(|(_, line)| !document.is_separator(line)) {
                self.report.excerpts.insert(&shown, number, line);
            }
        }
    }
}

/// What was not looked at, or not as a whole, each with the first reason, by the name that people use. What belongs to no
/// file is about the analysis: all files were read.
fn unread(project: &Project, unparsed: &[Problem]) -> BTreeMap<String, Problem> {
    let unparsed = unparsed.iter().filter(|problem| !problem.file.is_empty());
    let unparsed = unparsed.map(|problem| shown_problem(problem.clone(), &project.names));
    let mut unread = BTreeMap::new();
    for problem in project.problems.iter().cloned().chain(unparsed) {
        unread.entry(problem.file.clone()).or_insert(problem);
    }
    unread
}

/// Lines as Python counts them: `\r` alone ends one too.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

fn shown(mut finding: Diagnostic, names: &Names) -> Diagnostic {
    for site in &mut finding.sites {
        site.file = names.shown(&site.file);
    }
    for step in &mut finding.chain {
        step.file = names.shown(&step.file);
    }
    for twin in &mut finding.twins {
        twin.file = names.shown(&twin.file);
    }
    for edit in finding.fix.iter_mut().flat_map(|fix| &mut fix.edits) {
        edit.file = names.shown(&edit.file);
    }
    finding
}

fn shown_problem(mut problem: Problem, names: &Names) -> Problem {
    problem.file = names.shown(&problem.file);
    problem
}
