//! `cargo xtask matrix`: caulk on every CPython that is here.

use std::fs;

use anyhow::Context;

use crate::console::{self, failure};
use crate::environment::Tools;
use crate::matrix::cell::{self, Outcome, PYTHONS};
use crate::matrix::table;
use crate::package;
use crate::process::Cmd;
use crate::workspace::Workspace;

const PAGE: &str = "docs/versions.md";

/// Try the wheel that was built last on every CPython that is here, and write the table of versions
#[derive(Debug, clap::Args)]
pub(crate) struct MatrixArgs {
    /// With the newest torch for each: 3 GB to download for each CPython
    #[arg(long)]
    torch: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &MatrixArgs) -> anyhow::Result<()> {
    let tools = Tools::prepare(workspace, None)?;
    let wheel = package::wheel(workspace)?;
    let date = Cmd::new("date").args(["--utc", "+%F"]).read()?;
    let mut cells = Vec::new();
    for python in PYTHONS {
        console::step(format!("CPython {python}"));
        cells.push(cell::run(workspace, &tools, &wheel, python, args.torch));
    }
    let page = workspace.path(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("failed to read `{PAGE}`"))?;
    let text = table::into_page(&text, date.trim(), &cells)?;
    fs::write(&page, text).with_context(|| format!("failed to write `{PAGE}`"))?;
    let failed =
        cells.iter().filter(|cell| matches!(&cell.outcome, Outcome::Ran(failed) if !failed.is_empty()));
    match failed.count() {
        0 => Ok(()),
        count => Err(failure(format!("{count} cells failed"), format!("see {PAGE}"))),
    }
}
