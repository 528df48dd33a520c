//! `cargo xtask check`: format, lints, types, spelling, workflows, dependency direction, circles of files, names of types,
//! prose, licences.

use crate::circles;
use crate::clips;
use crate::console::{self, OrHint};
use crate::environment::Tools;
use crate::homes;
use crate::layers;
use crate::licences;
use crate::names;
use crate::process::Cmd;
use crate::prose;
use crate::workspace::Workspace;

/// Check format, lints, types, spelling, workflows, dependency direction, circles of files, names, prose and licences
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Put right what can be put right without a person: format and imports
    #[arg(long)]
    fix: bool,
    /// The Rust of caulk-clips instead, which needs FFmpeg (built here the first time)
    #[arg(long)]
    clips: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &CheckArgs) -> anyhow::Result<()> {
    if args.clips {
        return clips::check(workspace, args.fix);
    }
    rust(workspace, args.fix)?;
    let tools = Tools::checkers(workspace)?;
    python(workspace, &tools, args.fix)?;
    text(workspace, &tools)?;
    console::step("dependency direction");
    layers::check(workspace)?;
    console::step("circles of files");
    circles::check(workspace)?;
    console::step("names of types");
    names::check(workspace)?;
    console::step("homes of findings and claims");
    homes::check(workspace)?;
    console::step("prose");
    prose::check(workspace)?;
    licences::dependencies(workspace, "Cargo.toml")?;
    console::step("all checks passed");
    Ok(())
}

fn rust(workspace: &Workspace, fix: bool) -> anyhow::Result<()> {
    console::step("Rust: format and lints");
    let format: &[&str] = if fix { &["fmt", "--all"] } else { &["fmt", "--all", "--check"] };
    cargo(workspace, format).or_hint("some files are not formatted", "run `cargo fmt --all`")?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"];
    cargo(workspace, &clippy)
        .or_hint("clippy found problems", "see above; `#[expect(lint, reason = \"...\")]` where it is wrong")
}

fn python(workspace: &Workspace, tools: &Tools, fix: bool) -> anyhow::Result<()> {
    console::step("Python: format and lints");
    let ruff = |words: &[&str]| {
        let command = tools.command("ruff").args(words.iter().copied()).args([
            "--quiet",
            "python",
            "docs",
            "examples",
            "caulk-clips",
        ]);
        command.arg("--no-cache").folder(workspace.root()).run()
    };
    let (format, lint): (&[&str], &[&str]) =
        if fix { (&["format"], &["check", "--fix"]) } else { (&["format", "--check"], &["check"]) };
    ruff(lint).or_hint("ruff found problems", "`cargo xtask check --fix` mends some of it")?;
    ruff(format).or_hint("some Python files are not formatted", "run `cargo xtask check --fix`")?;
    console::step("Python: types of what `import caulk` gives");
    tools
        .command("mypy")
        .args(["--cache-dir", "/dev/null", "--no-error-summary"])
        .folder(workspace.root())
        .run()
        .or_hint("mypy found problems", "see above; what it checks is in pyproject.toml")
}

/// Words of all files, and the workflows of the public CI.
fn text(workspace: &Workspace, tools: &Tools) -> anyhow::Result<()> {
    console::step("spelling");
    tools
        .command("typos")
        .args(["--format", "brief"])
        .folder(workspace.root())
        .run()
        .or_hint("some words are misspelt", "see above; typos.toml lists words that are right")?;
    console::step("workflows");
    tools
        .command("zizmor")
        .args(["--offline", "--no-progress", "--quiet", ".github", "action.yml"])
        .folder(workspace.root())
        .run()
        .or_hint(
            "zizmor found problems in the workflows",
            "see above; https://docs.zizmor.sh/audits explains each",
        )
}

fn cargo(workspace: &Workspace, words: &[&str]) -> anyhow::Result<()> {
    Cmd::cargo().args(words.iter().copied()).folder(workspace.root()).run()
}
