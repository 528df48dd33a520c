//! The index of the test programs: `python/tests/programs/index.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use serde::Deserialize;

use crate::console::failure;
use crate::workspace::Workspace;

const PROGRAMS: &str = "python/tests/programs";
const INDEX: &str = "index.toml";

/// One program, as the index has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    /// What the program shows, in one sentence.
    #[expect(dead_code, reason = "for people")]
    shows: String,
    /// Classes of findings that are right; none for a program that does not leak.
    #[serde(default)]
    class: Vec<String>,
    /// Memory grows, and no finding can name a line of it yet.
    #[expect(dead_code, reason = "the tests of reports ask for it")]
    #[serde(default)]
    unnamed: bool,
    /// Folder of the program.
    #[serde(default = "programs")]
    folder: String,
    /// Words between the interpreter and the program.
    #[serde(default)]
    launcher: Vec<String>,
    /// Arguments of the program.
    #[serde(default)]
    arguments: Vec<String>,
    /// Runs with other arguments, by the name that is added to the program's.
    #[serde(default)]
    runs: BTreeMap<String, Vec<String>>,
    /// Why no recording of it is kept.
    not_recorded: Option<String>,
}

fn programs() -> String {
    PROGRAMS.to_owned()
}

/// A run of a program whose recording is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Name of the recording: the program's, and what the run adds to it.
    pub(crate) name: String,
    /// Name of the program.
    pub(crate) program: String,
    /// Folder of the program, below the workspace.
    pub(crate) folder: String,
    /// Words after the interpreter.
    pub(crate) words: Vec<String>,
}

/// Every run that the index wants a recording of; with names: of these programs or runs alone.
pub(crate) fn recorded(workspace: &Workspace, names: &[String]) -> anyhow::Result<Vec<Recorded>> {
    let index = read(workspace)?;
    let all: Vec<_> = index.iter().flat_map(|(name, program)| runs(workspace, name, program)).collect();
    for name in names {
        if !all.iter().any(|(program, run)| name == program || *name == run.name) {
            let hint = format!("{PROGRAMS}/{INDEX} lists the programs, and why some are not recorded");
            return Err(failure(format!("no recording `{name}` is kept"), hint));
        }
    }
    let wanted = |(program, run): &(String, Recorded)| {
        names.is_empty() || names.iter().any(|name| name == program || *name == run.name)
    };
    Ok(all.into_iter().filter(wanted).map(|(_, run)| run).collect())
}

/// Programs whose report must have an alarm.
pub(crate) fn leaking(workspace: &Workspace) -> anyhow::Result<BTreeSet<String>> {
    let index = read(workspace)?;
    Ok(index.into_iter().filter(|(_, program)| !program.class.is_empty()).map(|(name, _)| name).collect())
}

fn read(workspace: &Workspace) -> anyhow::Result<BTreeMap<String, Program>> {
    let path: PathBuf = workspace.path(PROGRAMS).join(INDEX);
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
    toml::from_str(&text).with_context(|| format!("failed to understand `{}`", path.display()))
}

/// The runs of a program, each with the program's name.
fn runs(workspace: &Workspace, name: &str, program: &Program) -> Vec<(String, Recorded)> {
    if program.not_recorded.is_some() {
        return Vec::new();
    }
    let run = |suffix: &str, arguments: &[String]| {
        let path = workspace.path(&program.folder).join(format!("{name}.py"));
        let words = program.launcher.iter().cloned().chain([path.display().to_string()]);
        let run = Recorded {
            name: format!("{name}{suffix}"),
            program: name.to_owned(),
            folder: program.folder.clone(),
            words: words.chain(arguments.iter().cloned()).collect(),
        };
        (name.to_owned(), run)
    };
    let more = program.runs.iter().map(|(suffix, arguments)| run(&format!("-{suffix}"), arguments));
    std::iter::once(run("", &program.arguments)).chain(more).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_program_and_one_of_its_runs_are_found_by_name() {
        let workspace = Workspace::here();
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
            let runs = recorded(&workspace, &wanted).unwrap();
            runs.into_iter().map(|run| run.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["list_in_loop"]), ["list_in_loop"]);
        assert_eq!(names(&["worker_crops"]), ["worker_crops", "worker_crops-anew"]);
        assert_eq!(names(&["worker_crops-anew"]), ["worker_crops-anew"]);
        assert!(recorded(&workspace, &["no_such_program".to_owned()]).is_err());
    }
}
