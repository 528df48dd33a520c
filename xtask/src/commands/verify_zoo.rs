//! `cargo xtask verify-zoo`: `caulk verify` on clean programs, which must pass, and on leaky ones, which must fail.

use std::fs;
use std::process::{Child, Command};

use serde::{Deserialize, Serialize};

use crate::columns::align;
use crate::console::{self, failure};
use crate::samples::{Sample, SampleArgs, Tools, announce};
use crate::workspace::Workspace;

/// Of all runs of clean programs, so many may be undecided.
const MOST_UNDECIDED: f64 = 0.02;
/// And so many may fail.
const MOST_FALSE: usize = 1;

/// Verify copies of the test programs again and again: clean ones pass, leaky ones fail
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyZooArgs {
    #[command(flatten)]
    samples: SampleArgs,
    /// Runs of each program
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: usize,
    /// Every second run takes place beside so many processes that use all of a CPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    beside: usize,
    /// Leave out programs that leak
    #[arg(long)]
    clean: bool,
    /// Keep runs that are in target/verify-zoo, and add those that are missing
    #[arg(long)]
    resume: bool,
}

/// How one run ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    /// Exit code of caulk, if it did not end by a signal.
    code: Option<i32>,
    /// The first check that failed or was undecided.
    reason: String,
}

/// How runs of one program ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ends {
    passed: usize,
    failed: usize,
    undecided: usize,
    /// The command failed, or caulk.
    other: usize,
    /// The first check that failed or was undecided.
    reason: String,
}

pub(crate) fn run(workspace: &Workspace, args: &VerifyZooArgs) -> anyhow::Result<()> {
    let mut samples = args.samples.samples(workspace)?;
    samples.retain(|sample| !(args.clean && sample.leaks));
    let tools = args.samples.tools(workspace)?;
    let ends = args.samples.each(&samples, |at, sample| {
        announce(at, samples.len(), &sample.name);
        repeat(workspace, sample, &tools, args)
    });
    let all: Vec<(&Sample, Ends)> = samples.iter().zip(ends).collect();
    console::data(table(&all));
    verdict(&all)
}

/// Verifies one program as often as wanted.
fn repeat(workspace: &Workspace, sample: &Sample, tools: &Tools, args: &VerifyZooArgs) -> Ends {
    // One line of JSON for each run, so that many runs need not be made at one go.
    let log = workspace.path("target/verify-zoo").join(format!("{}.ends", sample.name));
    let known = if args.resume { fs::read_to_string(&log).unwrap_or_default() } else { String::new() };
    let mut all: Vec<End> = known.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for number in all.len()..args.repeat.max(1) {
        let beside = if number % 2 == 1 { args.beside } else { 0 };
        let busy = Busy::start(tools, beside);
        all.push(verify(workspace, sample, tools).unwrap_or_default());
        drop(busy);
        let lines: Vec<String> = all.iter().filter_map(|end| serde_json::to_string(end).ok()).collect();
        if let Err(error) = fs::write(&log, lines.join("\n")) {
            console::print_error(&error.into());
        }
    }
    Ends::of(&all)
}

impl Ends {
    fn of(all: &[End]) -> Self {
        let count = |is: fn(&Option<i32>) -> bool| all.iter().filter(|end| is(&end.code)).count();
        let [passed, failed, undecided] =
            [count(|code| *code == Some(0)), count(|code| *code == Some(1)), count(|code| *code == Some(3))];
        let reason = all.iter().map(|end| &end.reason).find(|reason| !reason.is_empty());
        let other = all.len() - passed - failed - undecided;
        Self { passed, failed, undecided, other, reason: reason.cloned().unwrap_or_default() }
    }
}

/// One run.
fn verify(workspace: &Workspace, sample: &Sample, tools: &Tools) -> Option<End> {
    let copy = workspace.path("target/verify-zoo").join(&sample.name);
    let words = ["verify", "--json", "verify.json", "--output", "recording"];
    let command = sample.command(tools, &copy, &words).map_err(|error| console::print_error(&error)).ok()?;
    let output = command.command().output().ok()?;
    let document: serde_json::Value = fs::read_to_string(copy.join("verify.json"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let bad = document["checks"].as_array().and_then(|checks| {
        checks.iter().find(|check| matches!(check["grade"].as_str(), Some("fail" | "undecided")))
    });
    let text = |check: &serde_json::Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let reason = bad.map(|check| format!("{}: {}", text(check, "name"), text(check, "figure")));
    Some(End { code: output.status.code(), reason: reason.unwrap_or_default() })
}

/// Processes that use all of a CPU, until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start(tools: &Tools, count: usize) -> Self {
        let spin = || Command::new(tools.python()).args(["-c", "while True: pass"]).spawn();
        Self((0..count).filter_map(|_| spin().ok()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn table(all: &[(&Sample, Ends)]) -> String {
    let head = ["program", "leaks", "passed", "failed", "undecided", "other", "why"].map(str::to_owned);
    let row = |(sample, ends): &(&Sample, Ends)| {
        [
            sample.name.clone(),
            if sample.leaks { "yes" } else { "no" }.to_owned(),
            ends.passed.to_string(),
            ends.failed.to_string(),
            ends.undecided.to_string(),
            ends.other.to_string(),
            ends.reason.chars().take(70).collect(),
        ]
    };
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(all.iter().map(row)).collect();
    align(&rows)
}

/// Whether the goals are met.
fn verdict(all: &[(&Sample, Ends)]) -> anyhow::Result<()> {
    let sum = |leaks: bool, count: fn(&Ends) -> usize| -> usize {
        all.iter().filter(|(sample, _)| sample.leaks == leaks).map(|(_, ends)| count(ends)).sum()
    };
    let runs = sum(false, |ends| ends.passed + ends.failed + ends.undecided + ends.other);
    let (wrong, undecided) = (sum(false, |ends| ends.failed), sum(false, |ends| ends.undecided));
    let missed = sum(true, |ends| ends.passed);
    console::data(format!(
        "\nclean: {runs} runs, {wrong} failed, {undecided} undecided; leaky: {missed} passed, {} failed",
        sum(true, |ends| ends.failed)
    ));
    if wrong <= MOST_FALSE && undecided as f64 <= MOST_UNDECIDED * runs as f64 && missed == 0 {
        return Ok(());
    }
    Err(failure("the goals of verify are not met", "target/verify-zoo/NAME has the last run of each program"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_their_exit_codes() {
        let end = |code, reason: &str| End { code, reason: reason.into() };
        let all = [end(Some(0), ""), end(Some(3), "host memory: 2 MB"), end(None, ""), end(Some(4), "")];
        let ends = Ends::of(&all);
        assert_eq!((ends.passed, ends.failed, ends.undecided, ends.other), (1, 0, 1, 2));
        assert_eq!(ends.reason, "host memory: 2 MB");
        let line = serde_json::to_string(&all[1]).expect("plain data");
        assert_eq!(serde_json::from_str::<End>(&line).expect("as written"), all[1]);
    }

    #[test]
    fn a_leak_that_passes_and_two_false_alarms_miss_the_goal() {
        let pair = Sample::of_test("a");
        let ends = |passed, failed| Ends { passed, failed, ..Ends::default() };
        let [leaky, clean] = &pair;
        assert!(verdict(&[(leaky, ends(0, 1)), (clean, ends(99, 1))]).is_ok());
        assert!(verdict(&[(leaky, ends(1, 0)), (clean, ends(99, 1))]).is_err());
        assert!(verdict(&[(clean, ends(98, 2))]).is_err());
        let undecided = Ends { passed: 9, undecided: 1, ..Ends::default() };
        assert!(verdict(&[(clean, undecided)]).is_err());
        assert!(table(&[(leaky, ends(0, 1))]).contains("a        yes"));
    }
}
