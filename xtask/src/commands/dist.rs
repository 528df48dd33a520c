//! `cargo xtask dist`: the files of a release.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::console::{self, OrHint, failure};
use crate::debian::hex;
use crate::dist::{audit, bill};
use crate::environment::Tools;
use crate::package::{self, BUILD_HINT};
use crate::process::Cmd;
use crate::workspace::Workspace;

const FOLDER: &str = "target/dist";
const BILL: &str = "caulk.cdx.json";

/// Make the files of a release in target/dist: source archive, wheel, list of crates
///
/// The wheel is built from the source archive, which is so shown to build. Its tag follows from the symbols that it needs: built
/// on a system with glibc 2.28, it is `manylinux_2_28`.
#[derive(Debug, clap::Args)]
pub(crate) struct DistArgs {}

pub(crate) fn run(workspace: &Workspace, _: &DistArgs) -> anyhow::Result<()> {
    let folder = workspace.path(FOLDER);
    package::clear(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let tools = Tools::dist(workspace)?;
    console::step("list of crates");
    let listed = format!("{:#}\n", bill::bill(workspace)?);
    fs::write(folder.join(BILL), listed).with_context(|| format!("failed to write `{BILL}`"))?;
    console::step("source archive");
    let archive = source_archive(workspace, &tools, &folder)?;
    console::step("wheel, from the source archive (15 minutes on two cores)");
    let wheel = audit::tagged(&tools, &wheel(workspace, &tools, &archive)?)?;
    for file in files(&folder)? {
        let bytes = fs::read(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        console::data(format!("{}  {:>9}  {name}", hex(&Sha256::digest(&bytes)), bytes.len()));
    }
    check(&wheel)
}

fn source_archive(workspace: &Workspace, tools: &Tools, folder: &Path) -> anyhow::Result<PathBuf> {
    tools.command("maturin").args(["sdist", "--out"]).arg(folder).folder(workspace.root()).run().or_hint(
        "failed to make the source archive",
        "it has the files that git tracks: see pyproject.toml",
    )?;
    only(folder, "gz")
}

/// Builds the wheel as pip builds it for somebody who installs the source archive.
fn wheel(workspace: &Workspace, tools: &Tools, archive: &Path) -> anyhow::Result<PathBuf> {
    let folder = workspace.path(FOLDER);
    let about = |words: &[&str]| Cmd::new("git").args(words.iter().copied()).folder(workspace.root()).read();
    let commit = about(&["describe", "--always", "--dirty"]).unwrap_or_default();
    let time = about(&["log", "-1", "--format=%ct"]).unwrap_or_default();
    tools
        .command("python")
        .args(["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"])
        .arg(&folder)
        .args(["--config-settings", "build-args=--compression-level 9"])
        .arg(archive)
        // The backend starts maturin by its name.
        .env("PATH", tools.first_on_path())
        .env("CARGO_TARGET_DIR", workspace.path("target/dist-build"))
        .env("CAULK_COMMIT", commit.trim())
        // Times in the archive are those of the commit, whenever it is packed.
        .env("SOURCE_DATE_EPOCH", time.trim())
        .run()
        .or_hint("failed to build the wheel", BUILD_HINT)?;
    only(&folder, "whl")
}

/// Fails if the wheel is too large; notes if it is not for every system.
fn check(wheel: &Path) -> anyhow::Result<()> {
    package::check_size(wheel)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    if let Some((major, minor)) = audit::newer_glibc(&name) {
        console::note(format!(
            "the wheel needs glibc {major}.{minor}: a wheel to publish is built where glibc is 2.28, as \
             .github/workflows/release.yml does"
        ));
    }
    Ok(())
}

/// The only file with this extension.
fn only(folder: &Path, extension: &str) -> anyhow::Result<PathBuf> {
    let is_it = |path: &PathBuf| path.extension().is_some_and(|its| its == extension);
    let mut found: Vec<_> = files(folder)?.into_iter().filter(is_it).collect();
    match (found.pop(), found.is_empty()) {
        (Some(file), true) => Ok(file),
        _ => Err(failure(format!("not one `.{extension}` in `{}`", folder.display()), BUILD_HINT)),
    }
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list `{}`", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}
