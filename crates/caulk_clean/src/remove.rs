//! Removing what a plan lists.

use std::fs;
use std::io;

use camino::Utf8Path;

use crate::Cleanup;

/// What was removed.
#[derive(Debug, Clone, Default)]
pub struct Removed {
    /// Files and links.
    pub files: usize,
    /// Bytes freed on the disk.
    pub bytes: u64,
    /// What could not be removed, by path relative to the root, and why.
    pub failed: Vec<(camino::Utf8PathBuf, io::ErrorKind)>,
}

/// Removes what a plan lists; goes on where one file cannot be removed.
pub fn remove(plan: &Cleanup) -> Removed {
    let mut removed = Removed::default();
    for old in &plan.old {
        match remove_file(&plan.root, &old.path) {
            Ok(()) => {
                removed.files += 1;
                removed.bytes += old.bytes;
            }
            Err(error) => removed.failed.push((old.path.clone(), error.kind())),
        }
    }
    for folder in &plan.folders {
        // A folder that something was written into meanwhile is not empty and stays.
        let _ = fs::remove_dir(plan.root.join(folder));
    }
    removed
}

/// Removes one file or link, unless a folder on the way has become a link since the plan was made.
fn remove_file(root: &Utf8Path, path: &Utf8Path) -> io::Result<()> {
    let full = root.join(path);
    let parent = full.parent().unwrap_or(root).canonicalize_utf8()?;
    if root.join(path.parent().unwrap_or(Utf8Path::new(""))) != parent {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    fs::remove_file(full)
}
