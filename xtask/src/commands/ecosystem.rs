//! `cargo xtask ecosystem`: `caulk check` on published packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::checker::Checker;
use crate::console::{self, failure};
use crate::ecosystem::packages::{self, Package};
use crate::ecosystem::result::{Measured, Outcome};
use crate::ecosystem::tables;
use crate::environment::Tools;
use crate::workspace::Workspace;

/// A package that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(2);

/// Check published packages and show every finding with its source
#[derive(Debug, clap::Args)]
pub(crate) struct EcosystemArgs {
    /// Only these packages
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Compare with an earlier result
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,
    /// Print the entry of packages.toml for a version, and do nothing else
    #[arg(long, num_args = 2, value_names = ["NAME", "VERSION"])]
    pin: Option<Vec<String>>,
}

pub(crate) fn run(workspace: &Workspace, args: &EcosystemArgs) -> anyhow::Result<()> {
    let tools = Tools::prepare(workspace, None)?;
    if let Some([name, version]) = args.pin.as_deref() {
        console::data(packages::pin(&tools, name, version)?.trim_end());
        return Ok(());
    }
    let before = args.diff.as_deref().map(Outcome::read).transpose()?;
    let packages = packages::chosen(&args.only)?;
    let checker = Checker::build(workspace)?;
    let folder = workspace.path("target/ecosystem");
    let measured = packages.iter().map(|package| measure(&checker, &tools, &folder, package));
    let outcome = Outcome { packages: measured.collect::<anyhow::Result<_>>()? };
    let json = serde_json::to_string_pretty(&outcome).context("results are plain values")?;
    write(&folder.join("result.json"), &json)?;
    write(&folder.join("findings.md"), &tables::findings(&outcome))?;
    console::data(tables::render(&outcome));
    if let Some(before) = before {
        console::data(format!("\n{}", tables::difference(&before, &outcome)));
    }
    console::note("target/ecosystem/findings.md shows every finding, result.json is for --diff");
    match outcome.packages.iter().filter(|package| package.failure.is_some()).count() {
        0 => Ok(()),
        failed => Err(failure(format!("{failed} packages could not be checked"), "see the table")),
    }
}

fn measure(checker: &Checker, tools: &Tools, cache: &Path, package: &Package) -> anyhow::Result<Measured> {
    console::step(format!("{} {}", package.name, package.version));
    let folder = package.fetch(tools, cache)?;
    let size = packages::size(&folder)?;
    let report = cache.join(format!("{}.json", package.name));
    let checked = checker.check(&folder, ".", &report, LIMIT);
    Ok(Measured::new(package, &folder, size, &checked))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("failed to write `{}`", path.display()))
}
