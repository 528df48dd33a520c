//! `caulk check` as a program: what it reported, and what that cost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context;

use crate::bench::usage::{self, Usage};
use crate::findings::Report;
use crate::package::{self, Build};
use crate::process::Cmd;
use crate::workspace::Workspace;

/// The command, freshly built.
#[derive(Debug, Clone)]
pub(crate) struct Checker {
    caulk: PathBuf,
}

/// What came of a check.
#[derive(Debug)]
pub(crate) struct Checked {
    /// What it reported.
    pub(crate) report: Report,
    /// What it used.
    pub(crate) usage: Usage,
}

impl Checker {
    /// Builds the command.
    pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<Self> {
        Ok(Self { caulk: package::build_command(workspace, Build::Release)? })
    }

    /// The command line that checks `path` in `folder`: nothing of the surroundings or of an earlier run counts.
    pub(crate) fn command(&self, folder: &Path, path: &str) -> Cmd {
        let words = ["check", "--isolated", "--no-cache", "--allow-unread", "--output-format", "json", path];
        Cmd::new(&self.caulk).args(words).folder(folder)
    }

    /// Applies fixes to what lies in `folder`.
    pub(crate) fn fix(&self, folder: &Path, options: &[&str]) -> anyhow::Result<()> {
        let command = Cmd::new(&self.caulk)
            .args(["check", "--isolated", "--allow-unread", "--quiet"])
            .args(options.iter().copied())
            .arg(".")
            .folder(folder);
        let output = command.command().output().with_context(|| format!("failed to start `{command}`"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(is_well(output.status), "`{command}` ended with {}: {}", output.status, said.trim());
        Ok(())
    }

    /// Checks `path` in `folder`. The report stays in `output`, messages on stderr in a file beside it.
    pub(crate) fn check(
        &self,
        folder: &Path,
        path: &str,
        output: &Path,
        limit: Duration,
    ) -> anyhow::Result<Checked> {
        let command = self.command(folder, path);
        let stderr = output.with_extension("stderr");
        let (status, usage) = usage::watch(&command, output, &stderr, limit)?
            .with_context(|| format!("did not end within {} s", limit.as_secs()))?;
        if !is_well(status) {
            let said = fs::read_to_string(&stderr).unwrap_or_default();
            anyhow::bail!("`{command}` ended with {status}: {}", said.trim());
        }
        Ok(Checked { report: Report::read(output)?, usage })
    }
}

/// 0: nothing found; 1: something found.
fn is_well(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 1))
}
