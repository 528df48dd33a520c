//! `cargo xtask develop`: `.venv` with pinned torch and this tree's caulk, as a user would have them.

use std::path::{Path, PathBuf};

use crate::clips;
use crate::console;
use crate::environment::{Environment, Packages, Tools};
use crate::package::{self, Build};
use crate::workspace::Workspace;

/// Make .venv with torch and this tree's caulk
#[derive(Debug, clap::Args)]
pub(crate) struct DevelopArgs {
    #[command(flatten)]
    interpreter: Interpreter,
    /// Also install lightning, transformers, accelerate, polars, pandas, timm, gymnasium and others
    #[arg(long)]
    full: bool,
    /// Also install caulk-clips, which prepares clips of videos, and build the FFmpeg in it
    #[arg(long)]
    clips: bool,
}

/// Which Python to build on.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Interpreter {
    /// Python to make .venv with: CPython 3.10 to 3.14 [default: the first of python3, python3.14, ... that will do]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

impl Interpreter {
    pub(crate) fn path(&self) -> Option<&Path> {
        self.python.as_deref()
    }
}

pub(crate) fn run(workspace: &Workspace, args: &DevelopArgs) -> anyhow::Result<()> {
    let groups: &[_] =
        if args.full { &[Packages::Dev, Packages::Full, Packages::Real] } else { &[Packages::Dev] };
    let environment = prepare(workspace, &args.interpreter, groups, Build::Develop)?;
    if args.clips {
        let tools = Tools::prepare(workspace, args.interpreter.path())?;
        clips::install(workspace, &tools, &environment, Build::Develop)?;
    }
    console::step("ready");
    console::note(format!(
        "{} run -- {} train.py",
        environment.typed("caulk").display(),
        environment.typed("python").display()
    ));
    Ok(())
}

/// Environment, packages, build, installation: whatever of it is not done yet.
pub(crate) fn prepare(
    workspace: &Workspace,
    interpreter: &Interpreter,
    groups: &[Packages],
    build: Build,
) -> anyhow::Result<Environment> {
    let tools = Tools::prepare(workspace, interpreter.path())?;
    let environment = Environment::prepare(workspace, &tools, interpreter.path(), groups)?;
    package::install(workspace, &tools, &environment, build)?;
    Ok(environment)
}
