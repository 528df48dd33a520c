//! Does a program notice that caulk is there? It must print the same bytes and end the same with it and without.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use anyhow::Context;
use serde::Serialize;

use crate::columns;
use crate::process::Cmd;
use crate::zoo::run::Runner;
use crate::zoo::truth::{Side, Truth};

/// Enough for boundaries, a census and a trace, and soon over.
const MOST_EPOCHS: u32 = 4;
const MOST_STEPS: u32 = 8;

/// What came of one program.
#[derive(Debug, Serialize)]
pub(crate) struct ConductRow {
    id: String,
    side: &'static str,
    conduct: Conduct,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Conduct {
    Same,
    /// Two runs without caulk differ already.
    NotComparable,
    Differs(String),
}

impl ConductRow {
    pub(crate) fn passed(&self) -> bool {
        !matches!(self.conduct, Conduct::Differs(_))
    }
}

/// Runs one side of a scenario with caulk and without.
pub(crate) fn compare(runner: &Runner, truth: &Truth, side: Side) -> anyhow::Result<ConductRow> {
    let folder = runner.output.join(format!("{}-{}-conduct", truth.id, side.folder()));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    let plain = || output(&program(Cmd::new(&runner.python), truth, side));
    let (without, with) = (plain()?, output(&program(watched(runner, &folder), truth, side))?);
    let conduct = match difference(&without, &with) {
        None => Conduct::Same,
        Some(_) if difference(&without, &plain()?).is_some() => Conduct::NotComparable,
        Some(difference) => Conduct::Differs(difference),
    };
    Ok(ConductRow { id: truth.id.clone(), side: side.folder(), conduct })
}

fn watched(runner: &Runner, folder: &Path) -> Cmd {
    let report = folder.with_extension("json");
    // What caulk itself says while the program runs is not the program's.
    Cmd::new(&runner.caulk)
        .args(["run", "--quiet", "--progress", "none", "--no-alarms", "--report-json"])
        .arg(report)
        .arg("--output")
        .arg(folder)
        .arg("--")
        .arg(&runner.python)
}

fn program(start: Cmd, truth: &Truth, side: Side) -> Cmd {
    start
        .arg(format!("{}/main.py", side.folder()))
        .args(["--epochs".into(), truth.default_epochs.min(MOST_EPOCHS).to_string()])
        .args(["--steps".into(), truth.default_steps.min(MOST_STEPS).to_string()])
        .env("OMP_NUM_THREADS", "1")
        .env("MPLBACKEND", "Agg")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .folder(&truth.folder)
}

fn output(command: &Cmd) -> anyhow::Result<Output> {
    let mut command = command.command();
    command.stdin(Stdio::null()).output().context("failed to start a program of the zoo")
}

fn difference(without: &Output, with: &Output) -> Option<String> {
    if without.status != with.status {
        return Some(format!("ends with {} instead of {}", with.status, without.status));
    }
    let streams = [("stdout", &without.stdout, &with.stdout), ("stderr", &without.stderr, &with.stderr)];
    let (name, before, after) = streams.into_iter().find(|(_, before, after)| before != after)?;
    let lines =
        |bytes: &[u8]| -> Vec<String> { String::from_utf8_lossy(bytes).lines().map(String::from).collect() };
    let (before, after) = (lines(before), lines(after));
    let at = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let shown = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "nothing more".into());
    Some(format!("{name}, line {}: `{}` instead of `{}`", at + 1, shown(&after), shown(&before)))
}

/// A table of all that were compared.
pub(crate) fn render(rows: &[ConductRow]) -> String {
    let row = |row: &ConductRow| {
        let told = match &row.conduct {
            Conduct::Same => "the same".to_owned(),
            Conduct::NotComparable => "not comparable: two runs without caulk differ".to_owned(),
            Conduct::Differs(difference) => format!("DIFFERS: {difference}"),
        };
        [row.id.clone(), row.side.to_owned(), told]
    };
    let same = rows.iter().filter(|row| row.conduct == Conduct::Same).count();
    let table = columns::align(&rows.iter().map(row).collect::<Vec<_>>());
    format!("{table}\n\n{same} of {} programs print the same bytes and end the same", rows.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn check(with: (i32, &str, &str), expected: Option<&str>) {
        let ended = |(code, stdout, stderr): (i32, &str, &str)| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: stderr.into(),
        };
        assert_eq!(difference(&ended((0, "a\nb\n", "")), &ended(with)).as_deref(), expected);
    }

    #[test]
    fn the_first_difference_is_told() {
        check((0, "a\nb\n", ""), None);
        check((3, "a\nb\n", ""), Some("ends with exit status: 3 instead of exit status: 0"));
        check((0, "a\nc\n", ""), Some("stdout, line 2: `c` instead of `b`"));
        check((0, "a\n", ""), Some("stdout, line 2: `nothing more` instead of `b`"));
        check((0, "a\nb\n", "noise"), Some("stderr, line 1: `noise` instead of `nothing more`"));
    }
}
