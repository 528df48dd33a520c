//! Results of `caulk check` on the zoo's sources, compared with the known leaks. Pure: values in, values out.

use serde::Serialize;

use crate::columns;
use crate::findings::{Finding, Report, Severity};
use crate::zoo::score;
use crate::zoo::truth::{LeakSite, Side, Truth};

/// One scenario's results; `Err` holds why a check gave none.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SourceRow {
    /// Name of the scenario.
    pub(crate) id: String,
    /// Its leak class.
    pub(crate) class: String,
    /// Whether a miss counts.
    pub(crate) due: bool,
    /// The leaking program, if there is one.
    pub(crate) leaky: Option<Result<SourceScore, String>>,
    /// The clean program.
    pub(crate) clean: Option<Result<Vec<String>, String>>,
}

/// A leaking program's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SourceScore {
    /// A line of the leak is named, gravely enough.
    pub(crate) found: bool,
    /// The finding leads with the line that a report should lead with.
    pub(crate) leads: bool,
    /// The class is right.
    pub(crate) class: bool,
    /// The class named.
    pub(crate) claimed_class: String,
    /// False friends that were reported.
    pub(crate) friends_blamed: Vec<String>,
    /// Warnings and errors that are neither at the leak nor at a false friend.
    pub(crate) elsewhere: Vec<String>,
    /// All that was reported.
    pub(crate) said: Vec<String>,
}

impl SourceRow {
    /// Compares reports with what is known.
    pub(crate) fn new(truth: &Truth, check: impl Fn(Side) -> anyhow::Result<Report>) -> Self {
        let sides = truth.sides();
        let check = |side| sides.contains(&side).then(|| check(side).map_err(|error| format!("{error:#}")));
        Self {
            id: truth.id.clone(),
            class: truth.leak_class.clone(),
            due: truth.is_due_in_source(),
            leaky: check(Side::Leaky).map(|result| result.map(|report| leaky(truth, &report))),
            clean: check(Side::Clean).map(|result| result.map(|report| clean(truth, &report))),
        }
    }

    /// Found where it is due, no false friend reported, silence on clean.
    pub(crate) fn passed(&self) -> bool {
        let leaky = self.leaky.as_ref().is_none_or(|result| {
            result.as_ref().is_ok_and(|score| (score.found || !self.due) && score.friends_blamed.is_empty())
        });
        leaky && self.clean.as_ref().is_none_or(|result| result.as_ref().is_ok_and(Vec::is_empty))
    }
}

fn leaky(truth: &Truth, report: &Report) -> SourceScore {
    let at_leak = |finding: &Finding| truth.leak_sites.iter().any(|site| names(finding, site));
    let graded = |finding: &&Finding| finding.severity >= least(truth) && at_leak(finding);
    let right = |finding: &&Finding| finding.class == truth.leak_class;
    let hits: Vec<_> = report.findings.iter().filter(graded).collect();
    let best = hits.iter().find(|finding| right(finding)).or(hits.first());
    SourceScore {
        found: best.is_some(),
        leads: best.is_some_and(|finding| leads(truth, finding)),
        class: best.is_some_and(right),
        claimed_class: best.map(|finding| finding.class.clone()).unwrap_or_default(),
        friends_blamed: score::friends(truth, Side::Leaky.folder(), report),
        elsewhere: report.alarms().filter(|finding| !at_leak(finding)).map(Finding::told).collect(),
        said: said(report),
    }
}

/// Severity from which a finding counts: where no memory grows from epoch to epoch, advice is the right answer.
fn least(truth: &Truth) -> Severity {
    if matches!(truth.symptom.as_str(), "growth" | "files") { Severity::Warning } else { Severity::Info }
}

fn names(finding: &Finding, site: &LeakSite) -> bool {
    finding.names(&site.file, site.line)
}

fn leads(truth: &Truth, finding: &Finding) -> bool {
    let mut primary = truth.leak_sites.iter().filter(|site| site.primary);
    finding.sites.first().is_some_and(|first| primary.any(|site| first.is_at(&site.file, site.line)))
}

/// What is false on a clean program: everything but advice, and findings at a false friend.
fn clean(truth: &Truth, report: &Report) -> Vec<String> {
    let friends = score::friends(truth, Side::Clean.folder(), report);
    report.alarms().map(Finding::told).chain(friends).collect()
}

fn said(report: &Report) -> Vec<String> {
    let findings = report.findings.iter().map(|finding| format!("{}: {}", finding.told(), finding.message));
    findings.chain(report.problems.iter().map(|problem| problem.message.clone())).collect()
}

/// The whole table, with what is wrong below.
pub(crate) fn render(rows: &[SourceRow]) -> String {
    let head = ["scenario", "class", "found", "class right", "clean"].map(String::from);
    let cells: Vec<_> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let table = columns::align(&cells);
    let reasons = rows.iter().flat_map(reasons).collect::<Vec<_>>().join("\n");
    [table, reasons, totals(rows)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn cells(row: &SourceRow) -> [String; 5] {
    let (found, right) = leaky_cells(row);
    [row.id.clone(), row.class.clone(), found.into(), right, clean_cell(row).into()]
}

fn leaky_cells(row: &SourceRow) -> (&'static str, String) {
    match &row.leaky {
        None => ("", String::new()),
        Some(Err(_)) => ("failed", String::new()),
        Some(Ok(score)) if !score.found => (if row.due { "NO" } else { "not due" }, String::new()),
        Some(Ok(score)) => {
            let class = if score.class { "yes".into() } else { format!("no: {}", score.claimed_class) };
            (if score.leads { "yes" } else { "at side" }, class)
        }
    }
}

fn clean_cell(row: &SourceRow) -> &'static str {
    match &row.clean {
        None => "",
        Some(Err(_)) => "failed",
        Some(Ok(alarms)) if alarms.is_empty() => "quiet",
        Some(Ok(_)) => "ALARM",
    }
}

fn reasons(row: &SourceRow) -> Vec<String> {
    let mut lines = Vec::new();
    match &row.leaky {
        Some(Err(error)) => lines.push(format!("leaky: {error}")),
        Some(Ok(score)) => {
            if row.due && !score.found {
                let said = if score.said.is_empty() { "nothing".into() } else { score.said.join("; ") };
                lines.push(format!("missed; reported: {said}"));
            }
            lines.extend(score.friends_blamed.iter().map(|friend| format!("leaky: {friend}")));
            lines.extend(score.elsewhere.iter().map(|finding| format!("leaky, elsewhere: {finding}")));
        }
        None => {}
    }
    match &row.clean {
        Some(Err(error)) => lines.push(format!("clean: {error}")),
        Some(Ok(alarms)) => lines.extend(alarms.iter().map(|alarm| format!("clean: {alarm}"))),
        None => {}
    }
    lines.iter().map(|line| format!("{}: {line}", row.id)).collect()
}

fn totals(rows: &[SourceRow]) -> String {
    let scores = || rows.iter().filter_map(|row| Some((row, row.leaky.as_ref()?.as_ref().ok()?)));
    let due = rows.iter().filter(|row| row.due && row.leaky.is_some()).count();
    let of_due =
        |holds: fn(&SourceScore) -> bool| scores().filter(|(row, score)| row.due && holds(score)).count();
    let found = of_due(|score| score.found);
    let alarms = rows.iter().filter_map(|row| row.clean.as_ref()?.as_ref().ok());
    format!(
        "due: {due}   found: {found} ({:.0} %)   leading: {}   class right: {}\n\
         false friends blamed in leaky programs: {}   alarms in clean programs: {}   elsewhere: {}\n\
         {} passed, {} failed",
        100.0 * found as f64 / due.max(1) as f64,
        of_due(|score| score.leads),
        of_due(|score| score.class),
        scores().map(|(_, score)| score.friends_blamed.len()).sum::<usize>(),
        alarms.map(Vec::len).sum::<usize>(),
        scores().map(|(_, score)| score.elsewhere.len()).sum::<usize>(),
        rows.iter().filter(|row| row.passed()).count(),
        rows.iter().filter(|row| !row.passed()).count(),
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TRUTH: &str = r#"
        id = "a"
        leak_class = "unbounded-history"
        kind = "static-only"
        symptom = "growth"
        default_epochs = 8
        default_steps = 24
        leak_sites = [
            { file = "leaky/main.py", line = 7, function = "f", container = "xs" },
            { file = "leaky/main.py", line = 9, function = "f", container = "xs", primary = true },
        ]
        false_friends = [
            { file = "leaky/main.py", line = 20 },
            { file = "clean/main.py", line = 20, tolerance = "info" },
        ]
    "#;

    fn report(findings: &[(&str, &str, &str, u32)]) -> Report {
        let finding = |(class, severity, file, line): &(&str, &str, &str, u32)| {
            format!(
                r#"{{"class": "{class}", "severity": "{severity}", "message": "kept", "sites": [{{"file": "{file}", "line": {line}}}]}}"#
            )
        };
        let findings: Vec<_> = findings.iter().map(finding).collect();
        serde_json::from_str(&format!(r#"{{"findings": [{}]}}"#, findings.join(","))).unwrap()
    }

    fn truth(symptom: &str) -> Truth {
        toml::from_str(&TRUTH.replace("\"growth\"", &format!("\"{symptom}\""))).unwrap()
    }

    fn check(symptom: &str, severity: &str, line: u32, found: bool, leads: bool) {
        let score =
            leaky(&truth(symptom), &report(&[("unbounded-history", severity, "leaky/main.py", line)]));
        assert_eq!((score.found, score.leads), (found, leads), "{symptom} {severity} {line}");
    }

    #[test]
    fn a_line_of_the_leak_counts_when_it_is_grave_enough() {
        check("growth", "warning", 9, true, true);
        check("growth", "error", 7, true, false);
        check("growth", "info", 9, false, false);
        check("tiny-growth", "info", 9, true, true);
        check("growth", "error", 8, false, false);
    }

    #[test]
    fn the_right_class_is_preferred() {
        let both = [
            ("cached-method", "error", "leaky/main.py", 7),
            ("unbounded-history", "warning", "leaky/main.py", 9),
        ];
        let score = leaky(&truth("growth"), &report(&both));
        assert!(score.class && score.leads, "{score:?}");
    }

    #[test]
    fn false_friends_and_alarms_elsewhere_are_told_apart() {
        let found = [("a", "info", "leaky/main.py", 20), ("b", "warning", "leaky/main.py", 30)];
        let score = leaky(&truth("growth"), &report(&found));
        assert_eq!(score.friends_blamed, ["blames leaky/main.py:20"]);
        assert_eq!(score.elsewhere, ["warning b at leaky/main.py:30"]);
    }

    #[test]
    fn advice_on_a_clean_program_is_no_alarm() {
        for (severity, alarms) in [("info", 0), ("warning", 2)] {
            let alarmed = clean(&truth("growth"), &report(&[("a", severity, "clean/main.py", 20)]));
            assert_eq!(alarmed.len(), alarms, "{severity}");
        }
    }

    #[test]
    fn the_table_ends_with_reasons_and_totals() {
        let row = |id: &str, findings: &[_]| SourceRow {
            id: id.into(),
            class: "unbounded-history".into(),
            due: true,
            leaky: Some(Ok(leaky(&truth("growth"), &report(findings)))),
            clean: Some(Ok(clean(&truth("growth"), &report(findings)))),
        };
        let rows = [
            row("a", &[("unbounded-history", "error", "leaky/main.py", 9)]),
            row("b", &[("cached-method", "warning", "clean/main.py", 3)]),
        ];
        let expected = "\
scenario  class              found  class right  clean
a         unbounded-history  yes    yes          ALARM
b         unbounded-history  NO                  ALARM

a: clean: error unbounded-history at leaky/main.py:9
b: missed; reported: warning cached-method at clean/main.py:3: kept
b: leaky, elsewhere: warning cached-method at clean/main.py:3
b: clean: warning cached-method at clean/main.py:3

due: 2   found: 1 (50 %)   leading: 1   class right: 1
false friends blamed in leaky programs: 0   alarms in clean programs: 2   elsewhere: 1
0 passed, 2 failed";
        assert_eq!(render(&rows), expected);
    }
}
