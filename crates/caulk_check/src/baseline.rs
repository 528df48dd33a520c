//! Findings that are known already: a file that lets a project begin with a clean slate.
//!
//! A finding is recognised by rule, file, function and the text of its line, so that it may move within its function
//! and around it. Equal findings are counted: one more than before is new.

use std::collections::BTreeMap;

use caulk_core::{Diagnostic, LeakClass};
use serde::{Deserialize, Serialize};

/// Number of the format.
const VERSION: u32 = 1;

/// Known findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    findings: Vec<Entry>,
}

/// A finding, wherever it stands in its function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    rule: LeakClass,
    file: String,
    function: String,
    text: String,
    #[serde(default = "once", skip_serializing_if = "is_one")]
    count: usize,
}

fn once() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(count: &usize) -> bool {
    *count == 1
}

impl Entry {
    /// A finding's mark; `name` turns its path into one that does not depend on where caulk was started.
    pub fn of(diagnostic: &Diagnostic, name: impl Fn(&str) -> String) -> Option<Self> {
        let site = diagnostic.sites.first()?;
        Some(Self {
            rule: diagnostic.class,
            file: name(&site.file),
            function: site.function.clone(),
            text: normal(&site.text),
            count: 1,
        })
    }

    /// A number for it that stays the same on every machine; `index` tells equal findings apart.
    pub fn fingerprint(&self, index: usize) -> u64 {
        let index = index.to_string();
        let parts = [self.rule.as_str(), &self.file, &self.function, &self.text, &index];
        // FNV-1a, with a byte between the parts that occurs in none of them.
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// A line's text without what formatters and comments change.
fn normal(text: &str) -> String {
    let code = match text.find("  #") {
        Some(at) => &text[..at],
        None => text,
    };
    code.chars().filter(|c| !c.is_whitespace()).collect()
}

impl Baseline {
    /// A baseline that knows all of these.
    pub fn new(diagnostics: &[Diagnostic], name: impl Fn(&str) -> String) -> Self {
        let mut counts: BTreeMap<Entry, usize> = BTreeMap::new();
        for entry in diagnostics.iter().filter_map(|diagnostic| Entry::of(diagnostic, &name)) {
            *counts.entry(entry).or_default() += 1;
        }
        let findings = counts.into_iter().map(|(entry, count)| Entry { count, ..entry });
        Self { version: VERSION, findings: findings.collect() }
    }

    /// Whether this caulk can read it.
    pub fn is_current(&self) -> bool {
        self.version == VERSION
    }

    /// How many findings it knows.
    pub fn len(&self) -> usize {
        self.findings.iter().map(|entry| entry.count).sum()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Takes known findings out and says how many there were.
    pub fn take_out(&self, diagnostics: &mut Vec<Diagnostic>, name: impl Fn(&str) -> String) -> usize {
        let mut left: BTreeMap<Entry, usize> = BTreeMap::new();
        for entry in &self.findings {
            *left.entry(Entry { count: 1, ..entry.clone() }).or_default() += entry.count;
        }
        let before = diagnostics.len();
        diagnostics.retain(|diagnostic| {
            let known = Entry::of(diagnostic, &name).and_then(|entry| left.get_mut(&entry));
            match known {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            }
        });
        before - diagnostics.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, Selection};

    const ONE: &str = "from functools import cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]\nclass A:\n    @cache\n    def f(self): pass\n";

    fn found(source: &str) -> Vec<Diagnostic> {
        let selection = Selection::standard();
        crate::check(Job::of_text("a.py", source, &selection)).diagnostics
    }

    /// How many findings of `later` are new to a baseline of `before`.
    fn check(before: &str, later: &str, new: usize) {
        let name = |file: &str| file.to_owned();
        let baseline = Baseline::new(&found(before), name);
        let mut diagnostics = found(later);
        baseline.take_out(&mut diagnostics, name);
        assert_eq!(diagnostics.len(), new, "{later}");
    }

    #[test]
    fn lines_may_move_and_be_formatted() {
        check(ONE, ONE, 0);
        check(ONE, &format!("import os\n\n\n{ONE}"), 0);
        check(ONE, &ONE.replace("@cache", "@ cache  # twice as fast"), 0);
    }

    #[test]
    fn what_is_new_is_reported() {
        check(ONE, &format!("{ONE}\n    @cache\n    def g(self): pass\n"), 1);
        check("", ONE, 1);
        check(ONE, &ONE.replace("A()", "B()").replace("class A", "class B"), 1);
    }

    #[test]
    fn equal_findings_are_counted() {
        let again = format!("{ONE}\n    @cache\n    def f(self): pass\n");
        check(ONE, &again, 1);
        check(&again, ONE, 0);
        check(&again, &again, 0);
    }

    #[test]
    fn marks_are_the_same_everywhere() {
        let entry = Entry {
            rule: LeakClass::CachedMethod,
            file: "a.py".into(),
            function: "A.f".into(),
            text: "@cache".into(),
            count: 1,
        };
        assert_eq!(entry.fingerprint(0), entry.clone().fingerprint(0));
        assert_ne!(entry.fingerprint(0), entry.fingerprint(1));
    }
}
