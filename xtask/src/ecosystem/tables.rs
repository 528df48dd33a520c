//! Results for people: a table of packages, a table of rules, every finding with its source, and what has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::columns;
use crate::ecosystem::result::{Measured, Noted, Outcome};
use crate::findings::Severity;

/// Findings are counted per so many lines.
const UNIT: f64 = 20_000.0;

/// Packages, then rules.
pub(crate) fn render(outcome: &Outcome) -> String {
    format!("{}\n\n{}", packages(outcome), rules(outcome))
}

fn packages(outcome: &Outcome) -> String {
    let head =
        ["package", "files", "lines", "CPU s", "peak MB", "errors", "warnings", "info", "per 20k lines", ""];
    let mut rows = vec![head.map(String::from)];
    rows.extend(outcome.packages.iter().map(|package| row(package, std::slice::from_ref(package))));
    let total =
        Measured { name: "all".into(), version: String::new(), failure: None, ..sum(&outcome.packages) };
    rows.push(row(&total, &outcome.packages));
    columns::align(&rows)
}

fn sum(packages: &[Measured]) -> Measured {
    Measured {
        name: String::new(),
        version: String::new(),
        files: packages.iter().map(|package| package.files).sum(),
        lines: packages.iter().map(|package| package.lines).sum(),
        cpu_seconds: packages.iter().map(|package| package.cpu_seconds).sum(),
        wall_seconds: packages.iter().map(|package| package.wall_seconds).sum(),
        peak_megabytes: packages.iter().map(|package| package.peak_megabytes).fold(0.0, f64::max),
        failure: None,
        problems: Vec::new(),
        findings: Vec::new(),
    }
}

fn row(figures: &Measured, packages: &[Measured]) -> [String; 10] {
    let count = |severity| {
        let findings = packages.iter().flat_map(|package| &package.findings);
        findings.filter(|finding| finding.severity == severity).count()
    };
    let counts = [Severity::Error, Severity::Warning, Severity::Info].map(count);
    let rate = counts.iter().sum::<usize>() as f64 * UNIT / figures.lines.max(1) as f64;
    let [errors, warnings, info] = counts.map(|count| count.to_string());
    let remark = match (&figures.failure, figures.problems.len()) {
        (Some(failure), _) => format!("FAILED: {failure}"),
        (None, 0) => String::new(),
        (None, problems) => format!("{problems} problems"),
    };
    [
        format!("{} {}", figures.name, figures.version).trim().to_owned(),
        figures.files.to_string(),
        figures.lines.to_string(),
        format!("{:.2}", figures.cpu_seconds),
        format!("{:.0}", figures.peak_megabytes),
        errors,
        warnings,
        info,
        format!("{rate:.2}"),
        remark,
    ]
}

fn rules(outcome: &Outcome) -> String {
    let mut rows = vec![["rule", "errors", "warnings", "info"].map(String::from)];
    for (class, [info, warnings, errors]) in outcome.counts() {
        rows.push([class.to_owned(), errors.to_string(), warnings.to_string(), info.to_string()]);
    }
    columns::align(&rows)
}

/// Every finding with its source, as Markdown; gravest first within a rule.
pub(crate) fn findings(outcome: &Outcome) -> String {
    let mut by_rule = BTreeMap::<_, Vec<_>>::new();
    for package in &outcome.packages {
        for finding in &package.findings {
            by_rule.entry(&finding.class).or_default().push((package, finding));
        }
    }
    let mut text = String::new();
    for (class, mut found) in by_rule {
        found.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
        let _ = writeln!(text, "# {class}: {}\n", found.len());
        for (package, finding) in found {
            text += &entry(package, finding);
        }
    }
    text
}

fn entry(package: &Measured, finding: &Noted) -> String {
    let Noted { severity, file, line, function, message, excerpt, .. } = finding;
    let mut text =
        format!("## {} `{file}:{line}` in `{function}`\n\n{severity:?}: {message}\n\n", package.name);
    for step in &finding.chain {
        let _ = writeln!(text, "- {}:{} `{}`: {}", step.file, step.line, step.text.trim(), step.note);
    }
    if let Some(fix) = &finding.fix {
        let _ = writeln!(text, "- fix: {fix}");
    }
    text + "\n```python\n" + excerpt + "```\n\n"
}

/// New and missing findings.
pub(crate) fn difference(before: &Outcome, after: &Outcome) -> String {
    let (gone, new) = (missing(before, after), missing(after, before));
    let side = |title: &str, outcome: &Outcome| {
        let found = findings(outcome);
        let count = outcome.packages.iter().map(|package| package.findings.len()).sum::<usize>();
        format!("{title}: {count}\n\n{found}")
    };
    format!("{}\n{}", side("New", &new), side("Gone", &gone))
}

/// What `all` has and `other` has not, in packages that both have.
fn missing(all: &Outcome, other: &Outcome) -> Outcome {
    let pair = |package: &Measured| {
        let twin = other.packages.iter().find(|twin| twin.name == package.name)?;
        let known: BTreeSet<_> = twin.findings.iter().map(Noted::identity).collect();
        let findings = package.findings.iter().filter(|finding| !known.contains(&finding.identity()));
        Some(Measured { findings: findings.cloned().collect(), ..package.clone() })
    };
    Outcome { packages: all.packages.iter().filter_map(pair).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(findings: &[(&str, Severity, u32, &str)]) -> Outcome {
        let noted = |(class, severity, line, text): &(&str, Severity, u32, &str)| Noted {
            class: (*class).into(),
            severity: *severity,
            message: "it grows".into(),
            file: "a.py".into(),
            line: *line,
            function: "f".into(),
            text: (*text).into(),
            excerpt: format!(">{line:5} {text}\n"),
            chain: Vec::new(),
            fix: None,
        };
        let package = Measured {
            name: "torchy".into(),
            version: "1.0".into(),
            files: 12,
            lines: 40_000,
            cpu_seconds: 0.25,
            peak_megabytes: 99.6,
            findings: findings.iter().map(noted).collect(),
            ..sum(&[])
        };
        Outcome { packages: vec![package] }
    }

    #[test]
    fn packages_and_rules_are_counted() {
        let found =
            [("b", Severity::Error, 1, "x"), ("a", Severity::Info, 2, "y"), ("b", Severity::Warning, 3, "z")];
        let expected = "\
package     files  lines  CPU s  peak MB  errors  warnings  info  per 20k lines
torchy 1.0  12     40000  0.25   100      1       1         1     1.50
all         12     40000  0.25   100      1       1         1     1.50

rule  errors  warnings  info
a     0       0         1
b     1       1         0";
        assert_eq!(render(&outcome(&found)), expected);
    }

    #[test]
    fn every_finding_is_shown_with_its_source() {
        let text = findings(&outcome(&[("a", Severity::Info, 2, "y")]));
        let expected =
            "# a: 1\n\n## torchy `a.py:2` in `f`\n\nInfo: it grows\n\n\n```python\n>    2 y\n```\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_moved_line_is_no_difference() {
        let before = outcome(&[("a", Severity::Info, 2, "y"), ("b", Severity::Info, 4, "old")]);
        let after = outcome(&[("a", Severity::Info, 7, "y"), ("b", Severity::Info, 4, "new")]);
        let text = difference(&before, &after);
        assert!(text.starts_with("New: 1\n") && text.contains("\nGone: 1\n"), "{text}");
        assert!(text.contains(" new\n") && text.contains(" old\n") && !text.contains(" y\n"), "{text}");
    }
}
