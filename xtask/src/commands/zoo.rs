//! `cargo xtask zoo`: every scenario of a folder of programs with known leaks, and how near caulk came.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::bench::ratio;
use crate::checker::Checker;
use crate::commands::develop::{self, Interpreter};
use crate::console::{self, failure};
use crate::environment::{Environment, Packages};
use crate::package::Build;
use crate::workspace::Workspace;
use crate::zoo::conduct;
use crate::zoo::fixes::{self, Fixer};
use crate::zoo::needs::Needs;
use crate::zoo::run::Runner;
use crate::zoo::score::{self, Found};
use crate::zoo::source::{self, SourceRow};
use crate::zoo::table::{self, Row};
use crate::zoo::truth::{self, Side, Truth};

/// A check of a scenario's sources that takes longer hangs.
const CHECK_LIMIT: Duration = Duration::from_mins(1);

/// Measure caulk on a folder of programs whose leaks are known
#[derive(Debug, clap::Args)]
pub(crate) struct ZooArgs {
    /// Folder of the scenarios, each with a truth.toml [default: ../shared/leakzoo]
    path: Option<PathBuf>,
    /// Check the sources instead of running the programs
    #[arg(long = "static")]
    source: bool,
    /// Apply fixes to copies of the leaking programs; after safe ones they must print the same
    #[arg(long, conflicts_with = "source")]
    fixes: bool,
    /// Run the programs shortly, with caulk and without: they must print the same bytes and end the same
    #[arg(long, conflicts_with_all = ["source", "fixes"])]
    conduct: bool,
    /// Run the leaking programs shorter, too, from N epochs down: the line must be named within N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), conflicts_with_all = ["source", "fixes", "conduct"])]
    epochs: Option<u32>,
    /// Only these scenarios
    #[arg(long, value_name = "ID", num_args = 1..)]
    only: Vec<String>,
    /// Programs that run at the same time; more than one makes times and forecasts worthless
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// Python that runs the programs, with all they need [default: .venv with everything]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Command to measure, with its package in that Python [default: the one of .venv, built first]
    #[arg(long, value_name = "PATH", requires = "python")]
    caulk: Option<PathBuf>,
    /// Also write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &ZooArgs) -> anyhow::Result<()> {
    let zoo = args.path.clone().unwrap_or_else(|| workspace.path("../shared/leakzoo"));
    let scenarios = truth::read_all(&zoo, &args.only)?;
    match args {
        ZooArgs { source: true, .. } => check(workspace, args, &scenarios),
        ZooArgs { fixes: true, .. } => fix(workspace, args, &scenarios),
        ZooArgs { conduct: true, .. } => compare(workspace, args, &scenarios),
        _ => watch(workspace, args, &scenarios),
    }
}

/// `caulk check --fix` on copies of the leaking programs.
fn fix(workspace: &Workspace, args: &ZooArgs, scenarios: &[Truth]) -> anyhow::Result<()> {
    let python = match &args.python {
        Some(python) => python.clone(),
        None => environment(workspace, args)?.bin("python"),
    };
    let output = workspace.path("target/zoo-fixes");
    fs::create_dir_all(&output).with_context(|| format!("failed to make `{}`", output.display()))?;
    let fixer = Fixer { checker: Checker::build(workspace)?, python, output };
    let leaking = scenarios.iter().filter(|truth| truth.sides().contains(&Side::Leaky));
    let rows = leaking.map(|truth| fixer.run(truth)).collect::<anyhow::Result<Vec<_>>>()?;
    write(args, &rows)?;
    console::data(fixes::render(&rows));
    let failed = rows.iter().filter(|row| !row.passed()).count();
    verdict(failed, rows.len(), "target/zoo-fixes holds the copies and the reports")
}

/// `.venv` with what the programs need, unless another Python runs them.
fn environment(workspace: &Workspace, args: &ZooArgs) -> anyhow::Result<Environment> {
    let groups: &[_] =
        if args.python.is_some() { &[Packages::Dev] } else { &[Packages::Dev, Packages::Full] };
    develop::prepare(workspace, &Interpreter::default(), groups, Build::Release)
}

/// `caulk check` on both sides of every scenario.
fn check(workspace: &Workspace, args: &ZooArgs, scenarios: &[Truth]) -> anyhow::Result<()> {
    let checker = Checker::build(workspace)?;
    let output = workspace.path("target/zoo-static");
    fs::create_dir_all(&output).with_context(|| format!("failed to make `{}`", output.display()))?;
    let row = |truth: &Truth| {
        SourceRow::new(truth, |side| {
            let report = output.join(format!("{}-{}.json", truth.id, side.folder()));
            let checked = checker.check(&truth.folder, side.folder(), &report, CHECK_LIMIT)?;
            let (seconds, megabytes) = (ratio::cpu(&checked.usage), ratio::peak(&checked.usage));
            console::note(format!("{} {}: {seconds:.2} CPU-s, {megabytes:.0} MB", truth.id, side.folder()));
            Ok(checked.report)
        })
    };
    let rows: Vec<_> = scenarios.iter().map(row).collect();
    write(args, &rows)?;
    console::data(source::render(&rows));
    let failed = rows.iter().filter(|row| !row.passed()).count();
    verdict(failed, rows.len(), "target/zoo-static/ID-leaky.json and ID-clean.json are the reports")
}

/// Every program with caulk and without.
fn compare(workspace: &Workspace, args: &ZooArgs, scenarios: &[Truth]) -> anyhow::Result<()> {
    let runner = runner(workspace, args)?;
    let mut rows = Vec::new();
    for truth in scenarios {
        for side in truth.sides() {
            console::step(format!("{} {}", truth.id, side.folder()));
            rows.push(conduct::compare(&runner, truth, side)?);
        }
    }
    write(args, &rows)?;
    console::data(conduct::render(&rows));
    let failed = rows.iter().filter(|row| !row.passed()).count();
    verdict(failed, rows.len(), "run the program by hand, with `caulk run --` before it and without")
}

fn runner(workspace: &Workspace, args: &ZooArgs) -> anyhow::Result<Runner> {
    let output = workspace.path("target/zoo");
    if let (Some(caulk), Some(python)) = (args.caulk.clone(), args.python.clone()) {
        return Ok(Runner { caulk, python, output });
    }
    let environment = environment(workspace, args)?;
    let python = args.python.clone().unwrap_or_else(|| environment.bin("python"));
    Ok(Runner { caulk: environment.bin("caulk"), python, output })
}

/// `caulk run` on both sides of every scenario.
fn watch(workspace: &Workspace, args: &ZooArgs, scenarios: &[Truth]) -> anyhow::Result<()> {
    let runner = runner(workspace, args)?;
    let rows = measure(&runner, scenarios, args);
    write(args, &rows)?;
    console::data(table::render(&rows));
    let failed = rows.iter().filter(|row| !row.passed()).count();
    let hint = "target/zoo/ID-leaky and ID-clean hold report.json, the program's output and the recording";
    verdict(failed, rows.len(), hint)
}

fn write(args: &ZooArgs, rows: &impl Serialize) -> anyhow::Result<()> {
    let Some(path) = &args.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(rows).context("results are plain values")?;
    fs::write(path, text).with_context(|| format!("failed to write `{}`", path.display()))
}

fn verdict(failed: usize, all: usize, hint: &str) -> anyhow::Result<()> {
    if failed == 0 {
        return Ok(());
    }
    Err(failure(format!("{failed} of {all} scenarios are not as they should be"), hint))
}

fn measure(runner: &Runner, scenarios: &[Truth], args: &ZooArgs) -> Vec<Row> {
    console::step(format!("running {} scenarios", scenarios.len()));
    let (next, rows) = (Mutex::new(scenarios.iter().enumerate()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                // The lock is held only while the next one is taken.
                while let Some((number, truth)) = take(&next) {
                    console::step(format!("{}/{} {}", number + 1, scenarios.len(), truth.id));
                    let row = one(runner, truth, args.epochs);
                    console::note(if row.passed() { "as it should be" } else { "NOT as it should be" });
                    rows.lock().expect("no thread panics with the lock").push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("no thread panics with the lock");
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    rows
}

fn take<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    queue.lock().expect("no thread panics with the lock").next()
}

fn one(runner: &Runner, truth: &Truth, most_epochs: Option<u32>) -> Row {
    let sides = truth.sides();
    let run =
        |side| sides.contains(&side).then(|| runner.run(truth, side).map_err(|error| format!("{error:#}")));
    let named = |epochs| {
        let outcome = runner.run_epochs(truth, epochs)?;
        Ok(score::leak(truth, &outcome).found == Found::Line)
    };
    let asked = most_epochs.filter(|_| truth.is_due() && sides.contains(&Side::Leaky));
    Row {
        id: truth.id.clone(),
        class: truth.leak_class.clone(),
        due: truth.is_due(),
        leaky: run(Side::Leaky).map(|result| result.map(|outcome| score::leak(truth, &outcome))),
        needs: asked.map(|most| Needs::of(most, named)),
        clean: run(Side::Clean).map(|result| result.map(|outcome| score::clean(truth, &outcome))),
    }
}
