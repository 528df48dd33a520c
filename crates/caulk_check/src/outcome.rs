//! From texts to findings.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::{Diagnostic, LeakClass, Problem};
use caulk_python::{Analysis, Project, SourceFile};
use serde::{Deserialize, Serialize};

use crate::selection::Selection;
use crate::suppress::Suppressions;

/// One project and what is asked of it.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// Every file of the project.
    pub sources: Vec<SourceFile>,
    /// Files whose findings are wanted. The analysis sees all.
    pub reported: BTreeSet<String>,
    /// Rules that are on.
    pub selection: &'a Selection,
    /// Rules that are off in some files.
    pub off: BTreeMap<String, BTreeSet<LeakClass>>,
}

impl<'a> Job<'a> {
    /// One text on its own.
    pub fn of_text(path: &str, text: &str, selection: &'a Selection) -> Self {
        Self {
            sources: vec![SourceFile { path: path.to_owned(), text: text.to_owned() }],
            reported: BTreeSet::from([path.to_owned()]),
            selection,
            off: BTreeMap::new(),
        }
    }
}

/// What was found in the files that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckOutcome {
    /// Leak patterns, in order of files and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// Suppressions that silence nothing, or name no rule.
    pub notices: Vec<Problem>,
    /// What could not be parsed, or took more than its budget.
    pub problems: Vec<Problem>,
    /// Findings that a comment silences.
    pub suppressed: usize,
}

/// Analyses a project and reports on the files that were asked for.
pub fn check(mut job: Job<'_>) -> CheckOutcome {
    let suppressions = suppressions(&job);
    // Sources of a large project are not held twice.
    let project = Project::new(std::mem::take(&mut job.sources));
    report(&job, suppressions, &Analysis::new(project))
}

/// Reports on an analysis of the job's sources.
pub fn outcome(job: &Job<'_>, analysis: &Analysis) -> CheckOutcome {
    report(job, suppressions(job), analysis)
}

fn suppressions(job: &Job<'_>) -> BTreeMap<String, Suppressions> {
    let sources = job.sources.iter().filter(|source| job.reported.contains(&source.path));
    sources.map(|source| (source.path.clone(), Suppressions::new(&source.path, &source.text))).collect()
}

fn report(
    job: &Job<'_>,
    mut suppressions: BTreeMap<String, Suppressions>,
    analysis: &Analysis,
) -> CheckOutcome {
    let mut outcome = CheckOutcome::default();
    for mut diagnostic in caulk_rules::check(analysis, &job.selection.rules()) {
        let Some(file) = diagnostic.sites.first().map(|site| site.file.as_str()) else { continue };
        let Some(comments) = suppressions.get_mut(file) else { continue };
        if job.off.get(file).is_some_and(|classes| classes.contains(&diagnostic.class)) {
            continue;
        }
        if comments.silence(&diagnostic) {
            outcome.suppressed += 1;
            continue;
        }
        if let Some(severity) = job.selection.severity(diagnostic.class) {
            diagnostic.severity = severity;
        }
        outcome.diagnostics.push(diagnostic);
    }
    outcome.notices = suppressions.values().flat_map(|comments| comments.notices(job.selection)).collect();
    let wanted = |problem: &&Problem| problem.file.is_empty() || job.reported.contains(&problem.file);
    outcome.problems = analysis.problems().iter().filter(wanted).cloned().collect();
    outcome
}

#[cfg(test)]
mod tests {
    use caulk_core::Severity;

    use super::*;

    const LEAKY: &str = "from functools import cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]\nclass A:\n    @cache\n    def f(self): pass\n";

    #[test]
    fn only_files_that_were_asked_for_are_reported() {
        let selection = Selection::standard();
        let mut job = Job::of_text("a.py", LEAKY, &selection);
        job.sources.push(SourceFile { path: "b.py".into(), text: LEAKY.into() });
        assert_eq!(check(job.clone()).diagnostics.len(), 1);
        job.reported.insert("b.py".into());
        assert_eq!(check(job.clone()).diagnostics.len(), 2);
        job.off.insert("a.py".into(), [LeakClass::CachedMethod].into());
        assert_eq!(check(job).diagnostics.len(), 1);
    }

    #[test]
    fn severities_are_the_user_s() {
        let mut selection = Selection::standard();
        assert_eq!(selection.rate("cached-method", Severity::Info), Ok(()));
        let outcome = check(Job::of_text("a.py", LEAKY, &selection));
        assert_eq!(outcome.diagnostics[0].severity, Severity::Info);
    }

    #[test]
    fn a_broken_file_is_a_problem_with_a_place() {
        let selection = Selection::standard();
        let broken = format!("{LEAKY}def (:\n");
        let outcome = check(Job::of_text("c:/a.py", &broken, &selection));
        assert_eq!(outcome.diagnostics.len(), 1);
        assert_eq!(outcome.problems[0].file, "c:/a.py");
        assert_eq!(outcome.problems[0].line, Some(5));
    }
}
