//! Where `caulk-clips` is, and how Cargo runs there.

use crate::process::Cmd;
use crate::workspace::Workspace;

/// Its folder.
pub(crate) const FOLDER: &str = "caulk-clips";

/// Turns on all that needs FFmpeg.
pub(crate) const FEATURES: [&str; 2] = ["--features", "caulk_ffmpeg/ffmpeg"];

/// Cargo in its folder, where its own settings hold.
pub(crate) fn cargo(workspace: &Workspace) -> Cmd {
    Cmd::cargo().folder(workspace.path(FOLDER))
}
