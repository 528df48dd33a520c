//! `caulk-clips`, the workspace beside this one that prepares clips of videos: built and tested where `--clips` is given.

mod dav1d;
mod ffmpeg;
mod folder;
mod package;

use crate::console::{self, OrHint};
use crate::environment::{Environment, Packages, Tools};
use crate::licences;
use crate::package::Build;
use crate::runner::{pytest, runner};
use crate::workspace::Workspace;

pub(crate) use self::folder::FOLDER;
use self::folder::{FEATURES, cargo};
pub(crate) use self::package::place_data;

/// Puts it into `.venv`, beside caulk.
pub(crate) fn install(
    workspace: &Workspace,
    tools: &Tools,
    environment: &Environment,
    build: Build,
) -> anyhow::Result<()> {
    package::install(workspace, tools, environment, build)
}

/// Format and lints.
pub(crate) fn check(workspace: &Workspace, fix: bool) -> anyhow::Result<()> {
    console::step("caulk-clips: format and lints");
    let format: &[&str] = if fix { &["fmt", "--all"] } else { &["fmt", "--all", "--check"] };
    cargo(workspace)
        .args(format.iter().copied())
        .run()
        .or_hint("some files are not formatted", "run `cargo fmt --all` in the folder caulk-clips")?;
    ffmpeg::prepare(workspace)?;
    cargo(workspace)
        .args(["clippy", "--workspace", "--all-targets", "--quiet"])
        .args(FEATURES)
        .args(["--", "--deny", "warnings"])
        .run()
        .or_hint(
            "clippy found problems",
            "see above; `#[expect(lint, reason = \"...\")]` where it is wrong",
        )?;
    licences::dependencies(workspace, "caulk-clips/Cargo.toml")
}

/// All its tests, Rust and Python, with what is installed in `.venv`.
pub(crate) fn test(workspace: &Workspace, environment: &Environment, full: bool) -> anyhow::Result<()> {
    console::step("caulk-clips: Rust tests");
    ffmpeg::prepare(workspace)?;
    cargo(workspace).args(runner("dev")).arg("--workspace").args(FEATURES).run().or_hint(
        "Rust tests failed",
        "run one alone in the folder caulk-clips: `cargo test --package CRATE NAME`",
    )?;
    console::step("caulk-clips: Python tests, on real videos");
    pytest(environment, full).folder(workspace.path(FOLDER)).run().or_hint(
        "Python tests failed",
        "run one alone in the folder caulk-clips: `../.venv/bin/python -m pytest -k NAME`",
    )
}

/// What its tests need beside it.
pub(crate) const PACKAGES: Packages = Packages::Clips;
