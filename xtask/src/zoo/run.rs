//! Runs one program of a scenario under `caulk run`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::console;
use crate::findings::Report;
use crate::process::Cmd;
use crate::zoo::truth::{Side, Truth};

/// A program that runs longer hangs.
const LIMIT: Duration = Duration::from_mins(15);

/// What runs the programs, and where results go.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    /// The command `caulk`.
    pub(crate) caulk: PathBuf,
    /// The interpreter.
    pub(crate) python: PathBuf,
    /// Folder of the results.
    pub(crate) output: PathBuf,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What caulk reported.
    pub(crate) report: Report,
    /// Epochs that the program printed.
    pub(crate) epochs: u32,
}

impl Outcome {
    /// From the report and from what the program printed.
    pub(crate) fn read(report: &Path, stdout: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(stdout).with_context(|| format!("failed to read `{}`", stdout.display()))?;
        Ok(Self { report: Report::read(report)?, epochs: epochs(&text) })
    }
}

impl Runner {
    /// Runs the program to its end. Its streams, the recording and the report stay in the folder of the results.
    pub(crate) fn run(&self, truth: &Truth, side: Side) -> anyhow::Result<Outcome> {
        self.run_in(format!("{}-{}", truth.id, side.folder()), truth, side, truth.default_epochs)
    }

    /// Runs the leaking program for so many epochs.
    pub(crate) fn run_epochs(&self, truth: &Truth, epochs: u32) -> anyhow::Result<Outcome> {
        let side = Side::Leaky;
        self.run_in(format!("{}-{}-{epochs}", truth.id, side.folder()), truth, side, epochs)
    }

    fn run_in(&self, name: String, truth: &Truth, side: Side, epochs: u32) -> anyhow::Result<Outcome> {
        let folder = self.output.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        let (report, stdout) = (folder.join("report.json"), folder.join("stdout.txt"));
        let command = self.command(truth, side, epochs, &folder);
        console::echo(&command);
        wait(&command, &stdout, &folder.join("stderr.txt"))?;
        Outcome::read(&report, &stdout)
    }

    fn command(&self, truth: &Truth, side: Side, epochs: u32, folder: &Path) -> Cmd {
        Cmd::new(&self.caulk)
            .args(["run", "--progress", "none", "--report-json"])
            .arg(folder.join("report.json"))
            .arg("--output")
            .arg(folder.join("run"))
            .arg("--")
            .arg(&self.python)
            .arg(format!("{}/main.py", side.folder()))
            .args(["--epochs".into(), epochs.to_string()])
            .args(["--steps".into(), truth.default_steps.to_string()])
            .env("OMP_NUM_THREADS", "1")
            .env("MPLBACKEND", "Agg")
            .folder(&truth.folder)
    }
}

fn wait(command: &Cmd, stdout: &Path, stderr: &Path) -> anyhow::Result<()> {
    let create =
        |path: &Path| File::create(path).with_context(|| format!("failed to make `{}`", path.display()));
    let mut child = command.command();
    child.stdin(std::process::Stdio::null()).stdout(create(stdout)?).stderr(create(stderr)?);
    let mut child = child.spawn().with_context(|| format!("failed to start `{command}`"))?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("failed to wait for the program")? {
            anyhow::ensure!(status.success(), "ended with {status}; see `{}`", stderr.display());
            return Ok(());
        }
        if started.elapsed() > LIMIT {
            child.kill().and_then(|()| child.wait()).context("failed to kill the program")?;
            anyhow::bail!("did not end within {} minutes", LIMIT.as_secs() / 60);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Epochs that the program announced: lines that begin with `epoch N `.
fn epochs(stdout: &str) -> u32 {
    let announces = |line: &str| {
        line.strip_prefix("epoch ").and_then(|rest| rest.split_whitespace().next()).is_some_and(|number| {
            number.trim_end_matches([':', ',']).chars().all(|character| character.is_ascii_digit())
        })
    };
    stdout.lines().filter(|line| announces(line)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_counted_by_their_lines() {
        assert_eq!(epochs("epoch 1 loss=0.3\nepoch 2 loss=0.2\nbest epoch 2\nepochs done\n"), 2);
    }
}
