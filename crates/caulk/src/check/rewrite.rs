//! Replacing a file in a tree that somebody else may have made, and may change meanwhile.
//!
//! The way to the file is gone step by step, and no step is a link. The new text is written beside the file and takes its
//! place at once: where that fails, the file is whole, and it is the old one.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use camino::{Utf8Component, Utf8Path};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::fs::{fchmod, fchown, fstat, openat, renameat, statat, unlinkat};

/// Bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;

/// Why a file stays as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RewriteError {
    #[error("it was changed while it was looked at")]
    Changed,
    #[error("failed to write the fixed file: {0}")]
    Io(#[from] io::Error),
}

impl From<rustix::io::Errno> for RewriteError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// Replaces the content of a file, if that is still what was read. The path is absolute and without links.
pub(crate) fn rewrite(path: &Utf8Path, old: &[u8], new: &[u8]) -> Result<(), RewriteError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(RewriteError::Changed);
    };
    let folder = open_folder(folder)?;
    let (found, content) = read(folder.as_fd(), name, old.len().max(new.len()))?;
    if content == new {
        // It has two names, and was written by the other.
        return Ok(());
    }
    if content != old {
        return Err(RewriteError::Changed);
    }
    // To replace a file that is read-only would get around that.
    openat(&folder, name, OFlags::WRONLY | GUARDED, Mode::empty())?;
    let temporary = format!(".{name:.64}.{:016x}.tmp", RandomState::new().hash_one(name));
    let written = write(folder.as_fd(), &temporary, &found, new).and_then(|()| {
        let now = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino) {
            return Err(RewriteError::Changed);
        }
        Ok(renameat(&folder, &temporary, &folder, name)?)
    });
    if written.is_err() {
        // What is left of a failed attempt is of no use; that it cannot be removed is no news.
        let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    }
    written
}

/// Neither a link nor a pipe in place of a file is waited for or followed.
const GUARDED: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn open_folder(path: &Utf8Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, "/", flags, Mode::empty())?;
    path.components().try_fold(root, |folder, part| match part {
        Utf8Component::Normal(name) => openat(&folder, name, flags, Mode::empty()),
        _ => Ok(folder),
    })
}

/// What a file is and holds, one byte more than `most` at most.
fn read(folder: BorrowedFd<'_>, name: &str, most: usize) -> Result<(Stat, Vec<u8>), RewriteError> {
    let file = File::from(openat(folder, name, OFlags::RDONLY | GUARDED, Mode::empty())?);
    let found = fstat(&file)?;
    if !file.metadata()?.is_file() {
        return Err(RewriteError::Changed);
    }
    let mut content = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut content)?;
    Ok((found, content))
}

/// Makes a new file that belongs to whom the old one belongs to.
fn write(folder: BorrowedFd<'_>, name: &str, old: &Stat, content: &[u8]) -> Result<(), RewriteError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | GUARDED;
    let mut file = File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(content)?;
    let new = fstat(&file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        use rustix::fs::{Gid, Uid};
        // Only the superuser may give files away; who may write to the folder may replace what is in it all the same.
        let _ = fchown(&file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
    }
    fchmod(&file, Mode::from_raw_mode(old.st_mode & PERMISSIONS))?;
    Ok(file.sync_all()?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use camino::Utf8PathBuf;

    use super::*;

    fn in_folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
        (guard, path)
    }

    #[test]
    fn a_file_is_replaced_and_its_other_names_are_not() {
        let (_guard, folder) = in_folder();
        let (file, other) = (folder.join("a.py"), folder.join("other"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
        fs::hard_link(&file, &other).unwrap();
        rewrite(&file, b"old", b"new").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read(&other).unwrap()), (b"new".into(), b"old".into()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        rewrite(&file, b"old", b"new").unwrap();
    }

    #[test]
    fn what_became_something_else_stays() {
        let (_guard, folder) = in_folder();
        fs::create_dir(folder.join("real")).unwrap();
        fs::write(folder.join("real/a.py"), "old").unwrap();
        symlink("real", folder.join("linked")).unwrap();
        symlink("real/a.py", folder.join("a.py")).unwrap();
        fs::write(folder.join("b.py"), "other").unwrap();
        for path in ["linked/a.py", "a.py", "b.py", "real", "none/a.py"] {
            assert!(rewrite(&folder.join(path), b"old", b"new").is_err(), "{path}");
        }
        assert_eq!(fs::read(folder.join("real/a.py")).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
    }
}
