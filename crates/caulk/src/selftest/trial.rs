//! One run of the tiny training under the real command, as a user would start it.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::assemble;

/// The program, in the package.
const PROGRAM: &str = "_selftest/program.py";
/// End of the lines that leak: one with torch, one without.
const MARK: &str = "# leak";
/// Nothing of this takes so long, unless it hangs.
const LONGEST: Duration = Duration::from_mins(5);

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trial {
    /// Does the program leak?
    pub(crate) leak: bool,
    /// With the heap sampler?
    pub(crate) heap: bool,
}

/// All ways to run it.
pub(crate) const TRIALS: [Trial; 4] = [
    Trial { leak: true, heap: true },
    Trial { leak: false, heap: true },
    Trial { leak: true, heap: false },
    Trial { leak: false, heap: false },
];

impl Trial {
    fn name(self) -> String {
        format!("{}{}", if self.leak { "leak" } else { "clean" }, if self.heap { "" } else { "-no-heap" })
    }
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) trial: Trial,
    /// The report; `Err` says why there is none.
    pub(crate) report: Result<Value, String>,
    /// Lines of the program that hold memory of the heap, by the sampler.
    pub(crate) lines: usize,
}

/// Where the program and the recordings lie.
pub(crate) struct Place {
    /// Removed at the end, unless the user wants to keep it.
    _temporary: Option<tempfile::TempDir>,
    folder: Utf8PathBuf,
    /// Numbers of the lines that leak.
    pub(crate) lines: Vec<u64>,
}

impl Place {
    /// Copies the program to a folder of its own: lines of caulk's own package are nobody's leak.
    ///
    /// # Errors
    /// If the package lacks it, or the folder cannot be made.
    pub(crate) fn prepare(package: &Utf8Path, keep: Option<&Utf8Path>) -> anyhow::Result<Self> {
        let program = package.join(PROGRAM);
        let text = fs::read_to_string(&program).with_context(|| {
            format!("failed to read `{program}`\nhint: install caulk again: it is a part of it")
        })?;
        let marked = (1..).zip(text.lines()).filter(|(_, line)| line.ends_with(MARK));
        let lines = marked.map(|(number, _)| number).collect();
        let temporary = if keep.is_none() { Some(tempfile::tempdir()?) } else { None };
        let folder = match (&temporary, keep) {
            (Some(temporary), _) => Utf8PathBuf::from_path_buf(temporary.path().to_owned())
                .map_err(|path| anyhow::anyhow!("`{}` is no name in UTF-8", path.display()))?,
            (None, keep) => keep.map(Utf8Path::to_owned).unwrap_or_default(),
        };
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{folder}`"))?;
        let folder = folder.canonicalize_utf8().unwrap_or(folder);
        fs::write(folder.join("program.py"), text)
            .with_context(|| format!("failed to write into `{folder}`"))?;
        Ok(Self { _temporary: temporary, folder, lines })
    }
}

/// Runs the program once and reads what caulk made of it.
pub(crate) fn run(trial: Trial, python: &str, place: &Place) -> Seen {
    let (report, lines) = match record(trial, python, place) {
        Ok((report, lines)) => (Ok(report), lines),
        Err(error) => (Err(format!("{error:#}")), 0),
    };
    Seen { trial, report, lines }
}

fn record(trial: Trial, python: &str, place: &Place) -> anyhow::Result<(Value, usize)> {
    let folder = place.folder.join(trial.name());
    let report = place.folder.join(format!("{}.json", trial.name()));
    let mut command = Command::new(std::env::current_exe().context("failed to find the command")?);
    command.args(["run", "--quiet", "--output", folder.as_str(), "--report-json", report.as_str()]);
    if !trial.heap {
        command.arg("--no-heap");
    }
    command.args(["--", python, "program.py", if trial.leak { "leak" } else { "clean" }]);
    let log = place.folder.join(format!("{}.log", trial.name()));
    let output = fs::File::create(&log).with_context(|| format!("failed to write `{log}`"))?;
    command.current_dir(&place.folder).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    caulk_supervise::as_found(&mut command);
    let code = wait(command.spawn().context("failed to start `caulk run`")?)?;
    if code != Some(0) {
        let said = fs::read_to_string(&log).unwrap_or_default();
        bail!("the program failed: {}", said.lines().next_back().unwrap_or("it said nothing"));
    }
    let text = fs::read_to_string(&report).context("no report was written")?;
    let lines = assemble::lines(&folder, None).map_or(0, |found| found.rows.len());
    Ok((serde_json::from_str(&text).context("the report is no JSON")?, lines))
}

/// The exit code, if it exits.
fn wait(mut child: Child) -> anyhow::Result<Option<i32>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if began.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            bail!("the program did not end within {} s", LONGEST.as_secs());
        }
        sleep(Duration::from_millis(50));
    }
}
