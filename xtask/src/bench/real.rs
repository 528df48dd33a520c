//! Real trainings with known leaks: the known facts, the result of a report, and the table. Pure, except that it reads files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use crate::columns;
use crate::console::failure;
use crate::findings::{Finding, Report, Verdict};

/// Of the leaks, this part must lead with the right line, in percent.
const LINE_GOAL: usize = 95;

/// What is known about a program.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Training {
    /// Arguments with which it takes seconds.
    pub(crate) short: Vec<String>,
    /// Its leaks, by the name that its switch takes.
    pub(crate) leaks: BTreeMap<String, Leak>,
}

/// What is known about a leak.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Leak {
    /// The container as a person would name it.
    pub(crate) holder: String,
    /// Rules that name it rightly.
    pub(crate) classes: Vec<String>,
    /// The marked line calls a library, and a line there grows the container: either may lead, if ours is named.
    #[serde(default)]
    pub(crate) grown_in_library: bool,
}

/// How a leak was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    called: bool,
    line: bool,
    holder: bool,
    /// The class that was named, and whether that is right.
    class: Option<(String, bool)>,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub(crate) enum Judged {
    /// Of a leaking run.
    Leak(Answer),
    /// Of a clean run: what it was accused of.
    Clean(Vec<String>),
    /// No report.
    Failed(String),
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// `PROGRAM:LEAK`, or `PROGRAM` alone if the run is clean.
    pub(crate) name: String,
    /// What the report came to.
    pub(crate) judged: Judged,
    /// The report; empty if there is none.
    pub(crate) report: Report,
    /// Epochs that the program printed.
    pub(crate) epochs: usize,
}

/// Reads the programs of a folder, or those whose names are given as `PROGRAM` or `PROGRAM:LEAK`.
pub(crate) fn read(folder: &Path, only: &[String]) -> anyhow::Result<BTreeMap<String, Training>> {
    let path = folder.join("truth.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
    let trainings = toml::from_str(&text).with_context(|| format!("`{}` is broken", path.display()))?;
    chosen(trainings, only)
}

fn chosen(
    mut trainings: BTreeMap<String, Training>,
    only: &[String],
) -> anyhow::Result<BTreeMap<String, Training>> {
    let split = |name: &str| match name.split_once(':') {
        Some((program, leak)) => (program.to_owned(), Some(leak.to_owned())),
        None => (name.to_owned(), None),
    };
    let wanted: Vec<_> = only.iter().map(|name| split(name)).collect();
    for (program, leak) in &wanted {
        let known = trainings.get(program);
        if known.is_none_or(|training| leak.as_ref().is_some_and(|leak| !training.leaks.contains_key(leak))) {
            let names: Vec<_> = trainings.keys().map(String::as_str).collect();
            let hint = format!("programs: {}; their leaks are in truth.toml", names.join(", "));
            return Err(failure(format!("no training `{program}` with such a leak"), hint));
        }
    }
    if !wanted.is_empty() {
        trainings.retain(|program, training| {
            let mine: Vec<_> = wanted.iter().filter(|(name, _)| name == program).collect();
            let whole = mine.iter().any(|(_, leak)| leak.is_none());
            training
                .leaks
                .retain(|name, _| whole || mine.iter().any(|(_, leak)| leak.as_ref() == Some(name)));
            !mine.is_empty()
        });
    }
    Ok(trainings)
}

/// The number of the only line of a program that ends with the mark of a leak.
pub(crate) fn marked_line(source: &str, leak: &str) -> anyhow::Result<u32> {
    let mark = format!("# leak: {leak}");
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.ends_with(&mark));
    match (lines.next(), lines.next()) {
        (Some((number, _)), None) => Ok(number),
        _ => anyhow::bail!("not exactly one line ends with `{mark}`"),
    }
}

/// Judges the report on a run with a leak at a line of a file.
pub(crate) fn judge_leak(leak: &Leak, file: &str, line: u32, report: &Report) -> Judged {
    let alarms: Vec<_> = report.alarms().collect();
    let first = alarms.first();
    let names_holder = |finding: &&Finding| {
        [&finding.holder, &finding.container].into_iter().any(|named| same_holder(named, &leak.holder))
    };
    Judged::Leak(Answer {
        called: !alarms.is_empty() || grows(report),
        line: first.is_some_and(|finding| leads(leak, finding, file, line)),
        holder: alarms.iter().any(names_holder),
        class: first.map(|finding| (finding.class.clone(), leak.classes.contains(&finding.class))),
    })
}

fn leads(leak: &Leak, finding: &Finding, file: &str, line: u32) -> bool {
    let sites = if leak.grown_in_library { finding.sites.len() } else { 1 };
    finding.sites.iter().take(sites).any(|site| site.is_at(file, line))
}

/// Judges the report on a clean run.
pub(crate) fn judge_clean(report: &Report) -> Judged {
    let claims = report.alarms().map(Finding::told);
    let verdict = grows(report).then(|| "memory is reported to grow".to_owned());
    Judged::Clean(claims.chain(verdict).collect())
}

/// Whether the last name of the expected container is one of those that lead to the named one: what grows may be a part
/// of it, such as `outputs["stage1"]` of `taps.outputs`.
fn same_holder(named: &str, expected: &str) -> bool {
    let expected = names(expected).pop();
    expected.is_some_and(|name| names(named).contains(&name))
}

/// `a.b["c"].d` -> `a`, `b`, `d`.
fn names(expression: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let plain: String = expression
        .chars()
        .filter(|&character| {
            match character {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect();
    plain.split('.').map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect()
}

fn in_use(report: &Report) -> Option<&Verdict> {
    report.verdicts.iter().find(|verdict| verdict.series == "in_use" && verdict.process.role == "main")
}

fn grows(report: &Report) -> bool {
    in_use(report).is_some_and(|verdict| verdict.state.starts_with("grows"))
}

/// The table, reasons for what is missing, and totals.
pub(crate) fn render(rows: &[Row]) -> String {
    let head =
        ["training", "called", "line first", "holder", "class", "readings/epochs", "CPU s", "longest ms"];
    let cells: Vec<_> = std::iter::once(head.map(String::from)).chain(rows.iter().map(cells)).collect();
    let why: Vec<_> = rows.iter().filter(|row| !row.passed()).map(why).collect();
    [columns::align(&cells), why.join("\n"), totals(rows)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn cells(row: &Row) -> [String; 8] {
    let yes = |right: bool| if right { "yes" } else { "NO" }.to_owned();
    let [called, line, holder, class] = match &row.judged {
        Judged::Failed(_) => ["failed", "", "", ""].map(String::from),
        Judged::Clean(alarms) => {
            [if alarms.is_empty() { "quiet" } else { "ALARM" }, "", "", ""].map(String::from)
        }
        Judged::Leak(leak) => {
            let class = match &leak.class {
                None => "none".to_owned(),
                Some((name, true)) => name.clone(),
                Some((name, false)) => format!("no: {name}"),
            };
            [yes(leak.called), yes(leak.line), yes(leak.holder), class]
        }
    };
    let readings = in_use(&row.report).map_or(0, |verdict| verdict.boundaries);
    let unit = in_use(&row.report).map_or("", |verdict| verdict.unit.as_str());
    let summary = &row.report.summary;
    [
        row.name.clone(),
        called,
        line,
        holder,
        class,
        format!("{readings}/{} {unit}", row.epochs).trim_end().to_owned(),
        format!("{:.2}", summary.cost_s),
        format!("{:.0}", summary.longest_pause_s * 1e3),
    ]
}

fn why(row: &Row) -> String {
    let verdict = in_use(&row.report).map_or_else(
        || "no verdict".to_owned(),
        |verdict| format!("{} over {} boundaries", verdict.state, verdict.boundaries),
    );
    let said = match &row.judged {
        Judged::Failed(error) => vec![error.clone()],
        Judged::Clean(alarms) => alarms.clone(),
        Judged::Leak(_) => {
            std::iter::once(verdict).chain(row.report.findings.iter().take(4).map(Finding::told)).collect()
        }
    };
    format!("{}: {}", row.name, said.join("; "))
}

fn totals(rows: &[Row]) -> String {
    let leaks: Vec<_> = leaks(rows).collect();
    let count = |right: fn(&Answer) -> bool| leaks.iter().filter(|leak| right(leak)).count();
    let quiet =
        rows.iter().filter(|row| matches!(&row.judged, Judged::Clean(alarms) if alarms.is_empty())).count();
    let clean = rows.iter().filter(|row| matches!(row.judged, Judged::Clean(_))).count();
    let failed = rows.iter().filter(|row| matches!(row.judged, Judged::Failed(_))).count();
    format!(
        "leaks: {}   called: {}   line first: {}   holder: {}   class: {}\nclean: {clean}   quiet: {quiet}   failed: {failed}",
        leaks.len(),
        count(|leak| leak.called),
        count(|leak| leak.line),
        count(|leak| leak.holder),
        count(|leak| leak.class.as_ref().is_some_and(|(_, right)| *right)),
    )
}

fn leaks(rows: &[Row]) -> impl Iterator<Item = &Answer> {
    rows.iter().filter_map(|row| match &row.judged {
        Judged::Leak(leak) => Some(leak),
        _ => None,
    })
}

/// Whether all leaks are called, nearly all lead with their line, and clean runs are left alone.
pub(crate) fn meets_goal(rows: &[Row]) -> bool {
    let (all, lines) =
        leaks(rows).fold((0, 0), |(all, lines), leak| (all + 1, lines + usize::from(leak.line)));
    let others = |row: &Row| match &row.judged {
        Judged::Leak(leak) => leak.called,
        _ => row.passed(),
    };
    rows.iter().all(others) && lines * 100 >= all * LINE_GOAL
}

impl Row {
    fn passed(&self) -> bool {
        match &self.judged {
            Judged::Leak(leak) => leak.called && leak.line,
            Judged::Clean(alarms) => alarms.is_empty(),
            Judged::Failed(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const TRUTH: &str = r#"
        [gan]
        short = ["--epochs", "4"]
        [gan.leaks.penalty]
        holder = "training.history"
        classes = ["graph-kept-in-container"]
        [gan.leaks.records]
        holder = "handler.records"
        classes = ["log-records-kept"]
        [kfold]
        short = []
        [kfold.leaks.models]
        holder = "fitted"
        classes = []
    "#;

    fn chosen_names(only: &[&str]) -> Result<Vec<String>, String> {
        let only: Vec<_> = only.iter().map(ToString::to_string).collect();
        let trainings = chosen(toml::from_str(TRUTH).unwrap(), &only).map_err(|error| error.to_string())?;
        let flat = trainings.into_iter().flat_map(|(program, training)| {
            training.leaks.into_keys().map(move |leak| format!("{program}:{leak}"))
        });
        Ok(flat.collect())
    }

    #[test]
    fn programs_and_single_leaks_can_be_chosen() {
        assert_eq!(chosen_names(&[]).unwrap(), ["gan:penalty", "gan:records", "kfold:models"]);
        assert_eq!(chosen_names(&["gan"]).unwrap(), ["gan:penalty", "gan:records"]);
        assert_eq!(chosen_names(&["gan:records", "kfold"]).unwrap(), ["gan:records", "kfold:models"]);
        assert!(chosen_names(&["gan:nothing"]).unwrap_err().contains("`gan`"));
        assert!(chosen_names(&["gam"]).unwrap_err().contains("`gam`"));
    }

    #[test]
    fn a_mark_names_one_line() {
        assert_eq!(marked_line("a\nb.append(c)  # leak: x\n", "x").unwrap(), 2);
        assert!(marked_line("a  # leak: x\nb  # leak: x\n", "x").is_err());
        assert!(marked_line("a  # leak: xy\n", "x").is_err());
    }

    #[test]
    fn a_holder_is_right_if_it_leads_to_what_grows() {
        for (named, expected, same) in [
            ("trainer.callbacks[3].members", "callback.members", true),
            ("taps.outputs[\"stage1\"]", "taps.outputs", true),
            ("graphs[3]._store._mapping", "graph._store", true),
            ("run.tables[\"a.values\"]", "meter.values", false),
            ("meter.recent", "meter.values", false),
            ("", "meter.values", false),
        ] {
            assert_eq!(same_holder(named, expected), same, "{named}");
        }
    }

    fn row(name: &str, state: &str, findings: &str) -> Row {
        let verdict = format!(
            r#"{{"series": "in_use", "state": "{state}", "unit": "epochs", "boundaries": 8, "process": {{"role": "main"}}}}"#
        );
        let text = format!(
            r#"{{"summary": {{"cost_s": 0.5, "longest_pause_s": 0.02}}, "verdicts": [{verdict}], "findings": [{findings}]}}"#
        );
        let report: Report = serde_json::from_str(&text).unwrap();
        let leak = Leak {
            holder: "t.history".into(),
            classes: vec!["graph-kept-in-container".into()],
            grown_in_library: false,
        };
        let judged =
            if name.contains(':') { judge_leak(&leak, "gan.py", 7, &report) } else { judge_clean(&report) };
        Row { name: name.into(), judged, report, epochs: 8 }
    }

    fn finding(severity: &str, line: u32) -> String {
        format!(
            r#"{{"class": "graph-kept-in-container", "severity": "{severity}", "holder": "x.history['a']",
               "sites": [{{"file": "real/gan.py", "line": {line}}}]}}"#
        )
    }

    #[test]
    fn a_line_of_a_library_may_lead_where_it_grows_the_container() {
        let sites = r#"{"file": "site-packages/library.py", "line": 3}, {"file": "real/gan.py", "line": 7}"#;
        let text = format!(r#"{{"class": "a", "severity": "error", "sites": [{sites}]}}"#);
        let finding: Finding = serde_json::from_str(&text).unwrap();
        for grown_in_library in [true, false] {
            let leak = Leak { holder: "a".into(), classes: Vec::new(), grown_in_library };
            assert_eq!(leads(&leak, &finding, "gan.py", 7), grown_in_library);
            assert!(!leads(&leak, &finding, "gan.py", 8));
        }
    }

    #[test]
    fn the_table_says_what_was_found_and_why_not() {
        let rows = [
            row("gan", "flat", ""),
            row("gan:first", "grows", &finding("error", 7)),
            row("gan:second", "grows", &format!("{}, {}", finding("error", 9), finding("error", 7))),
            row("gan:third", "undecided", &finding("info", 7)),
            row("kfold", "grows", ""),
        ];
        let expected = "\
training    called  line first  holder  class                    readings/epochs  CPU s  longest ms
gan         quiet                                                8/8 epochs       0.50   20
gan:first   yes     yes         yes     graph-kept-in-container  8/8 epochs       0.50   20
gan:second  yes     NO          yes     graph-kept-in-container  8/8 epochs       0.50   20
gan:third   NO      NO          NO      none                     8/8 epochs       0.50   20
kfold       ALARM                                                8/8 epochs       0.50   20

gan:second: grows over 8 boundaries; error graph-kept-in-container at real/gan.py:9; error graph-kept-in-container at real/gan.py:7
gan:third: undecided over 8 boundaries; info graph-kept-in-container at real/gan.py:7
kfold: memory is reported to grow

leaks: 3   called: 2   line first: 1   holder: 2   class: 2
clean: 2   quiet: 1   failed: 0";
        assert_eq!(render(&rows), expected);
        assert!(meets_goal(&rows[..2]) && !meets_goal(&rows[..3]) && !meets_goal(&rows[4..]));
    }
}
