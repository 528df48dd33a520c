//! `cargo xtask heal-zoo`: heals copies of the test programs: growth before and after, edits, runs.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use serde_json::Value;

use crate::columns::align;
use crate::console::{self, failure};
use crate::samples::{Sample, SampleArgs, Tools, announce};
use crate::workspace::Workspace;

/// Heal copies of the test programs and of the examples: growth removed, output, runs, refusals; no clean one is edited
#[derive(Debug, clap::Args)]
pub(crate) struct HealZooArgs {
    #[command(flatten)]
    samples: SampleArgs,
    /// Keep results that are in target/heal-zoo, and heal the programs without one
    #[arg(long)]
    resume: bool,
    /// End each run after this time
    #[arg(long, value_name = "TIME", default_value = "5min")]
    time_limit: String,
    /// Print what became of the advice instead: right, harmless, crashed, changed output, by class
    #[arg(long)]
    advice: bool,
}

/// The result for one program.
struct Healed {
    name: String,
    /// An alarm is expected.
    leaks: bool,
    document: Value,
}

pub(crate) fn run(workspace: &Workspace, args: &HealZooArgs) -> anyhow::Result<()> {
    let samples = args.samples.samples(workspace)?;
    let tools = args.samples.tools(workspace)?;
    let all = args.samples.each(&samples, |at, sample| {
        announce(at, samples.len(), &sample.name);
        match heal(workspace, sample, &tools, args) {
            Ok(document) => Some(Healed { name: sample.name.clone(), leaks: sample.leaks, document }),
            Err(error) => {
                console::print_error(&error);
                None
            }
        }
    });
    let all: Vec<Healed> = all.into_iter().flatten().collect();
    console::data(if args.advice { advice(&all) } else { table(&all) });
    let edited: Vec<&str> = all
        .iter()
        .filter(|one| !one.leaks && !text(&one.document, "patch").is_empty())
        .map(|one| one.name.as_str())
        .collect();
    if edited.is_empty() {
        return Ok(());
    }
    Err(failure(
        format!("clean programs were edited: {}", edited.join(", ")),
        "target/heal-zoo/NAME has the runs",
    ))
}

/// Heals a copy of the folder of a program.
fn heal(workspace: &Workspace, sample: &Sample, tools: &Tools, args: &HealZooArgs) -> anyhow::Result<Value> {
    let copy = workspace.path("target/heal-zoo").join(&sample.name);
    let result = copy.join("heal.json");
    if !(args.resume && result.is_file()) {
        let time = format!("--time-limit={}", args.time_limit);
        let words = ["heal", "--quiet", &time, "--format", "json", "--output", "heal.json"];
        // Its exit code is in the document.
        let _ = sample.command(tools, &copy, &words)?.read();
    }
    let text = fs::read_to_string(&result).context("heal left no document")?;
    serde_json::from_str(&text).context("heal left no JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Growth per unit of the unedited program, and of the last run whose edits are kept.
fn growth(document: &Value) -> (f64, f64) {
    let rate = |run: &Value| {
        if text(run, "state") == "grows" { run["bytes_per_unit"].as_f64().unwrap_or(0.0) } else { 0.0 }
    };
    let runs = list(document, "runs");
    let before = runs.first().map_or(0.0, rate);
    let after = runs.iter().rev().find(|run| text(run, "result") == "kept");
    (before, after.map_or(before, rate))
}

fn table(all: &[Healed]) -> String {
    let head = ["program", "leaks", "outcome", "before", "after", "runs", "proven", "refused", "why"];
    let mut rows = vec![head.map(str::to_owned)];
    let (mut before_all, mut after_all) = (0.0, 0.0);
    for Healed { name, leaks, document } in all {
        let (before, after) = growth(document);
        if *leaks {
            before_all += before;
            after_all += after;
        }
        let edits = list(document, "edits");
        let count =
            |verdict: &str| edits.iter().filter(|edit| text(edit, "verdict") == verdict).count().to_string();
        let reasons = edits.iter().map(|edit| text(edit, "reason")).chain([text(document, "reason")]);
        let reason = reasons.rev().find(|reason| !reason.is_empty()).unwrap_or_default();
        let size = |bytes: f64| {
            if bytes > 0.0 { format!("{:.2} MB", bytes / f64::from(1 << 20)) } else { "-".into() }
        };
        rows.push([
            name.clone(),
            if *leaks { "yes" } else { "no" }.to_owned(),
            text(document, "outcome").to_owned(),
            size(before),
            size(after),
            list(document, "runs").len().to_string(),
            count("proven"),
            count("refused"),
            reason.chars().take(70).collect(),
        ]);
    }
    let grow = || all.iter().filter(|one| one.leaks && growth(&one.document).0 > 0.0);
    let leaky = grow().count();
    let healed = grow().filter(|one| text(&one.document, "outcome") == "healed").count();
    let removed = if before_all > 0.0 { 100.0 * (1.0 - after_all / before_all) } else { 0.0 };
    format!(
        "{}\n\n{healed} of {leaky} programs that grow are healed; {removed:.1} % of their growth is removed",
        align(&rows)
    )
}

/// The first edit of each place, by class and by what became of it.
fn advice(all: &[Healed]) -> String {
    let mut classes: BTreeMap<String, [usize; 5]> = BTreeMap::new();
    for document in all.iter().map(|one| &one.document) {
        let mut places = Vec::new();
        for edit in list(document, "edits") {
            let place = (text(edit, "file"), edit["line"].as_u64());
            if places.contains(&place) {
                continue;
            }
            places.push(place);
            let reason = text(edit, "reason");
            let column = match text(edit, "verdict") {
                "proven" => 0,
                "unproven" => 1,
                _ if reason.contains("failed with it") || reason.contains("gradient") => 2,
                _ if reason.contains("output changed") => 3,
                _ => 1,
            };
            classes.entry(text(edit, "class").to_owned()).or_default()[column] += 1;
        }
        for left in list(document, "left") {
            classes.entry(text(left, "class").to_owned()).or_default()[4] += 1;
        }
    }
    let head = ["class", "right", "harmless", "crashed", "changed output", "words only"].map(str::to_owned);
    let row = |(class, counts): (String, [usize; 5])| {
        let [right, harmless, crashed, changed, words] = counts.map(|count| count.to_string());
        [class, right, harmless, crashed, changed, words]
    };
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(classes.into_iter().map(row)).collect();
    align(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn healed() -> Healed {
        let run = |state: &str, rate: f64, result: &str| json!({"state": state, "bytes_per_unit": rate, "result": result});
        let document = json!({
            "outcome": "healed",
            "runs": [run("grows", 2_097_152.0, "unedited"), run("steady", 0.0, "kept")],
            "edits": [
                {"class": "unbounded-history", "file": "a.py", "line": 3, "verdict": "refused", "reason": "output changed in line 1"},
                {"class": "unbounded-history", "file": "a.py", "line": 3, "verdict": "proven"},
            ],
        });
        Healed { name: "a".into(), leaks: true, document }
    }

    #[test]
    fn growth_that_is_gone_is_removed() {
        let shown = table(&[healed()]);
        assert!(shown.contains("1 of 1 programs that grow are healed; 100.0 %"), "{shown}");
        assert!(shown.contains("2.00 MB"), "{shown}");
    }

    #[test]
    fn only_the_first_edit_of_a_place_is_the_advice() {
        let shown = advice(&[healed()]);
        let counts: Vec<&str> = shown.lines().last().unwrap_or_default().split_whitespace().collect();
        assert_eq!(counts, ["unbounded-history", "0", "0", "0", "1", "0"]);
    }
}
