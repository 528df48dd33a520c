//! `cargo xtask bench real`: real trainings with frameworks, clean and with leaks, under `caulk run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::bench::real::{self, Judged, Leak, Row};
use crate::bench::usage;
use crate::commands::develop::{self, Interpreter};
use crate::console::{self, failure};
use crate::environment::Packages;
use crate::findings::Report;
use crate::package::Build;
use crate::process::Cmd;
use crate::workspace::Workspace;

const TRAININGS: &str = "examples/real";
/// What trainings print at the end of an epoch begins with one of these and a number.
const EPOCHS: [&str; 3] = ["epoch ", "shard ", "repeat "];
/// A program that runs longer hangs.
const LIMIT: Duration = Duration::from_mins(20);

/// Real trainings, clean and with leaks: called, right line first, holder, class, readings, and what they cost
#[derive(Debug, clap::Args)]
pub(crate) struct BenchRealArgs {
    /// Processes that keep a core busy each, beside every run
    #[arg(long, default_value_t = 0, value_name = "N")]
    beside: usize,
    /// Only these trainings or leaks
    #[arg(long, value_name = "PROGRAM[:LEAK]", num_args = 1..)]
    only: Vec<String>,
    /// Runs of seconds instead of a minute
    #[arg(long)]
    short: bool,
    /// Python that runs the programs, with all they need [default: .venv with everything]
    #[arg(long, value_name = "PATH", requires = "caulk")]
    python: Option<PathBuf>,
    /// Command to measure [default: the one of .venv, built first]
    #[arg(long, value_name = "PATH", requires = "python")]
    caulk: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &BenchRealArgs, machine: &str) -> anyhow::Result<()> {
    let folder = workspace.path(TRAININGS);
    let trainings = real::read(&folder, &args.only)?;
    let runner = Runner::new(workspace, args, folder)?;
    let _busy = Busy::start(args.beside)?;
    let mut rows = Vec::new();
    for (program, training) in &trainings {
        let words = if args.short { training.short.as_slice() } else { &[] };
        rows.push(runner.row(program, words, None));
        rows.extend(training.leaks.iter().map(|leak| runner.row(program, words, Some(leak))));
    }
    console::data(format!(
        "{machine}; {}{} busy processes beside\n",
        if args.short { "short runs; " } else { "" },
        args.beside
    ));
    console::data(real::render(&rows));
    if real::meets_goal(&rows) {
        return Ok(());
    }
    let hint = "target/bench-real/PROGRAM-LEAK holds the report, the program's output and the recording";
    Err(failure("not every leak was called, named at its line, or every clean run left alone", hint))
}

/// What runs the programs, and where results go.
struct Runner {
    caulk: PathBuf,
    python: PathBuf,
    programs: PathBuf,
    output: PathBuf,
}

impl Runner {
    fn new(workspace: &Workspace, args: &BenchRealArgs, programs: PathBuf) -> anyhow::Result<Self> {
        let output = workspace.path("target/bench-real");
        if let (Some(caulk), Some(python)) = (args.caulk.clone(), args.python.clone()) {
            return Ok(Self { caulk, python, programs, output });
        }
        let groups = [Packages::Dev, Packages::Full, Packages::Real];
        let environment = develop::prepare(workspace, &Interpreter::default(), &groups, Build::Release)?;
        Ok(Self { caulk: environment.bin("caulk"), python: environment.bin("python"), programs, output })
    }

    fn row(&self, program: &str, words: &[String], leak: Option<(&String, &Leak)>) -> Row {
        let name = leak.map_or_else(|| program.to_owned(), |(leak, _)| format!("{program}:{leak}"));
        console::step(&name);
        match self.judge(program, words, leak) {
            Ok((judged, report, epochs)) => Row { name, judged, report, epochs },
            Err(error) => {
                let judged = Judged::Failed(format!("{error:#}"));
                Row { name, judged, report: Report::default(), epochs: 0 }
            }
        }
    }

    fn judge(
        &self,
        program: &str,
        words: &[String],
        leak: Option<(&String, &Leak)>,
    ) -> anyhow::Result<(Judged, Report, usize)> {
        let file = format!("{program}.py");
        let folder =
            self.output.join(leak.map_or_else(|| program.into(), |(leak, _)| format!("{program}-{leak}")));
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        let (report, stdout, stderr) =
            (folder.join("report.json"), folder.join("stdout.txt"), folder.join("stderr.txt"));
        let switch = leak.map_or_else(Vec::new, |(leak, _)| vec!["--leak".to_owned(), leak.clone()]);
        let command = self.command(&file, &folder, &report).args(words).args(switch);
        console::echo(&command);
        let (status, _) = usage::watch(&command, &stdout, &stderr, LIMIT)?
            .with_context(|| format!("did not end within {} minutes", LIMIT.as_secs() / 60))?;
        anyhow::ensure!(status.success(), "ended with {status}; see `{}`", stderr.display());
        let report = Report::read(&report)?;
        let judged = match leak {
            None => real::judge_clean(&report),
            Some((name, leak)) => {
                let line = real::marked_line(&text(&self.programs.join(&file))?, name)?;
                real::judge_leak(leak, &file, line, &report)
            }
        };
        Ok((judged, report, epochs(&text(&stdout)?)))
    }

    fn command(&self, file: &str, folder: &Path, report: &Path) -> Cmd {
        Cmd::new(&self.caulk)
            .args(["run", "--progress", "none", "--report-json"])
            .arg(report)
            .arg("--output")
            .arg(folder.join("run"))
            .arg("--")
            .arg(&self.python)
            .arg(file)
            .env("OMP_NUM_THREADS", "1")
            .env("MPLBACKEND", "Agg")
            .folder(&self.programs)
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read `{}`", path.display()))
}

/// Epochs that the program announced: lines such as `epoch 3: loss 0.4`.
fn epochs(stdout: &str) -> usize {
    let announces = |line: &&str| {
        let number = EPOCHS.iter().find_map(|word| line.strip_prefix(word));
        number.and_then(|rest| rest.split_once(':')).is_some_and(|(number, _)| number.parse::<u32>().is_ok())
    };
    stdout.lines().filter(announces).count()
}

/// Processes that do nothing but keep cores busy, until this is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> anyhow::Result<Self> {
        // Filled one by one: what has started is stopped, too, where another cannot.
        let mut busy = Self(Vec::new());
        for _ in 0..count {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
            busy.0.push(command.spawn().context("failed to start a busy process")?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself: there is nothing else to do about it.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

#[test]
fn epochs_are_counted_by_their_lines() {
    assert_eq!(epochs("epoch 1: loss 2\nshard 2: x\nrepeat 12: y\nepochs: 3\nepoch of: rest\n"), 3);
}
