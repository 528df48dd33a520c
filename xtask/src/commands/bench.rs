//! `cargo xtask bench`: what caulk costs beside other profilers and linters, and how often its verdicts are wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Subcommand;

use crate::bench::contender::{ALL, CAULK, Contender, Maker, PLAIN, Program, REACHING};
use crate::bench::goals;
use crate::bench::ratio::{self, Sample, Series, Spread};
use crate::bench::usage;
use crate::clips;
use crate::commands::bench_check::{self, BenchCheckArgs};
use crate::commands::bench_real::{self, BenchRealArgs};
use crate::commands::develop::{self, Interpreter};
use crate::console::{self, OrHint, failure};
use crate::environment::{Environment, Packages, Tools};
use crate::package::Build;
use crate::process::Cmd;
use crate::workspace::Workspace;

/// A profiler that takes this many times as long as the plain program is killed.
const PATIENCE: u32 = 6;
/// Making the page of a recording takes at most this long.
const MOST_PAGE: Duration = Duration::from_secs(2);
const PROGRAM: &str = "examples/train_detector.py";
/// The transformer, which two workers feed.
const SEQUENCES: &str = "xtask/src/bench/train_sequences.py";
const REACHING_PROGRAM: &str = "examples/train_reaching.py";

/// Measure cost and accuracy
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Run(RunArgs),
    Check(BenchCheckArgs),
    Real(BenchRealArgs),
    /// How often verdicts on growth are wrong, on series that are known not to grow
    Growth,
    Heap(HeapArgs),
    Readings(ReadingsArgs),
    Kinematics(KinematicsArgs),
    /// What calls of `import caulk` cost
    Api,
    Clips(ClipsArgs),
    /// The pages of a made-up week-long run of 16 processes and of the demo: size, time to make them, time until a browser has
    /// loaded them
    Html,
}

/// Frames of videos: time, memory and which frames come, against other readers and full decoding
#[derive(Debug, clap::Args)]
struct ClipsArgs {
    /// Rounds; each runs every reader once
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: u32,
}

/// A kinematics library inside training, as people write it, and mended: peak, time, and the report
#[derive(Debug, clap::Args)]
struct KinematicsArgs {
    /// Rounds; each runs every variant once
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: u32,
    /// Epochs of the example program
    #[arg(long, default_value_t = 12, value_name = "N")]
    epochs: u32,
}

/// Estimates of the heap sampler by line and in total, against exact counting
#[derive(Debug, clap::Args)]
struct HeapArgs {
    /// Runs of the program whose lines hold known amounts
    #[arg(long, default_value_t = 30, value_name = "N")]
    runs: u32,
}

/// Bytes in use at every boundary: readings kept, CPU time and memory on heaps of 10^5 to 10^7 blocks in 1 to 64 arenas, and
/// what counting adds to a pair of malloc and free
#[derive(Debug, clap::Args)]
struct ReadingsArgs {
    /// Rounds of the pairs, with and without counting in turn
    #[arg(long, default_value_t = 9, value_name = "N")]
    rounds: u32,
    /// Epochs of the program
    #[arg(long, default_value_t = 20, value_name = "N")]
    epochs: u32,
    /// Largest heap, in blocks; 10^7 take 2 GB
    #[arg(long, default_value_t = 10_000_000, value_name = "BLOCKS")]
    most: u64,
}

/// Paired ratios of time, memory and page faults against no profiler, tracemalloc, memray, Fil, memory-profiler and scalene
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Rounds; each runs every contender once
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: u32,
    /// Epochs of the example program; 22 take about a minute without a profiler
    #[arg(long, default_value_t = 22, value_name = "N")]
    epochs: u32,
    /// A transformer that two workers feed, instead of the detector; 22 epochs take about a minute, too
    #[arg(long)]
    workers: bool,
    /// Steps of an epoch; 200 of the detector, 20 of the transformer, which take longer
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
    /// Only these contenders, beside the plain program, by the beginning of their names
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &BenchArgs) -> anyhow::Result<()> {
    match &args.what {
        What::Run(args) => cost(workspace, args),
        What::Check(args) => bench_check::run(workspace, args, &machine()),
        What::Real(args) => bench_real::run(workspace, args, &machine()),
        What::Growth => growth(workspace),
        What::Heap(args) => heap(workspace, args),
        What::Readings(args) => readings(workspace, args),
        What::Kinematics(args) => kinematics(workspace, args),
        What::Api => api(workspace),
        What::Clips(args) => videos(workspace, args),
        What::Html => page(workspace),
    }
}

/// How often `caulk_growth` sees growth in series that do not grow.
fn growth(workspace: &Workspace) -> anyhow::Result<()> {
    console::step("false positives of growth verdicts");
    Cmd::cargo()
        .args(["run", "--quiet", "--release", "--package", "caulk_growth", "--example", "false_positives"])
        .folder(workspace.root())
        .run()
        .or_hint("the benchmark failed", "the message above is its own")
}

/// How far the sampler's estimates are off, and how often the truth lies within the interval that is shown.
fn heap(workspace: &Workspace, args: &HeapArgs) -> anyhow::Result<()> {
    console::step("estimates of the heap sampler");
    Cmd::cargo()
        .args(["test", "--quiet", "--release", "--package", "caulk_preload", "--test", "preload"])
        .args(["accuracy::", "--", "--nocapture", "--test-threads=1"])
        .env("CAULK_ACCURACY_RUNS", args.runs.to_string())
        .folder(workspace.root())
        .run()
        .or_hint("estimates are less certain than they claim", "the table above shows which")
}

/// What it costs to know the bytes in use: readings by the sums and by `mallinfo2`, pairs with and without the sums.
fn readings(workspace: &Workspace, args: &ReadingsArgs) -> anyhow::Result<()> {
    let environment = develop::prepare(workspace, &Interpreter::default(), &[Packages::Dev], Build::Release)?;
    let build = |name: &str, features: &[&str]| {
        let target = workspace.target().join("bench-readings").join(name);
        Cmd::cargo()
            .args(["build", "--quiet", "--release", "--package", "caulk_preload"])
            .args(features.iter().copied())
            .arg("--target-dir")
            .arg(&target)
            .folder(workspace.root())
            .run()
            .or_hint("the heap sampler could not be built", "the message above is the compiler's")?;
        anyhow::Ok(target.join("release/libcaulk_preload.so"))
    };
    let with = build("with", &[])?;
    let without = build("without", &["--features", "bench-without-sums"])?;
    console::step("readings of bytes in use");
    console::data(machine());
    Cmd::new(environment.bin("python"))
        .arg("xtask/src/bench/readings.py")
        .arg(environment.bin("caulk"))
        .args([with, without])
        .args(["--rounds", &args.rounds.to_string(), "--epochs", &args.epochs.to_string()])
        .args(["--most", &args.most.to_string()])
        .folder(workspace.root())
        .run()
        .or_hint("the benchmark failed", "the message above is its own")
}

fn cost(workspace: &Workspace, args: &RunArgs) -> anyhow::Result<()> {
    let contenders = chosen(&args.only)?;
    let groups = [Packages::Dev, Packages::Bench];
    let environment = develop::prepare(workspace, &Interpreter::default(), &groups, Build::Release)?;
    let bench = Bench { workspace, environment };
    let script = if args.workers { SEQUENCES } else { PROGRAM };
    let steps = args.steps.unwrap_or(if args.workers { 20 } else { 200 });
    let program = |epochs: u32, keeps_pages| {
        let (epochs, steps) = (epochs.to_string(), steps.to_string());
        let words = [script, "--epochs", &epochs, "--steps", &steps].map(String::from);
        Program { words: words.to_vec(), keeps_pages }
    };
    let (series, limit) = bench.rounds(&contenders, &program(args.epochs, false), args.rounds)?;
    let words = ["-c", "import torch"].map(String::from).to_vec();
    let start = Program { words, keeps_pages: false };
    console::step("start-up: a program that only imports torch");
    let (fixed, _) = bench.rounds(&[PLAIN, CAULK], &start, args.rounds.max(5))?;
    console::step("memory where malloc gives no page back");
    let (kept, _) = bench.rounds(&[PLAIN, CAULK], &program(args.epochs.div_ceil(3), true), args.rounds)?;
    console::data(format!(
        "{}; {script} --epochs {} --steps {steps}; {} rounds\n",
        machine(),
        args.epochs,
        args.rounds
    ));
    console::data(ratio::render(&series, limit));
    console::data(fixed_cost(&fixed));
    console::data(goals::render(&series, &kept));
    Ok(())
}

fn kinematics(workspace: &Workspace, args: &KinematicsArgs) -> anyhow::Result<()> {
    let groups = [Packages::Dev, Packages::Bench];
    let environment = develop::prepare(workspace, &Interpreter::default(), &groups, Build::Release)?;
    let bench = Bench { workspace, environment };
    let program = Program {
        words: [REACHING_PROGRAM, "--epochs", &args.epochs.to_string()].map(String::from).to_vec(),
        keeps_pages: false,
    };
    let (series, limit) = bench.rounds(&REACHING, &program, args.rounds)?;
    console::data(format!(
        "{}; {REACHING_PROGRAM}, {} epochs, {} rounds\n",
        machine(),
        args.epochs,
        args.rounds
    ));
    console::data(ratio::render(&series, limit));
    console::step("the report on it as it is written");
    let folder = workspace.path("target/bench/told");
    CAULK
        .command(&bench.environment, &folder, &program)
        .folder(workspace.root())
        .run()
        .or_hint("the run failed", "the message above is its own")
}

fn api(workspace: &Workspace) -> anyhow::Result<()> {
    let environment = develop::prepare(workspace, &Interpreter::default(), &[Packages::Dev], Build::Release)?;
    console::step("calls of `import caulk`");
    Cmd::new(environment.bin("python"))
        .args(["xtask/src/bench/api.py"])
        .folder(workspace.root())
        .run()
        .or_hint("a call costs more than it may", "the table above shows which")
}

/// Makes the page of a made-up run and opens it in a browser.
fn page(workspace: &Workspace) -> anyhow::Result<()> {
    let environment = develop::prepare(workspace, &Interpreter::default(), &[Packages::Dev], Build::Develop)?;
    console::step("the page of a week-long run");
    let page = workspace.path("target/week.html");
    Cmd::cargo()
        .args([
            "run",
            "--quiet",
            "--profile",
            "develop",
            "--package",
            "caulk_html",
            "--example",
            "week",
            "--",
        ])
        .arg(&page)
        .folder(workspace.root())
        .run()
        .or_hint("the page is too large, or takes too long to make", "the message above has the figures")?;
    let demo = demo_page(workspace, &environment)?;
    Cmd::new(environment.bin("python"))
        .args(["xtask/src/bench/page.py"])
        .arg(page)
        .arg(demo)
        .folder(workspace.root())
        .run()
        .or_hint("a page opens too slowly", "the message above has the figures")
}

/// Records the program of the demo, and writes its page.
fn demo_page(workspace: &Workspace, environment: &Environment) -> anyhow::Result<PathBuf> {
    console::step(format!("the page of {PROGRAM}"));
    let (recording, page) = (workspace.path("target/bench-html/demo"), workspace.path("target/demo.html"));
    let caulk = || Cmd::new(environment.bin("caulk")).folder(workspace.root());
    let _ = fs::remove_dir_all(&recording);
    caulk()
        .args(["run", "--quiet", "--output"])
        .arg(&recording)
        .arg("--")
        .arg(environment.bin("python"))
        .args([PROGRAM, "--epochs", "8", "--steps", "8"])
        .run()
        .or_hint("the demo failed", "the message above is its own")?;
    let began = Instant::now();
    caulk()
        .arg("report")
        .arg(&recording)
        .arg("--html")
        .arg(&page)
        .run()
        .or_hint("the page of the demo could not be made", "the message above is caulk's")?;
    let (took, bytes) = (began.elapsed(), fs::metadata(&page)?.len());
    console::data(format!("{PROGRAM}: {bytes} bytes, made in {:.2} s", took.as_secs_f64()));
    if took <= MOST_PAGE {
        return Ok(page);
    }
    Err(failure("the page of the demo takes too long", format!("at most {} s", MOST_PAGE.as_secs())))
}

fn videos(workspace: &Workspace, args: &ClipsArgs) -> anyhow::Result<()> {
    let groups = [Packages::Dev, clips::PACKAGES, Packages::Readers];
    let environment = develop::prepare(workspace, &Interpreter::default(), &groups, Build::Release)?;
    clips::install(workspace, &Tools::prepare(workspace, None)?, &environment, Build::Release)?;
    console::step("readers of videos; the first time, four videos are made, which takes minutes");
    console::data(machine());
    Cmd::new(environment.bin("python"))
        .args(["xtask/src/bench/clips.py", "target/bench-clips", &args.rounds.to_string()])
        .folder(workspace.root())
        .run()
        .or_hint("the benchmark failed", "the message above is its own")
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<Contender>> {
    let (plain, others) = ALL.split_first().context("the plain program is one of the contenders")?;
    if let Some(unknown) =
        only.iter().find(|name| !others.iter().any(|other| other.name.starts_with(name.as_str())))
    {
        let names: Vec<_> = others.iter().map(|contender| contender.name).collect();
        return Err(failure(format!("no contender `{unknown}`"), format!("there are: {}", names.join(", "))));
    }
    let wanted =
        |contender: &&Contender| only.is_empty() || only.iter().any(|name| contender.name.starts_with(name));
    Ok(std::iter::once(plain).chain(others.iter().filter(wanted)).cloned().collect())
}

struct Bench<'a> {
    workspace: &'a Workspace,
    environment: Environment,
}

impl Bench<'_> {
    /// Every contender once a round, starting with another one each round; the plain program's first run sets how
    /// long the others may take. What hung once is not tried again.
    fn rounds(
        &self,
        contenders: &[Contender],
        program: &Program,
        rounds: u32,
    ) -> anyhow::Result<(Vec<Series>, Duration)> {
        let mut series: Vec<_> =
            contenders.iter().map(|contender| Series { name: contender.name, rounds: Vec::new() }).collect();
        let mut limit = Duration::from_hours(1);
        for round in 0..rounds as usize {
            for position in 0..contenders.len() {
                let number = (position + round) % contenders.len();
                let (contender, runs) = (&contenders[number], &mut series[number].rounds);
                console::note(format!("round {} of {rounds}: {}", round + 1, contender.name));
                let hung = runs.iter().any(Option::is_none);
                let sampled = if hung { Ok(None) } else { self.sample(contender, program, limit) };
                let sample = match sampled {
                    // What a rival cannot do is no reason to lose what the others did.
                    Err(error) if contender.maker != Maker::Ours => {
                        console::note(format!("{} failed: {error}", contender.name));
                        None
                    }
                    sample => sample?,
                };
                if let (0, 0, Some(sample)) = (round, number, &sample) {
                    limit = sample.usage.wall * PATIENCE + Duration::from_secs(30);
                }
                runs.push(sample);
            }
        }
        Ok((series, limit))
    }

    fn sample(
        &self,
        contender: &Contender,
        program: &Program,
        limit: Duration,
    ) -> anyhow::Result<Option<Sample>> {
        let folder = self.workspace.path("target/bench");
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        let command = contender.command(&self.environment, &folder, program).folder(self.workspace.root());
        // Beside the folder, so that what a program said outlives the next one's start.
        let log = self.workspace.path("target/bench.log");
        let usage = usage::measure(&command, &log, limit)?;
        let written = contender.output(&folder).map(|path| usage::size_on_disk(&path));
        Ok(usage.map(|usage| Sample { usage, written }))
    }
}

fn fixed_cost(series: &[Series]) -> String {
    let [plain, caulk] = series else {
        return String::new();
    };
    let more =
        |figure| ratio::paired(plain, caulk, figure, |with, base| with - base).map_or(0.0, Spread::median);
    format!(
        "\n{}, on a program that only imports torch: {:+.2} s CPU, {:+.2} s wall, {:+.1} MB peak RSS",
        caulk.name,
        more(ratio::cpu),
        more(ratio::wall),
        more(ratio::peak)
    )
}

/// The hardware, for people who read the figures elsewhere.
fn machine() -> String {
    let info = fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn contenders_are_chosen_by_the_beginning_of_their_names() {
        let names = |only: &[&str]| -> Vec<_> {
            let only: Vec<_> = only.iter().map(ToString::to_string).collect();
            chosen(&only).unwrap().iter().map(|contender| contender.name).collect()
        };
        assert_eq!(names(&["caulk"]), [PLAIN.name, "caulk run"]);
        assert_eq!(names(&["tracemalloc"]), [PLAIN.name, "tracemalloc, 1 frame", "tracemalloc, 25 frames"]);
        assert_eq!(names(&["scalene"]), [PLAIN.name, "scalene --cpu-only", "scalene"]);
        assert_eq!(names(&[]).len(), ALL.len());
        assert!(chosen(&["guppy".into()]).unwrap_err().to_string().contains("`guppy`"));
    }
}
