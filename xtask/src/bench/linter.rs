//! The linters that `caulk check` is compared with, each asked for what comes nearest to leaks.

use std::path::Path;

use crate::checker::Checker;
use crate::environment::Tools;
use crate::process::Cmd;

/// Where the linters are.
pub(crate) struct Linters {
    pub(crate) caulk: Checker,
    /// ruff.
    pub(crate) checkers: Tools,
    /// pylint and TorchFix.
    pub(crate) others: Tools,
}

/// One linter.
pub(crate) struct Linter {
    /// As the table shows it.
    pub(crate) name: &'static str,
    /// Takes seconds where others take milliseconds: measured once.
    pub(crate) slow: bool,
    /// Greatest status of a run that went well: findings are no failure.
    pub(crate) most: i32,
    line: fn(&Linters, &Path) -> Cmd,
}

/// caulk first.
pub(crate) const LINTERS: [Linter; 4] = [
    Linter { name: "caulk check", slow: false, most: 1, line: caulk },
    Linter { name: "ruff --select B", slow: false, most: 1, line: ruff },
    Linter { name: "pylint W1518 R1732", slow: true, most: 31, line: pylint },
    Linter { name: "torchfix", slow: true, most: 1, line: torchfix },
];

impl Linter {
    /// The command line that checks all of a folder, from scratch.
    pub(crate) fn command(&self, linters: &Linters, folder: &Path) -> Cmd {
        (self.line)(linters, folder).folder(folder)
    }
}

fn caulk(linters: &Linters, folder: &Path) -> Cmd {
    linters.caulk.command(folder, ".")
}

fn ruff(linters: &Linters, _: &Path) -> Cmd {
    linters.checkers.command("ruff").args([
        "check",
        "--isolated",
        "--no-cache",
        "--quiet",
        "--select",
        "B",
        ".",
    ])
}

fn pylint(linters: &Linters, folder: &Path) -> Cmd {
    let messages = "--enable=method-cache-max-size-none,consider-using-with";
    let command =
        linters.others.command("pylint").args(["--rcfile=", "--disable=all", messages, "--recursive=y", "."]);
    // What it learnt in an earlier run must not help it.
    command.env("PYLINTHOME", folder.with_extension("pylint"))
}

fn torchfix(linters: &Linters, _: &Path) -> Cmd {
    linters.others.command("torchfix").args(["--select=ALL", "."])
}
