//! Source lines beside a report: which are wanted, and what they say.

use std::collections::{BTreeMap, BTreeSet};

use caulk_core::{Diagnostic, Edit, Finding, Remedy, Site};

/// Lines shown before and after the line to blame.
const CONTEXT: u32 = 1;

/// Lines of a statement that are shown.
pub(crate) const STATEMENT: u32 = 6;

/// Source lines by file and line number, with their indentation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpts(BTreeMap<String, BTreeMap<u32, String>>);

impl Excerpts {
    /// The lines that a report of these findings shows: files as the findings name them, lines from 1.
    pub fn wanted(findings: &[Finding]) -> BTreeMap<String, BTreeSet<u32>> {
        lines(findings.iter().map(|finding| {
            (finding.sites.as_slice(), finding.remedy.as_ref().map_or(&[][..], Remedy::edits))
        }))
    }

    /// As [`Self::wanted`], for patterns found in source.
    pub fn wanted_by(diagnostics: &[Diagnostic]) -> BTreeMap<String, BTreeSet<u32>> {
        lines(diagnostics.iter().map(|diagnostic| {
            (diagnostic.sites.as_slice(), diagnostic.fix.as_ref().map_or(&[][..], |fix| &fix.edits))
        }))
    }

    /// Adds one line, without its line ending.
    pub fn insert(&mut self, file: &str, line: u32, text: &str) {
        let text = text.trim_end_matches(['\n', '\r']);
        self.0.entry(file.to_owned()).or_default().insert(line, text.to_owned());
    }

    /// Adds the lines of another report.
    pub(crate) fn extend(&mut self, other: Self) {
        for (file, lines) in other.0 {
            self.0.entry(file).or_default().extend(lines);
        }
    }

    /// The text of one line, if it was brought along.
    pub fn line(&self, file: &str, line: u32) -> Option<&str> {
        self.0.get(file)?.get(&line).map(String::as_str)
    }

    /// All lines of a file that were brought along.
    pub(crate) fn of_file(&self, file: &str) -> impl Iterator<Item = (u32, &str)> {
        self.0.get(file).into_iter().flatten().map(|(line, text)| (*line, text.as_str()))
    }

    /// The statement to blame with its neighbours, if it still begins with `text`: a file that was edited since the
    /// run must not be quoted as if it had run.
    pub(crate) fn around(&self, site: &Site) -> Option<Vec<(u32, &str)>> {
        let blamed = self.line(&site.file, site.line)?;
        if !site.text.is_empty() && blamed.trim() != site.text.trim() {
            return None;
        }
        let statement = site.line..=site.end_line.clamp(site.line, site.line + STATEMENT - 1);
        let (first, last) = (site.line.saturating_sub(CONTEXT), statement.end() + CONTEXT);
        let lines = (first..=last).filter_map(|n| Some((n, self.line(&site.file, n)?)));
        Some(lines.filter(|(n, text)| statement.contains(n) || !text.trim().is_empty()).collect())
    }
}

fn lines<'a>(shown: impl Iterator<Item = (&'a [Site], &'a [Edit])>) -> BTreeMap<String, BTreeSet<u32>> {
    let mut wanted: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut want = |file: &str, first: u32, last: u32| {
        // A statement or an edit over more lines than this is not shown line by line anyway.
        let last = last.min(first.saturating_add(200));
        wanted.entry(file.to_owned()).or_default().extend(first.max(1)..=last);
    };
    for (sites, edits) in shown {
        for site in sites.iter().filter(|site| site.line > 0) {
            want(&site.file, site.line.saturating_sub(CONTEXT), site.end_line.max(site.line) + CONTEXT);
        }
        for edit in edits {
            want(&edit.file, edit.start.line, edit.end.line);
        }
    }
    wanted
}
