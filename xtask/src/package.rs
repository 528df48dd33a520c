//! The wheel: command, agent and Python package, built once and installed as a user would install it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::console::{self, OrHint, failure};
use crate::environment::{Environment, Tools};
use crate::ffmpeg;
use crate::process::Cmd;
use crate::workspace::Workspace;

/// Where `pyproject.toml` looks for wheel data: what lies in `scripts` lands in the environment's `bin`, what lies in
/// `platlib` beside the packages.
const SCRIPTS: &str = "target/package/caulk.data/scripts";
const PACKAGE: &str = "target/package/caulk.data/platlib/caulk";
const LICENCES: &str = "target/package/caulk.data/platlib/caulk/licenses/ffmpeg";
const SAMPLER: &str = "libcaulk_preload.so";
const WORKER: &str = "caulk-clip";
/// The worker without FFmpeg, and what links it with another one.
const OBJECT: &str = "caulk-clip.o";
const LINKER: &str = "xtask/src/link-clip.sh";
const RELINK: &str = "xtask/src/relink.sh";
const WHEELS: &str = "target/package/dist";
const BUILD_HINT: &str = "the compiler's message above says what is wrong; caulk needs the rustc that `rust-version` \
    in Cargo.toml names, or newer, and a C linker (Debian: `apt-get install gcc libc6-dev`)";

/// Builds what has changed and installs the wheel if it is another one than last time.
pub(crate) fn install(workspace: &Workspace, tools: &Tools, environment: &Environment) -> anyhow::Result<()> {
    console::step("building the command and the agent (release; minutes the first time)");
    place_data(workspace)?;
    let wheel = build_wheel(workspace, tools, environment)?;
    let installed = environment.file("caulk.whl.installed");
    let bytes = fs::read(&wheel).with_context(|| format!("failed to read `{}`", wheel.display()))?;
    if fs::read(&installed).is_ok_and(|old| old == bytes) && environment.bin("caulk").exists() {
        return Ok(());
    }
    console::step("installing this tree's caulk into .venv");
    environment
        .pip(tools)
        .args(["--quiet", "--no-deps", "--force-reinstall"])
        .arg(&wheel)
        .run()
        .or_hint("failed to install the wheel", "remove the folder `.venv` and run this again")?;
    fs::write(&installed, bytes).with_context(|| format!("failed to write `{}`", installed.display()))
}

/// The wheel that was built last.
pub(crate) fn wheel(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    only_wheel(&workspace.path(WHEELS))
}

/// Builds the command alone and returns where it lies.
pub(crate) fn build_command(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    Cmd::cargo()
        .args(["build", "--release", "--package", "caulk", "--bin", "caulk"])
        .folder(workspace.root())
        .run()
        .or_hint("failed to build the command `caulk`", BUILD_HINT)?;
    Ok(workspace.target().join("release/caulk"))
}

/// Builds what the wheel carries beside the agent, and puts it where `pyproject.toml` looks for it.
pub(crate) fn place_data(workspace: &Workspace) -> anyhow::Result<()> {
    place(&build_command(workspace)?, &workspace.path(SCRIPTS), "caulk")?;
    place(&build_sampler(workspace)?, &workspace.path(PACKAGE), SAMPLER)?;
    place_worker(workspace)
}

/// The worker that decodes video, with what the licence of the FFmpeg in it asks for; none where there is no FFmpeg.
fn place_worker(workspace: &Workspace) -> anyhow::Result<()> {
    if !ffmpeg::prepare(workspace) {
        let leftover = workspace.path(SCRIPTS).join(WORKER);
        return if leftover.exists() { fs::remove_file(leftover).map_err(Into::into) } else { Ok(()) };
    }
    let linker = format!("linker={}", workspace.path(LINKER).display());
    Cmd::cargo()
        .args(["rustc", "--release", "--package", "caulk_ffmpeg", "--bin", WORKER])
        .args(["--features", ffmpeg::FEATURE, "--", "-C", &linker])
        .folder(workspace.root())
        .run()
        .or_hint("failed to build the worker that decodes video", BUILD_HINT)?;
    let built = workspace.target().join("release").join(WORKER);
    place(&built, &workspace.path(SCRIPTS), WORKER)?;
    // The licence lets everybody use another FFmpeg.
    place(&own_object(&workspace.target())?, &workspace.path(LICENCES), OBJECT)?;
    place(&workspace.path(RELINK), &workspace.path(LICENCES), "relink.sh")?;
    for name in ffmpeg::LICENCES {
        place(&ffmpeg::licence(workspace, name), &workspace.path(LICENCES), name)?;
    }
    let notes = workspace.path(LICENCES).join("BUILD.md");
    fs::write(&notes, ffmpeg::notes()).with_context(|| format!("failed to write `{}`", notes.display()))
}

/// The newest that the worker's linker has left.
fn own_object(target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("release/deps");
    let entries = fs::read_dir(&folder).with_context(|| format!("failed to list `{}`", folder.display()))?;
    let is_it = |path: &PathBuf| {
        let name = |part: Option<&OsStr>| part.and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let (stem, kind) = (name(path.file_stem()), name(path.extension()));
        kind == "o" && stem.starts_with("caulk_clip-") && !stem.contains('.')
    };
    let objects = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_it);
    let newest = objects.max_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    newest.ok_or_else(|| failure("the worker's linker has left no object", BUILD_HINT))
}

/// Builds the heap sampler. It is loaded into any program, of other C libraries too: it needs nothing but a few of libc's
/// functions. Without unwinding nothing of it can panic, and what the compiler refers to all the same is not there.
fn build_sampler(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    Cmd::cargo()
        .args(["rustc", "--release", "--package", "caulk_preload", "--lib", "--"])
        .args(["-C", "panic=abort", "-C", "link-arg=-Wl,--defsym=rust_eh_personality=0"])
        .folder(workspace.root())
        .run()
        .or_hint("failed to build the heap sampler", BUILD_HINT)?;
    Ok(workspace.target().join("release").join(SAMPLER))
}

fn place(built: &Path, folder: &Path, name: &str) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let placed = folder.join(name);
    fs::copy(built, &placed)
        .with_context(|| format!("failed to copy `{}` to `{}`", built.display(), placed.display()))?;
    Ok(())
}

fn build_wheel(workspace: &Workspace, tools: &Tools, environment: &Environment) -> anyhow::Result<PathBuf> {
    let folder = workspace.path(WHEELS);
    // One wheel at a time: a leftover of another version must not be the one installed.
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to clear `{}`", folder.display()))?;
    }
    tools
        .command("maturin")
        .args(["build", "--quiet", "--release", "--compatibility", "linux", "--interpreter"])
        .arg(environment.bin("python"))
        .arg("--out")
        .arg(&folder)
        .folder(workspace.root())
        .run()
        .or_hint("failed to build the wheel", BUILD_HINT)?;
    only_wheel(&folder)
}

fn only_wheel(folder: &Path) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list `{}`", folder.display()))?;
    let mut wheels = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| is_wheel(path));
    wheels.next().ok_or_else(|| failure(format!("no wheel in `{}`", folder.display()), BUILD_HINT))
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "whl")
}
