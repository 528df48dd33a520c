//! Programs that a command of caulk is tried on, each in a copy of its folder: those of the index, and folders of pairs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context;

use crate::console::{self, failure};
use crate::process::Cmd;
use crate::programs;
use crate::workspace::Workspace;

/// Folders that no copy has.
const LEFT_OUT: [&str; 3] = ["__pycache__", "recordings", ".caulk"];

/// A program, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    /// Its memory grows.
    pub(crate) leaks: bool,
    /// Folder to copy.
    folder: PathBuf,
    /// Words after the interpreter; files are named from the folder.
    words: Vec<String>,
}

/// Which programs to take, and the tools to run them with.
#[derive(Debug, clap::Args)]
pub(crate) struct SampleArgs {
    /// Only these programs [default: all]
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Programs of these folders instead of python/tests/programs: `ID/leaky/main.py`, `ID/leaky.py`, `NAME.py`; `clean` beside `leaky`
    #[arg(long, value_name = "PATH", num_args = 1..)]
    folder: Vec<PathBuf>,
    /// Programs that run at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Python that runs the programs [default: .venv]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Command to try, with its package in that Python [default: the one of .venv]
    #[arg(long, value_name = "PATH")]
    caulk: Option<PathBuf>,
}

/// Command and interpreter.
#[derive(Debug)]
pub(crate) struct Tools {
    caulk: PathBuf,
    python: PathBuf,
}

impl SampleArgs {
    /// The programs.
    pub(crate) fn samples(&self, workspace: &Workspace) -> anyhow::Result<Vec<Sample>> {
        if self.folder.is_empty() {
            return of_index(workspace, &self.only);
        }
        let mut all = Vec::new();
        for folder in &self.folder {
            all.extend(of_folder(folder).with_context(|| format!("failed to read `{}`", folder.display()))?);
        }
        all.retain(|sample| self.only.is_empty() || self.only.contains(&sample.name));
        if all.is_empty() {
            return Err(failure(
                "the folders have no such program",
                "name folders that hold ID/leaky/main.py",
            ));
        }
        Ok(all)
    }

    pub(crate) fn tools(&self, workspace: &Workspace) -> anyhow::Result<Tools> {
        let environment = workspace.path(".venv/bin");
        let tool = |chosen: &Option<PathBuf>, name: &str| {
            chosen.as_deref().map_or_else(|| Ok(environment.join(name)), std::path::absolute)
        };
        Ok(Tools { caulk: tool(&self.caulk, "caulk")?, python: tool(&self.python, "python")? })
    }

    /// Does something for each of some items, as many at a time as wanted; the results are in their order.
    pub(crate) fn each<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let worker = || {
            while let Some((at, item)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
            {
                let result = work(at, item);
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(worker);
            }
        });
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl Tools {
    /// The interpreter.
    pub(crate) fn python(&self) -> &Path {
        &self.python
    }
}

impl Sample {
    /// A leaky program and its clean twin.
    #[cfg(test)]
    pub(crate) fn of_test(name: &str) -> [Self; 2] {
        let sample = |leaks| Self { name: name.to_owned(), leaks, folder: PathBuf::new(), words: Vec::new() };
        [sample(true), sample(false)]
    }

    /// Copies its folder, and gives the command `caulk WORDS -- python PROGRAM` that runs there.
    pub(crate) fn command(&self, tools: &Tools, copy: &Path, words: &[&str]) -> anyhow::Result<Cmd> {
        if copy.exists() {
            fs::remove_dir_all(copy).with_context(|| format!("failed to clear `{}`", copy.display()))?;
        }
        copy_folder(&self.folder, copy).with_context(|| format!("failed to copy to `{}`", copy.display()))?;
        fs::write(copy.join("pyproject.toml"), "")?;
        Ok(Cmd::new(&tools.caulk)
            .args(words.iter().copied())
            .arg("--")
            .arg(&tools.python)
            .args(self.words.iter().cloned())
            .env("OMP_NUM_THREADS", "1")
            .env("MPLBACKEND", "Agg")
            .folder(copy))
    }
}

fn of_index(workspace: &Workspace, only: &[String]) -> anyhow::Result<Vec<Sample>> {
    let leaking = programs::leaking(workspace)?;
    let sample = |run: programs::Recorded| {
        let folder = workspace.path(&run.folder);
        let original = format!("{}/", folder.display());
        Sample {
            leaks: leaking.contains(&run.program),
            words: run.words.iter().map(|word| word.replace(&original, "")).collect(),
            name: run.name,
            folder,
        }
    };
    Ok(programs::recorded(workspace, only)?.into_iter().map(sample).collect())
}

/// The programs of a folder, by name.
fn of_folder(folder: &Path) -> std::io::Result<Vec<Sample>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "py") && is_program(&path) {
            let words = vec![format!("{name}.py")];
            found.push(Sample { leaks: true, name, folder: folder.to_owned(), words });
            continue;
        }
        for (side, leaks) in [("leaky", true), ("clean", false)] {
            let name = if leaks { name.clone() } else { format!("{name}-clean") };
            let (inside, beside) = (path.join(side), path.join(format!("{side}.py")));
            if inside.join("main.py").is_file() {
                found.push(Sample { name, leaks, folder: inside, words: vec!["main.py".into()] });
            } else if beside.is_file() {
                found.push(Sample { name, leaks, folder: path.clone(), words: vec![format!("{side}.py")] });
            }
        }
    }
    Ok(found)
}

/// Whether a file is a program rather than a module of one.
fn is_program(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains("__main__") && text.contains("epoch"))
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_file() {
            // Not the permissions: the original may be read-only.
            fs::write(to.join(name), fs::read(path)?)?;
        } else if path.is_dir() && !LEFT_OUT.iter().any(|left_out| name == *left_out) {
            copy_folder(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Prints which one begins.
pub(crate) fn announce(at: usize, of: usize, name: &str) {
    console::step(format!("{}/{of} {name}", at + 1));
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_and_copied() {
        let base = std::env::temp_dir().join(format!("caulk-samples-{}", std::process::id()));
        for (path, text) in [
            ("all/one/leaky/main.py", "x"),
            ("all/one/clean/main.py", "y"),
            ("all/one/clean/part/more.py", ""),
            ("all/two/leaky.py", ""),
            ("all/train.py", "for epoch in range(9): pass\nif __name__ == '__main__': pass\n"),
            ("all/verify.py", ""),
        ] {
            fs::create_dir_all(base.join(path).parent().unwrap()).unwrap();
            fs::write(base.join(path), text).unwrap();
        }
        let all = of_folder(&base.join("all")).unwrap();
        let names: Vec<(&str, bool)> = all.iter().map(|one| (one.name.as_str(), one.leaks)).collect();
        assert_eq!(names, [("one", true), ("one-clean", false), ("train", true), ("two", true)]);
        let tools = Tools { caulk: "caulk".into(), python: "python".into() };
        let copy = base.join("copy");
        let command = all[1].command(&tools, &copy, &["heal"]).unwrap();
        assert!(command.to_string().ends_with("caulk heal -- python main.py"), "{command}");
        assert!(copy.join("part/more.py").is_file());
        fs::remove_dir_all(&base).unwrap();
    }
}
