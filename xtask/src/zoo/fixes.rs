//! What fixes do to the zoo's leaking programs: every finding with a fix is gone, fixing again would change nothing, what
//! is left parses and runs, and after safe fixes the program prints exactly what it printed before.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::checker::Checker;
use crate::columns;
use crate::findings::{Finding, Report};
use crate::process::Cmd;
use crate::zoo::truth::{Side, Truth};

const LIMIT: Duration = Duration::from_mins(1);

/// Which fixes are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Safe,
    All,
}

/// One scenario's results.
#[derive(Debug, Serialize)]
pub(crate) struct FixRow {
    id: String,
    /// Findings with a fix before, of either kind.
    offered: usize,
    /// What is wrong after all fixes.
    all: Vec<String>,
    /// What is wrong after safe fixes; none where there are no safe ones.
    safe: Option<Vec<String>>,
}

impl FixRow {
    pub(crate) fn passed(&self) -> bool {
        self.all.is_empty() && self.safe.as_ref().is_none_or(Vec::is_empty)
    }
}

/// What applies fixes and runs programs.
pub(crate) struct Fixer {
    pub(crate) checker: Checker,
    /// Interpreter that runs programs.
    pub(crate) python: PathBuf,
    /// Folder of the copies.
    pub(crate) output: PathBuf,
}

impl Fixer {
    /// Fixes copies of a leaking program.
    pub(crate) fn run(&self, truth: &Truth) -> anyhow::Result<FixRow> {
        let source = truth.folder.join(Side::Leaky.folder());
        let before = self.report(&source, &format!("{}-before", truth.id))?;
        let offered =
            |applicability: &str| before.findings.iter().filter(|found| offers(found, applicability)).count();
        let (safe, unsafe_) = (offered("safe"), offered("unsafe"));
        Ok(FixRow {
            id: truth.id.clone(),
            offered: safe + unsafe_,
            all: if safe + unsafe_ > 0 { self.all(truth, &source, &before)? } else { Vec::new() },
            safe: if safe > 0 { Some(self.safe(truth, &source)?) } else { None },
        })
    }

    fn all(&self, truth: &Truth, source: &Path, before: &Report) -> anyhow::Result<Vec<String>> {
        let folder = self.fixed(truth, source, Level::All)?;
        let after = self.report(&folder, &format!("{}-after", truth.id))?;
        let left = after.findings.iter().filter(|found| offers(found, "safe") || offers(found, "unsafe"));
        let mut wrong: Vec<_> = left.map(|found| format!("fixed again: {}", found.told())).collect();
        let fixed = before.findings.iter().filter(|found| offers(found, "safe") || offers(found, "unsafe"));
        let still = fixed.filter(|found| after.findings.iter().any(|other| is_same(found, other)));
        wrong.extend(still.map(|found| format!("still there: {}", found.told())));
        if after.problems.len() > before.problems.len() {
            wrong.extend(after.problems.iter().map(|problem| format!("does not parse: {}", problem.message)));
        }
        if let Err(error) = self.output_of(truth, &folder) {
            wrong.push(format!("does not run: {error:#}"));
        }
        Ok(wrong)
    }

    fn safe(&self, truth: &Truth, source: &Path) -> anyhow::Result<Vec<String>> {
        let folder = self.fixed(truth, source, Level::Safe)?;
        let (before, after) = (self.output_of(truth, source)?, self.output_of(truth, &folder)?);
        let differs = before.lines().zip(after.lines()).find(|(before, after)| before != after);
        Ok(match differs {
            Some((before, after)) => vec![format!("prints `{after}` instead of `{before}`")],
            None if before != after => vec!["prints more or less than before".to_owned()],
            None => Vec::new(),
        })
    }

    /// A copy of a program with its fixes applied.
    fn fixed(&self, truth: &Truth, source: &Path, level: Level) -> anyhow::Result<PathBuf> {
        let (name, options): (_, &[&str]) = match level {
            Level::Safe => ("safe", &["--fix"]),
            Level::All => ("all", &["--fix", "--unsafe-fixes"]),
        };
        let folder = self.output.join(format!("{}-{name}", truth.id));
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
        }
        copy(source, &folder)?;
        self.checker.fix(&folder, options)?;
        Ok(folder)
    }

    fn report(&self, folder: &Path, name: &str) -> anyhow::Result<Report> {
        let report = self.output.join(format!("{name}.json"));
        Ok(self.checker.check(folder, ".", &report, LIMIT)?.report)
    }

    fn output_of(&self, truth: &Truth, folder: &Path) -> anyhow::Result<String> {
        Cmd::new(&self.python)
            .arg("main.py")
            .args(["--epochs".into(), truth.default_epochs.to_string()])
            .args(["--steps".into(), truth.default_steps.to_string()])
            .env("OMP_NUM_THREADS", "1")
            .env("MPLBACKEND", "Agg")
            .folder(folder)
            .read()
    }
}

fn offers(finding: &Finding, applicability: &str) -> bool {
    finding.fix.as_ref().is_some_and(|fix| fix.applicability == applicability && !fix.edits.is_empty())
}

/// Edits move lines: a finding is the same if its container and function are.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let place =
        |finding: &Finding| finding.sites.first().map(|site| (site.file.clone(), site.function.clone()));
    one.class == other.class && one.container == other.container && place(one) == place(other)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to make `{}`", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to list `{}`", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("an entry of a folder has a name")?);
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("failed to copy `{}`", path.display()))?;
        }
    }
    Ok(())
}

/// The whole table, with what is wrong below.
pub(crate) fn render(rows: &[FixRow]) -> String {
    let verdict = |wrong: &[String]| if wrong.is_empty() { "yes" } else { "NO" }.to_owned();
    let mut cells = vec![["scenario", "fixes", "gone", "same output"].map(String::from)];
    cells.extend(rows.iter().filter(|row| row.offered > 0).map(|row| {
        let safe = row.safe.as_ref().map_or_else(String::new, |wrong| verdict(wrong));
        [row.id.clone(), row.offered.to_string(), verdict(&row.all), safe]
    }));
    let wrong = rows.iter().flat_map(|row| {
        row.all.iter().chain(row.safe.iter().flatten()).map(|wrong| format!("\n{}: {wrong}", row.id))
    });
    columns::align(&cells) + &wrong.collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn folders_are_copied_whole() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("pkg")).unwrap();
        fs::write(from.path().join("pkg/a.py"), "x\n").unwrap();
        copy(from.path(), &to.path().join("copy")).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("copy/pkg/a.py")).unwrap(), "x\n");
    }

    #[test]
    fn what_is_wrong_is_told_below_the_table() {
        let row = |id: &str, offered, all: &[&str], safe: Option<Vec<String>>| FixRow {
            id: id.into(),
            offered,
            all: all.iter().map(ToString::to_string).collect(),
            safe,
        };
        let rows =
            [row("a", 2, &[], Some(vec![])), row("b", 1, &["still there: x"], None), row("c", 0, &[], None)];
        let expected = "\
scenario  fixes  gone  same output
a         2      yes   yes
b         1      NO
b: still there: x";
        assert_eq!(render(&rows), expected);
    }
}
