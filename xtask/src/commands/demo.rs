//! `cargo xtask demo`: a real training that leaks, and the report on it.

use std::fs;

use anyhow::Context;

use crate::commands::develop::{self, Interpreter};
use crate::console::{self, failure};
use crate::environment::Packages;
use crate::findings::Report;
use crate::package::Build;
use crate::process::Cmd;
use crate::workspace::Workspace;

/// The program, and the statement in it that leaks.
const PROGRAM: &str = "examples/train_detector.py";
/// Where the report goes; there once the demo has run.
const FOLDER: &str = "target/demo";
const LEAK: &str = "self.val_ious.append(iou)";

/// Run a leaking training program under caulk and show the finding
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    interpreter: Interpreter,
}

pub(crate) fn run(workspace: &Workspace, args: &DemoArgs) -> anyhow::Result<()> {
    let new = |place: &str| !workspace.path(place).exists();
    if new(".venv") || new("target/develop") {
        console::step(
            "the first time: downloads torch (3 GB), then compiles, 5 minutes on two cores; later: seconds",
        );
    }
    let environment = develop::prepare(workspace, &args.interpreter, &[Packages::Dev], Build::Develop)?;
    let folder = workspace.path(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let report = folder.join("report.json");
    console::step(format!("running {PROGRAM}, which leaks, under caulk (ten seconds)"));
    Cmd::new(environment.typed("caulk"))
        .args(["run", "--report-json"])
        .arg(&report)
        .arg("--")
        .arg(environment.typed("python"))
        .args([PROGRAM, "--epochs", "8", "--steps", "8"])
        .folder(workspace.root())
        .run()?;
    verify(workspace, &Report::read(&report)?)
}

fn verify(workspace: &Workspace, report: &Report) -> anyhow::Result<()> {
    let source =
        fs::read_to_string(workspace.path(PROGRAM)).with_context(|| format!("failed to read {PROGRAM}"))?;
    let line = line_of(&source).with_context(|| format!("{PROGRAM} does not contain `{LEAK}`"))?;
    match report.alarms().find(|finding| finding.names(PROGRAM, line)) {
        Some(finding) => {
            console::step(format!("found: {} at {PROGRAM}:{line}", finding.class));
            Ok(())
        }
        None => Err(failure(
            format!("the leak at {PROGRAM}:{line} was not found"),
            "target/demo/report.json lists what was found instead; its `notes` and `verdicts` explain why",
        )),
    }
}

fn line_of(source: &str) -> Option<u32> {
    source.lines().zip(1..).find(|(line, _)| line.trim() == LEAK).map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_example_has_exactly_one_leaking_line() {
        let source = fs::read_to_string(Workspace::here().path(PROGRAM)).unwrap();
        assert!(line_of(&source).is_some());
        assert_eq!(source.matches(LEAK).count(), 1);
    }
}
