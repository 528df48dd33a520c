//! `cargo xtask bench check`: what `caulk check` costs beside other linters, on a package and on one file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::bench::linter::{LINTERS, Linter, Linters};
use crate::bench::ratio::{self, Sample, Series, Spread};
use crate::bench::usage::{self, Usage};
use crate::checker::Checker;
use crate::columns;
use crate::console;
use crate::ecosystem::packages;
use crate::environment::Tools;
use crate::workspace::Workspace;

const PACKAGE: &str = "timm";
/// A file of middling length of it.
const FILE: &str = "timm/models/resnet.py";
/// Longer than any of them takes.
const LIMIT: Duration = Duration::from_mins(20);
/// One file takes milliseconds: more rounds.
const FILE_ROUNDS: u32 = 5;

/// Time and memory of `caulk check` beside ruff, pylint and TorchFix
#[derive(Debug, clap::Args)]
pub(crate) struct BenchCheckArgs {
    /// Rounds; each runs every linter once, slow ones only in the first
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: u32,
    /// Leave the slow ones out, which take minutes
    #[arg(long)]
    fast: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &BenchCheckArgs, machine: &str) -> anyhow::Result<()> {
    let linters = Linters {
        caulk: Checker::build(workspace)?,
        checkers: Tools::checkers(workspace)?,
        others: Tools::linters(workspace)?,
    };
    let package = packages::chosen(&[PACKAGE.into()])?.remove(0);
    let folder = package.fetch(&linters.checkers, &workspace.path("target/ecosystem"))?;
    let alone = alone(workspace, &folder)?;
    let size = packages::size(&folder)?;
    let bench = Bench { linters, log: workspace.path("target/bench-check.log"), fast: args.fast };
    let whole = bench.rounds(&folder, args.rounds)?;
    let one = bench.rounds(&alone, args.rounds * FILE_ROUNDS)?;
    console::data(format!("{machine}; caches off; {} rounds, slow linters one; medians\n", args.rounds));
    let title =
        |what: &str, size: packages::Size| format!("{what}: {} files, {} lines", size.files, size.lines);
    console::data(title(&format!("{PACKAGE} {}", package.version), size));
    console::data(format!("{}\n", table(&whole)));
    console::data(title(&format!("{FILE} alone"), packages::size(&alone)?));
    console::data(table(&one));
    Ok(())
}

/// One file of a package in a separate folder.
fn alone(workspace: &Workspace, package: &Path) -> anyhow::Result<std::path::PathBuf> {
    let folder = workspace.path("target/bench-check");
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let inner = fs::read_dir(package)?.filter_map(Result::ok).map(|entry| entry.path().join(FILE));
    let file =
        inner.into_iter().find(|path| path.is_file()).with_context(|| format!("no {FILE} in the package"))?;
    fs::copy(&file, folder.join("example.py"))
        .with_context(|| format!("failed to copy `{}`", file.display()))?;
    Ok(folder)
}

struct Bench {
    linters: Linters,
    log: std::path::PathBuf,
    fast: bool,
}

impl Bench {
    /// Every linter once a round, starting with another one each round.
    fn rounds(&self, folder: &Path, rounds: u32) -> anyhow::Result<Vec<Series>> {
        let wanted: Vec<_> = LINTERS.iter().filter(|linter| !(self.fast && linter.slow)).collect();
        let mut series: Vec<_> =
            wanted.iter().map(|linter| Series { name: linter.name, rounds: Vec::new() }).collect();
        for round in 0..rounds as usize {
            for position in 0..wanted.len() {
                let number = (position + round) % wanted.len();
                let skipped = wanted[number].slow && round > 0;
                let usage = if skipped { None } else { Some(self.measure(wanted[number], folder)?) };
                series[number].rounds.push(usage.map(|usage| Sample { usage, written: None }));
            }
        }
        Ok(series)
    }

    fn measure(&self, linter: &Linter, folder: &Path) -> anyhow::Result<Usage> {
        let command = linter.command(&self.linters, folder);
        let (status, usage) = usage::watch(&command, &self.log, &self.log, LIMIT)?
            .with_context(|| format!("`{command}` did not end within {} minutes", LIMIT.as_secs() / 60))?;
        let well = status.code().is_some_and(|code| code <= linter.most);
        anyhow::ensure!(well, "`{command}` failed ({status}); see `{}`", self.log.display());
        Ok(usage)
    }
}

/// Medians, and how many times the first one's CPU time the others take.
fn table(series: &[Series]) -> String {
    let head = ["", "CPU time", "wall time", "peak RSS", "CPU time, to caulk's"].map(String::from);
    let rows = series.iter().map(|linter| row(&series[0], linter));
    columns::align(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

fn row(first: &Series, linter: &Series) -> [String; 5] {
    let median = |figure: fn(&Usage) -> f64| {
        let figures = linter.rounds.iter().flatten().map(|sample| figure(&sample.usage));
        Spread::of(figures.collect()).map_or(f64::NAN, Spread::median)
    };
    let times = ratio::paired(first, linter, ratio::cpu, |other, caulk| other / caulk);
    [
        linter.name.into(),
        format!("{:.3} s", median(ratio::cpu)),
        format!("{:.3} s", median(ratio::wall)),
        format!("{:.0} MB", median(ratio::peak)),
        times.map_or_else(String::new, |spread| format!("{:.2}x", spread.median())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_linters_are_compared_with_the_round_in_which_they_ran() {
        let sample = |milliseconds| {
            let time = Duration::from_millis(milliseconds);
            Some(Sample {
                usage: Usage {
                    cpu: time,
                    wall: time,
                    peak_rss_bytes: 30_000_000,
                    tree_rss_bytes: 30_000_000,
                    faults: 1,
                },
                written: None,
            })
        };
        let series = [
            Series { name: "caulk check", rounds: vec![sample(500), sample(400), sample(420)] },
            Series { name: "pylint", rounds: vec![sample(30_000), None, None] },
        ];
        let expected = "
             CPU time  wall time  peak RSS  CPU time, to caulk's
caulk check  0.420 s   0.420 s    30 MB     1.00x
pylint       30.000 s  30.000 s   30 MB     60.00x";
        assert_eq!(format!("\n{}", table(&series)), expected);
    }
}
