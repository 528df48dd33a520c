//! Where the runs of a heal take place: in an overlay on the project if the system allows that, else in a copy with links.
//!
//! The files of an overlay cannot lie in what it covers. So they are in a folder of the user's own, and `out` in the folder of
//! the heal is a link to it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_supervise::Overlay;

use crate::places::Places;

/// What the runs leave, in the folder of a heal.
const OUT: &str = "out";

/// Marks a folder of an overlay as one that hides the folder below (filesystems/overlayfs.rst, "User xattr").
const OPAQUE: &str = "user.overlay.opaque";

/// Where the program runs.
#[derive(Debug)]
pub(crate) enum RunPlace {
    /// In the project itself.
    Project,
    /// In a copy in this folder, with links to what is large.
    Copy(Utf8PathBuf),
    /// On top of the project.
    Overlay(Overlay),
}

impl RunPlace {
    /// The place for a heal with this folder; that of its earlier runs if there were some.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub(crate) fn choose(root: &Utf8Path, folder: &Utf8Path) -> anyhow::Result<Self> {
        let out = folder.join(OUT);
        if let Ok(target) = out.read_link_utf8() {
            return Ok(Self::Overlay(overlay(root, &target)));
        }
        if out.is_dir() {
            return Ok(Self::Copy(out));
        }
        let beside = !folder.starts_with(root);
        let name = folder.file_name().unwrap_or("heal");
        let own = beside.then(|| out.clone());
        let spare = Places::here().spare.into_iter().map(|place| place.join("heal").join(name).join(OUT));
        for upper in own.into_iter().chain(spare).filter(|place| !place.starts_with(root)) {
            let overlay = overlay(root, &upper);
            if clear(&overlay).is_ok() && !is_in_memory(&upper) && overlay.works() {
                if upper != out {
                    symlink(&upper, &out).with_context(|| format!("failed to make `{out}`"))?;
                }
                return Ok(Self::Overlay(overlay));
            }
            let _ = remove(&overlay);
        }
        Ok(Self::Copy(out))
    }

    /// The folder in which the program finds the project.
    pub(crate) fn folder(&self) -> Option<&Utf8Path> {
        match self {
            Self::Project => None,
            Self::Copy(folder) => Some(folder),
            Self::Overlay(overlay) => Some(&overlay.upper),
        }
    }
}

fn overlay(root: &Utf8Path, upper: &Utf8Path) -> Overlay {
    let work = upper.with_file_name("work");
    Overlay { lower: root.to_owned(), upper: upper.to_owned(), work }
}

/// Whether files there take memory, which a heal measures.
fn is_in_memory(folder: &Utf8Path) -> bool {
    /// Of `linux/magic.h`.
    const TMPFS: u32 = 0x0102_1994;
    rustix::fs::statfs(folder.as_std_path()).is_ok_and(|disk| disk.f_type as u32 == TMPFS)
}

/// Makes the folders of an overlay, empty.
pub(super) fn clear(overlay: &Overlay) -> std::io::Result<()> {
    remove(overlay)?;
    fs::create_dir_all(&overlay.upper)?;
    fs::create_dir_all(&overlay.work)
}

fn remove(overlay: &Overlay) -> std::io::Result<()> {
    // The kernel leaves a folder that nobody may read.
    let left = overlay.work.join("work");
    if left.is_dir() {
        fs::set_permissions(&left, fs::Permissions::from_mode(0o700))?;
    }
    for folder in [&overlay.work, &overlay.upper] {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes a folder that hides what the project has in its place.
pub(super) fn hide(folder: &Utf8Path) -> std::io::Result<()> {
    fs::create_dir(folder)?;
    let flags = rustix::fs::XattrFlags::empty();
    Ok(rustix::fs::setxattr(folder.as_std_path(), OPAQUE, b"y", flags)?)
}
