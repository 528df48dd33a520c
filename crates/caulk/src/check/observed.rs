//! What a recorded run saw of the patterns that source shows.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{Diagnostic, Finding, Problem, Severity};
use caulk_report::check::CheckReport;
use caulk_source::absolute;

use crate::assemble;
use crate::brief::quoted;

/// The findings of a recorded run.
#[derive(Debug)]
pub(crate) struct Observed {
    folder: Utf8PathBuf,
    /// Where the run was started.
    directory: Utf8PathBuf,
    findings: Vec<Finding>,
}

impl Observed {
    /// Reads and judges a recording.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(folder: &Utf8Path) -> anyhow::Result<Self> {
        let report = assemble::report(folder)?;
        let directory = report.info.target.directory.into();
        Ok(Self { folder: folder.to_owned(), directory, findings: report.findings })
    }

    /// Notes at each finding what the run saw of it, and says what only the run saw.
    pub(crate) fn join(&self, report: &mut CheckReport, directory: &Utf8Path) {
        let seen: Vec<Option<usize>> =
            report.findings.iter().map(|pattern| self.of(pattern, directory)).collect();
        report.observed = seen.iter().map(|seen| seen.map(|index| self.findings[index].clone())).collect();
        let met: BTreeSet<usize> = seen.into_iter().flatten().collect();
        for (index, finding) in self.findings.iter().enumerate() {
            if !met.contains(&index) && finding.severity > Severity::Info {
                report.notices.push(self.only_seen(finding));
            }
        }
    }

    /// The finding of the run that is about the same line, or the same container in the same function: lines may have
    /// moved since.
    fn of(&self, pattern: &Diagnostic, directory: &Utf8Path) -> Option<usize> {
        let site = pattern.sites.first()?;
        let file = absolute(directory, Utf8Path::new(&site.file));
        let here = |finding: &&(usize, &Finding)| {
            finding.1.sites.iter().any(|other| absolute(&self.directory, Utf8Path::new(&other.file)) == file)
        };
        let of_file: Vec<(usize, &Finding)> = self.findings.iter().enumerate().collect();
        let of_file: Vec<&(usize, &Finding)> = of_file.iter().filter(here).collect();
        let same_line = |finding: &Finding| {
            let lines = site.line..=site.end_line.max(site.line);
            finding.sites.iter().any(|other| lines.contains(&other.line) && other.text == site.text)
        };
        let same_container = |finding: &Finding| {
            let function = finding.sites.iter().any(|other| other.function == site.function);
            function && (finding.container == pattern.container || finding.class == pattern.class)
        };
        let best = of_file.iter().find(|(_, finding)| same_line(finding));
        best.or_else(|| of_file.iter().find(|(_, finding)| same_container(finding))).map(|(index, _)| *index)
    }

    fn only_seen(&self, finding: &Finding) -> Problem {
        let message = format!(
            "`{}` was seen in the run, but not in source: `caulk report {}` says more",
            finding.class,
            quoted(self.folder.as_str())
        );
        match finding.sites.first() {
            Some(site) => {
                Problem { file: site.file.clone(), line: Some(site.line), column: Some(site.column), message }
            }
            None => Problem::of_file("", message),
        }
    }
}

#[cfg(test)]
mod tests {
    use caulk_core::{Growth, LeakClass, Series, Settled, VerdictUnit};

    use super::*;
    use crate::check::found_in;

    const LEAKY: &str = "from functools import cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]\nclass A:\n    @cache\n    def f(self): pass\n    @cache\n    def g(self): pass\n";

    fn seen(pattern: &Diagnostic) -> Settled {
        Settled {
            confidence: pattern.confidence,
            scope: pattern.scope,
            severity: Severity::Error,
            sites: pattern.sites.clone(),
            container: pattern.container.clone(),
            holder: "a.f".into(),
            growth: Some(Growth::of_bytes(VerdictUnit::Epoch, Series::InUse, 2e6, Some(2e6))),
            ..Settled::of(pattern.class)
        }
    }

    /// What the second of two patterns is ranked, once the run saw it as `change` says.
    fn check(change: impl Fn(&mut Settled), first: &str, notices: usize) {
        let mut report = CheckReport { findings: found_in("a.py", LEAKY), ..CheckReport::default() };
        let mut finding = seen(&report.findings[1]);
        change(&mut finding);
        let observed = Observed {
            folder: "run".into(),
            directory: "/elsewhere/job".into(),
            findings: vec![Finding::new(finding)],
        };
        observed.join(&mut report, "/elsewhere/job".into());
        report.sort();
        assert_eq!(report.findings[0].sites[0].function, first);
        assert_eq!(report.observed[0].is_some(), first == "A.g");
        assert_eq!(report.notices.len(), notices);
    }

    #[test]
    fn what_was_seen_comes_first() {
        check(|_| (), "A.g", 0);
    }

    #[test]
    fn lines_may_have_moved_within_a_function() {
        check(|finding| finding.sites[0].line += 40, "A.g", 0);
    }

    #[test]
    fn what_is_of_another_place_is_told() {
        check(|finding| finding.sites[0].file = "b.py".into(), "A.f", 1);
        check(|finding| finding.sites.clear(), "A.f", 1);
        let other = |finding: &mut Settled| {
            finding.sites[0].function = "B.h".into();
            finding.sites[0].text = "x".into();
            finding.class = LeakClass::NativeGrowth;
        };
        check(other, "A.f", 1);
    }
}
