//! One cell: this tree's wheel in a fresh environment, on one CPython.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::environment::Tools;
use crate::process::Cmd;
use crate::workspace::Workspace;

/// Every CPython that caulk is meant for, and the free-threaded one.
pub(crate) const PYTHONS: [&str; 7] = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.14t", "3.15"];
/// Tests that need neither torch nor minutes: frames, forks, and growth in a process.
const CORE: [&str; 3] =
    ["python/tests/test_frames.py", "python/tests/test_fork.py", "python/tests/test_flat.py"];

/// What came of a cell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Version of CPython: the full one if it ran.
    pub(crate) python: String,
    /// Version of torch, if there is one.
    pub(crate) torch: Option<String>,
    /// `caulk selftest` and the core tests, or why they did not run.
    pub(crate) outcome: Outcome,
}

/// Whether a cell ran, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran. What failed, if anything.
    Ran(Vec<String>),
    /// It could not run.
    NotRun(String),
}

/// The answer of `caulk selftest --format json`.
#[derive(Debug, Deserialize)]
struct Selftest {
    checks: Vec<Check>,
}

#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    state: String,
}

/// Runs one cell. With `torch`, the newest that has a wheel for this CPython is installed.
pub(crate) fn run(workspace: &Workspace, tools: &Tools, wheel: &Path, python: &str, torch: bool) -> Cell {
    let not_run =
        |why: String| Cell { python: python.to_owned(), torch: None, outcome: Outcome::NotRun(why) };
    let Some(interpreter) = interpreter(python) else {
        return not_run(format!("no `python{python}` on the path, nor in `~/.pyenv`"));
    };
    let folder = workspace.path("target/matrix").join(python);
    match prepared(tools, &folder, &interpreter, wheel, torch) {
        Ok(()) => tried(workspace, &folder),
        Err(error) => not_run(first_line(&error.to_string())),
    }
}

fn prepared(
    tools: &Tools,
    folder: &Path,
    interpreter: &Path,
    wheel: &Path,
    torch: bool,
) -> anyhow::Result<()> {
    tools
        .command("uv")
        .args(["venv", "--quiet", "--clear", "--python"])
        .arg(interpreter)
        .arg(folder)
        .read()?;
    let packages: &[&str] = if torch { &["pytest", "numpy", "torch"] } else { &["pytest"] };
    tools
        .command("uv")
        .args(["pip", "install", "--quiet", "--python"])
        .arg(folder.join("bin/python"))
        .arg(wheel)
        .args(packages.iter().copied())
        .read()?;
    Ok(())
}

fn tried(workspace: &Workspace, folder: &Path) -> Cell {
    let python = folder.join("bin/python");
    let asked = |code: &str| Cmd::new(&python).args(["-c", code]).read().map(|text| text.trim().to_owned());
    let mut failed = match selftest(folder, &python) {
        Ok(failed) => failed,
        Err(error) => vec![format!("selftest: {}", first_line(&error.to_string()))],
    };
    let tests = Cmd::new(&python).args(["-m", "pytest", "--quiet"]).args(CORE).folder(workspace.root());
    if !tests.works() {
        failed.push("core tests".to_owned());
    }
    Cell {
        python: asked("import platform; print(platform.python_version())").unwrap_or_default(),
        torch: asked("import torch; print(torch.__version__)").ok(),
        outcome: Outcome::Ran(failed),
    }
}

/// Names of the checks that are a problem.
fn selftest(folder: &Path, python: &Path) -> anyhow::Result<Vec<String>> {
    let command = Cmd::new(folder.join("bin/caulk")).args(["selftest", "--format", "json", "--python"]);
    // It ends with 1 if something does not work, and its answer has what.
    let output = command.arg(python).command().output()?;
    let selftest: Selftest = serde_json::from_slice(&output.stdout)?;
    let problems = selftest.checks.into_iter().filter(|check| check.state == "problem");
    Ok(problems.map(|check| format!("selftest: {}", check.name)).collect())
}

/// The first interpreter of a version that answers.
fn interpreter(version: &str) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let kept = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().filter_map(Result::ok);
    let of_version = |name: &str| name.rsplit_once('.').is_some_and(|(minor, _)| minor == version);
    let kept = kept.filter(|entry| entry.file_name().to_str().is_some_and(of_version));
    let named = std::iter::once(PathBuf::from(format!("python{version}")));
    named.chain(kept.map(|entry| entry.path().join("bin/python"))).find(|path| {
        let answer =
            Cmd::new(path).args(["-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).read();
        answer.is_ok_and(|answer| answer.trim() == version.trim_end_matches('t'))
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
