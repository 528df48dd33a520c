//! `cargo xtask docs`: the documentation site.

use std::path::Path;

use crate::console::{self, OrHint};
use crate::environment::Tools;
use crate::package::{self, Build};
use crate::workspace::Workspace;

/// Build the documentation site into target/docs, and check its links
#[derive(Debug, clap::Args)]
pub(crate) struct DocsArgs {}

pub(crate) fn run(workspace: &Workspace, _: &DocsArgs) -> anyhow::Result<()> {
    build(workspace, &package::build_command(workspace, Build::Develop)?)?;
    console::step("the site is target/docs/index.html");
    Ok(())
}

/// Builds the site. `caulk` is the command that describes itself and the leak classes there.
///
/// # Errors
/// If a link, an anchor or a page of the navigation does not exist.
pub(crate) fn build(workspace: &Workspace, caulk: &Path) -> anyhow::Result<()> {
    console::step("documentation site");
    Tools::docs(workspace)?
        .command("mkdocs")
        .args(["build", "--strict", "--quiet"])
        .env("CAULK", caulk)
        // The theme's makers advertise in the output of a build.
        .env("NO_MKDOCS_2_WARNING", "1")
        .folder(workspace.root())
        .run()
        .or_hint(
            "the documentation site cannot be built",
            "see the message above; mkdocs.yml lists the pages, docs/hooks.py makes some of them",
        )
}
