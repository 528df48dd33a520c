//! What git tracks.

use std::collections::BTreeSet;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

use crate::CleanError;

/// Tracked files below some folders of a project, relative to its root; none where the project is under no version
/// control by git.
pub(crate) fn files(root: &Utf8Path, folders: &[Utf8PathBuf]) -> Result<BTreeSet<Utf8PathBuf>, CleanError> {
    if folders.is_empty() || !root.ancestors().any(|above| above.join(".git").symlink_metadata().is_ok()) {
        return Ok(BTreeSet::new());
    }
    let failed = |cause: String| CleanError::Git { root: root.to_owned(), cause };
    let mut git = Command::new("git");
    git.args(["-C", root.as_str(), "ls-files", "-z", "--"]).args(folders);
    let output = git.output().map_err(|error| failed(format!("git cannot be started: {error}")))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| Utf8PathBuf::from(String::from_utf8_lossy(name).into_owned())).collect())
}
