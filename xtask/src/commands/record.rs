//! `cargo xtask record`: runs the test programs and keeps a recording of each, by which the reports are tested.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use crate::commands::develop::{self, Interpreter};
use crate::console::{self, OrHint, failure};
use crate::environment::Packages;
use crate::package::Build;
use crate::process::Cmd;
use crate::programs::{self, Recorded};
use crate::workspace::Workspace;

const RECORDINGS: &str = "python/tests/recordings";
/// A program that runs longer hangs.
const LIMIT: Duration = Duration::from_mins(5);
/// Recordings that earlier versions made begin so.
const OLD: &str = "old-";
/// All recordings together may take so many bytes.
const ROOM: u64 = 10_000_000;

/// Run the test programs and keep a recording of each; the reports of all are snapshots
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Only these programs or runs [default: all of python/tests/programs/index.toml]
    names: Vec<String>,
    /// Programs that run at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Python that runs the programs [default: .venv]
    #[arg(long, value_name = "PATH", requires = "caulk")]
    python: Option<PathBuf>,
    /// Command that records, with its package in that Python [default: the one of .venv, built first]
    #[arg(long, value_name = "PATH", requires = "python")]
    caulk: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &RecordArgs) -> anyhow::Result<()> {
    let runs = programs::recorded(workspace, &args.names)?;
    let recorder = Recorder::new(workspace, args)?;
    console::step(format!("recording {} runs", runs.len()));
    let failed = recorder.all(&runs, args.jobs);
    if failed > 0 {
        return Err(failure(
            format!("{failed} of {} runs left no recording", runs.len()),
            "target/recordings/NAME holds what the program and caulk printed",
        ));
    }
    if args.names.is_empty() {
        remove_others(&workspace.path(RECORDINGS), &runs)?;
    }
    has_room(&workspace.path(RECORDINGS))?;
    console::step("reports of the recordings, as snapshots");
    Cmd::cargo()
        .args(["test", "--quiet", "--package", "caulk", "--bins", "recordings::"])
        .env("INSTA_UPDATE", "always")
        .folder(workspace.root())
        .run()
        .or_hint("the reports differ from the index", "look at the difference with `git diff`")
}

/// What runs the programs and packs the recordings.
struct Recorder {
    root: PathBuf,
    caulk: PathBuf,
    python: PathBuf,
    pack: PathBuf,
    /// Folders of the interpreter, which recordings do not name.
    prefixes: Vec<String>,
    output: PathBuf,
}

impl Recorder {
    fn new(workspace: &Workspace, args: &RecordArgs) -> anyhow::Result<Self> {
        let (caulk, python) = if let (Some(caulk), Some(python)) = (&args.caulk, &args.python) {
            // Programs run in folders of their own.
            (std::path::absolute(caulk)?, std::path::absolute(python)?)
        } else {
            let environment =
                develop::prepare(workspace, &Interpreter::default(), &[Packages::Dev], Build::Develop)?;
            (environment.bin("caulk"), environment.bin("python"))
        };
        Cmd::cargo()
            .args([
                "build",
                "--quiet",
                "--profile",
                "develop",
                "--package",
                "caulk_record",
                "--example",
                "pack",
            ])
            .folder(workspace.root())
            .run()?;
        let code = "import sys; print(sys.prefix, sys.base_prefix, sep='\\n')";
        let prefixes = Cmd::new(&python).args(["-c", code]).read()?;
        Ok(Self {
            root: workspace.root().to_owned(),
            caulk,
            python,
            pack: workspace.target().join("develop/examples/pack"),
            prefixes: prefixes.lines().map(str::to_owned).collect(),
            output: workspace.path("target/recordings"),
        })
    }

    /// Records all runs, several at a time; the number of those that failed.
    fn all(&self, runs: &[Recorded], jobs: usize) -> usize {
        let (next, failed) = (Mutex::new(runs.iter().enumerate()), Mutex::new(0));
        thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(|| {
                    while let Some((number, run)) = take(&next) {
                        let started = Instant::now();
                        let outcome = self.record(run);
                        let seconds = started.elapsed().as_secs_f64();
                        console::step(format!("{}/{} {} {seconds:.0} s", number + 1, runs.len(), run.name));
                        if let Err(error) = outcome {
                            console::print_error(&error);
                            *failed.lock().expect("no thread panics with the lock") += 1;
                        }
                    }
                });
            }
        });
        failed.into_inner().expect("no thread panics with the lock")
    }

    fn record(&self, run: &Recorded) -> anyhow::Result<()> {
        let folder = self.output.join(&run.name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
        }
        let job = folder.join("job");
        fs::create_dir_all(&job).with_context(|| format!("failed to make `{}`", job.display()))?;
        wait(&self.command(run, &folder, &job), &folder)?;
        remove_segments(&folder.join("run"));
        self.pack(run, &folder, &job)
    }

    fn command(&self, run: &Recorded, folder: &Path, job: &Path) -> Cmd {
        Cmd::new(&self.caulk)
            .args(["run", "--progress", "none", "--output"])
            .arg(folder.join("run"))
            .arg("--")
            .arg(&self.python)
            .args(run.words.iter())
            .env("OMP_NUM_THREADS", "1")
            .env("MPLBACKEND", "Agg")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .folder(job)
    }

    /// One file of the recording, without paths of this machine.
    fn pack(&self, run: &Recorded, folder: &Path, job: &Path) -> anyhow::Result<()> {
        let programs = self.root.join(&run.folder);
        let mut command = Cmd::new(&self.pack)
            .arg(folder.join("run"))
            .arg(folder.join(&run.name))
            .arg(&run.folder)
            .arg(format!("{}/=", programs.display()))
            .arg(format!("{}=/job", job.display()));
        for prefix in &self.prefixes {
            command = command.arg(format!("{prefix}=/python"));
        }
        command.read()?;
        let archive = self.root.join(RECORDINGS).join(format!("{}.tar.gz", run.name));
        // The same recording gives the same bytes.
        Cmd::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
            .args(["--use-compress-program=gzip --no-name --best", "--create", "--file"])
            .arg(archive)
            .arg("--directory")
            .arg(folder)
            .arg(&run.name)
            .read()
            .map(drop)
    }
}

fn take<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    queue.lock().expect("no thread panics with the lock").next()
}

/// Waits for the end of a run. How the program ends is part of the recording.
fn wait(command: &Cmd, folder: &Path) -> anyhow::Result<()> {
    let create = |name: &str| {
        let path = folder.join(name);
        File::create(&path).with_context(|| format!("failed to make `{}`", path.display()))
    };
    let mut child = command.command();
    child.stdin(Stdio::null()).stdout(create("stdout.txt")?).stderr(create("stderr.txt")?);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CAULK_") || (name.starts_with("PYTHON") && name != "PYTHONDONTWRITEBYTECODE") {
            child.env_remove(&*name);
        }
    }
    let mut child = child.spawn().with_context(|| format!("failed to start `{command}`"))?;
    let started = Instant::now();
    while child.try_wait().context("failed to wait for the program")?.is_none() {
        if started.elapsed() > LIMIT {
            child.kill().and_then(|()| child.wait()).context("failed to kill the program")?;
            anyhow::bail!("did not end within {} minutes", LIMIT.as_secs() / 60);
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Removes the shared memory that the program has left behind, according to its recording.
fn remove_segments(run: &Path) {
    let head =
        fs::read(run.join("run.json")).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let segments = head.as_ref().and_then(|head| head.pointer("/left/segments")?.as_array());
    for name in segments.into_iter().flatten().filter_map(|segment| segment.get("name")?.as_str()) {
        // One that is gone by now needs no removal.
        let _ = fs::remove_file(Path::new("/dev/shm").join(name));
    }
}

/// Removes recordings and snapshots that the index no longer wants.
fn remove_others(folder: &Path, runs: &[Recorded]) -> anyhow::Result<()> {
    for path in files(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kept = |run: &Recorded| name.strip_prefix(&run.name).is_some_and(|rest| rest.starts_with('.'));
        if name.starts_with(OLD) || runs.iter().any(kept) {
            continue;
        }
        fs::remove_file(&path).with_context(|| format!("failed to remove `{}`", path.display()))?;
    }
    Ok(())
}

fn has_room(folder: &Path) -> anyhow::Result<()> {
    let archives = files(folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "gz"));
    let bytes: u64 = archives.filter_map(|path| Some(path.metadata().ok()?.len())).sum();
    console::note(format!("{:.1} MB of recordings", bytes as f64 / 1e6));
    if bytes <= ROOM {
        return Ok(());
    }
    Err(failure(
        format!("the recordings take {bytes} bytes, more than {ROOM}"),
        "make programs shorter, or give the reason in the index why one is not recorded",
    ))
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read `{}`", folder.display()))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}
