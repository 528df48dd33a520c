//! The wheel of `caulk-clips`: command, worker, package, and what the licence of the FFmpeg in the worker asks for.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::ffmpeg;
use super::folder::{FEATURES, FOLDER, cargo};
use crate::console::{self, OrHint, failure};
use crate::environment::{Environment, Tools};
use crate::package::{BUILD_HINT, Build, Wheel, clear, place};
use crate::workspace::Workspace;

const WHEEL: Wheel =
    Wheel { name: "caulk-clips", project: FOLDER, dist: "target/package/clips-dist", most: u64::MAX };
/// Where its `pyproject.toml` looks for wheel data.
const DATA: &str = "target/package/caulk_clips.data";
const SCRIPTS: &str = "target/package/caulk_clips.data/scripts";
const LICENCES: &str = "target/package/caulk_clips.data/platlib/caulk_clips/licenses/ffmpeg";
const WORKER: &str = "caulk-clip";
/// The worker without FFmpeg, and what links it with another one.
const OBJECT: &str = "caulk-clip.o";
const LINKER: &str = "caulk-clips/ffmpeg/link-clip.sh";
const RELINK: &str = "caulk-clips/ffmpeg/relink.sh";

/// Builds what has changed and installs the wheel if it is another one than last time.
pub(crate) fn install(
    workspace: &Workspace,
    tools: &Tools,
    environment: &Environment,
    build: Build,
) -> anyhow::Result<()> {
    console::step("building caulk-clips (2 minutes the first time)");
    place_data(workspace, build)?;
    WHEEL.install(workspace, tools, environment, build)
}

/// Builds the worker that decodes video, and puts it where `pyproject.toml` looks for it, with its licences.
pub(crate) fn place_data(workspace: &Workspace, build: Build) -> anyhow::Result<()> {
    ffmpeg::prepare(workspace)?;
    clear(&workspace.path(DATA))?;
    let linker = format!("linker={}", workspace.path(LINKER).display());
    cargo(workspace)
        .args(["rustc", "--profile", build.profile(), "--package", "caulk_ffmpeg", "--bin", WORKER])
        .args(FEATURES)
        .args(["--", "-C", &linker])
        .run()
        .or_hint("failed to build the worker that decodes video", BUILD_HINT)?;
    let folder = workspace.target().join(build.profile());
    place(&folder.join(WORKER), &workspace.path(SCRIPTS), WORKER)?;
    // The licence lets everybody use another FFmpeg.
    place(&own_object(&folder)?, &workspace.path(LICENCES), OBJECT)?;
    place(&workspace.path(RELINK), &workspace.path(LICENCES), "relink.sh")?;
    for name in ffmpeg::LICENCES {
        place(&ffmpeg::licence(workspace, name), &workspace.path(LICENCES), name)?;
    }
    let notes = workspace.path(LICENCES).join("BUILD.md");
    fs::write(&notes, ffmpeg::notes()).with_context(|| format!("failed to write `{}`", notes.display()))
}

/// The newest that the worker's linker has left.
fn own_object(folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder.join("deps");
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
