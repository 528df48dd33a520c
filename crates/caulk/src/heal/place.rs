//! Where the runs of a heal take place: in an overlay on the project if the system allows that, else in a copy with links.
//!
//! The files of an overlay cannot lie in what it covers. So they are in a folder of the user's own, and `out` in the folder of
//! the heal is a link to it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_supervise::Overlay;

use crate::places::Places;

/// What the runs leave, in the folder of a heal.
const OUT: &str = "out";

/// Beside it if that is in the user's own folder: a link to the folder of the heal.
const HEAL: &str = "heal";

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
        let in_project = |place: &Utf8PathBuf| place.starts_with(root);
        let spare: Vec<_> = Places::here().spare.iter().map(|place| place.join("heal")).collect();
        for place in &spare {
            remove_orphans(place);
        }
        let spare =
            spare.iter().filter(|place| !in_project(place)).filter_map(|place| claim(place, name).ok());
        let spare = spare.map(|place| place.join(OUT));
        for upper in own.into_iter().filter(|place| !in_project(place)).chain(spare) {
            let overlay = overlay(root, &upper);
            if clear(&overlay).is_ok() && !is_in_memory(&upper) && overlay.works() {
                if upper != out {
                    symlink(&upper, &out).with_context(|| format!("failed to make `{out}`"))?;
                    let heal = upper.with_file_name(HEAL);
                    symlink(folder, &heal).with_context(|| format!("failed to make `{heal}`"))?;
                }
                return Ok(Self::Overlay(overlay));
            }
            let _ = remove(&overlay);
            if let Some(claimed) = upper.parent().filter(|_| upper != out) {
                let _ = fs::remove_dir(claimed);
            }
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

/// Makes a folder of this name, or with a number behind it if others began in the same second, which only its user can read.
///
/// # Errors
/// If nothing can be written there, or a thousand began in that second.
pub(crate) fn claim(base: &Utf8Path, name: &str) -> io::Result<Utf8PathBuf> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700).recursive(true).create(base)?;
    let numbered = (2..1000).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.to_owned()).chain(numbered) {
        let folder = base.join(name);
        match builder.recursive(false).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
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
pub(super) fn clear(overlay: &Overlay) -> io::Result<()> {
    remove(overlay)?;
    fs::create_dir_all(&overlay.upper)?;
    fs::create_dir_all(&overlay.work)
}

fn remove(overlay: &Overlay) -> io::Result<()> {
    // The kernel leaves a folder that nobody may read.
    let left = overlay.work.join("work");
    if left.is_dir() {
        fs::set_permissions(&left, fs::Permissions::from_mode(0o700))?;
    }
    for folder in [&overlay.work, &overlay.upper] {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Removes what the runs of heals left in the user's own folder, if the folder of the heal is gone.
fn remove_orphans(place: &Utf8Path) {
    for left in place.read_dir_utf8().into_iter().flatten().flatten() {
        let (heal, out) = (left.path().join(HEAL), left.path().join(OUT));
        let Ok(owner) = heal.read_link_utf8() else { continue };
        // `DIRECTORY/.caulk/heal/NAME`: a disk that is not mounted has none of it.
        let is_there = owner.ancestors().nth(3).is_some_and(Utf8Path::is_dir);
        let leads_here = owner.join(OUT).read_link_utf8().is_ok_and(|target| target == out);
        if is_there && !leads_here && remove(&overlay(&owner, &out)).is_ok() {
            let _ = fs::remove_file(&heal);
            let _ = fs::remove_dir(left.path());
        }
    }
}

/// Makes a folder that hides what the project has in its place.
pub(super) fn hide(folder: &Utf8Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    let flags = rustix::fs::XattrFlags::empty();
    Ok(rustix::fs::setxattr(folder.as_std_path(), OPAQUE, b"y", flags)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn heals_of_two_projects_in_one_second_have_two_folders() {
        let home = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(home.path()).unwrap();
        let spare = home.join("state/heal");
        let names = [1, 2].map(|_| claim(&spare, "20260101-000000-main").unwrap());
        assert_eq!(names, [spare.join("20260101-000000-main"), spare.join("20260101-000000-main-2")]);
        fs::write(home.join("file"), "").unwrap();
        assert!(claim(&home.join("file"), "a").is_err());
    }

    #[test]
    fn what_a_heal_left_goes_once_its_folder_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(home.path()).unwrap();
        let spare = home.join("state/heal");
        let mut left = Vec::new();
        for name in ["kept", "gone", "elsewhere"] {
            let owner = home.join(name).join(".caulk/heal/train");
            let out = spare.join(name).join(OUT);
            clear(&overlay(&owner, &out)).unwrap();
            symlink(&owner, out.with_file_name(HEAL)).unwrap();
            fs::create_dir_all(&owner).unwrap();
            symlink(&out, owner.join(OUT)).unwrap();
            left.push(spare.join(name));
        }
        fs::remove_dir_all(home.join("gone/.caulk")).unwrap();
        fs::remove_dir_all(home.join("elsewhere")).unwrap();
        remove_orphans(&spare);
        let exist: Vec<bool> = left.iter().map(|folder| folder.exists()).collect();
        assert_eq!(exist, [true, false, true]);
    }
}
