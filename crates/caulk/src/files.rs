//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};

use crate::brief::quoted;
use crate::target;

/// Why a file of the user's choice cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write `{path}`{}", hint(path, source))]
pub(crate) struct FileError {
    path: Utf8PathBuf,
    source: io::Error,
}

fn hint(path: &Utf8Path, source: &io::Error) -> String {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match folder(path) {
        folder if path.is_dir() => {
            format!("\nhint: name a file in it, for example `{}`", folder.join("report.txt"))
        }
        folder if !folder.exists() => {
            format!("\nhint: make the folder first: `mkdir -p {}`", quoted(folder.as_str()))
        }
        _ if is_full(source) => "\nhint: make room where it lies".into(),
        _ if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            "\nhint: name a file where you may write".into()
        }
        _ => String::new(),
    }
}

/// Replaces a file at once: readers see the old one or the new one. Pipes and devices are written to as they are.
///
/// # Errors
/// [`FileError`] with what the system says. A reader of a pipe who has gone is no error.
pub(crate) fn write(path: &Utf8Path, content: impl AsRef<[u8]>) -> Result<(), FileError> {
    let content = content.as_ref();
    let result = if special(path) { through(path, content) } else { replace(path, content) };
    result.map_err(|source| FileError { path: path.to_owned(), source })
}

/// There is no room; there may be some when it is needed.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Finds out whether [`write()`] will work, before hours are spent on what it is to write. Leaves nothing behind. A disk
/// that is full now, or a working directory that was removed, does not keep a training from starting.
///
/// # Errors
/// As [`write()`].
pub(crate) fn check(path: &Utf8Path) -> Result<(), FileError> {
    let result = if special(path) {
        Ok(())
    } else if path.is_dir() {
        Err(io::Error::from(io::ErrorKind::IsADirectory))
    } else {
        let temporary = temporary(path);
        let made = File::create_new(&temporary).and_then(|_| fs::remove_file(&temporary));
        made.or_else(|error| OpenOptions::new().write(true).open(path).map(drop).map_err(|_| error))
    };
    let excused = |source: &io::Error| is_full(source) || path.is_relative() && target::is_gone();
    result.or_else(
        |source| {
            if excused(&source) { Ok(()) } else { Err(FileError { path: path.to_owned(), source }) }
        },
    )
}

/// There is something that is neither file nor folder: a pipe, a terminal, `/dev/stdout`.
fn special(path: &Utf8Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

fn through(path: &Utf8Path, content: &[u8]) -> io::Result<()> {
    // A pipe that nobody reads from must not stop caulk from ending.
    let mut flags = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut flags,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = match flags.write(true).open(path) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => return Ok(()),
        file => file?,
    };
    let current = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, current.difference(rustix::fs::OFlags::NONBLOCK))?;
    match (&file).write_all(content) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn replace(path: &Utf8Path, content: &[u8]) -> io::Result<()> {
    // The file behind a link is replaced, not the link.
    let path = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let temporary = temporary(&path);
    let written = File::create_new(&temporary).and_then(|mut file| {
        if let Ok(old) = fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&temporary, &path)).or_else(|error| {
        // What is left of a failed attempt is of no use; that it cannot be removed is no news.
        let _ = fs::remove_file(&temporary);
        if is_full(&error) {
            // The old file would be lost, and the new one not be there.
            return Err(error);
        }
        // A file that is mounted into a container, or lies in a folder of somebody else, can only be overwritten.
        let file = OpenOptions::new().write(true).truncate(true).open(&path);
        file.and_then(|mut file| file.write_all(content)).map_err(|_| error)
    })
}

/// Beside the file, so that renaming stays within one file system.
fn temporary(path: &Utf8Path) -> Utf8PathBuf {
    let name = path.file_name().unwrap_or("report");
    // Nobody can have put a link there: its name cannot be known before.
    folder(path).join(format!(".{name}.{:016x}.tmp", RandomState::new().hash_one(name)))
}

fn folder(path: &Utf8Path) -> &Utf8Path {
    match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn folder_for_test() -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let (_guard, folder) = folder_for_test();
        let path = folder.join("report.json");
        check(&path).unwrap();
        assert!(!path.exists());
        write(&path, "old").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let (_guard, folder) = folder_for_test();
        fs::write(folder.join("real"), "old").unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        write(&folder.join("link"), "new").unwrap();
        assert_eq!(fs::read_to_string(folder.join("real")).unwrap(), "new");
        assert!(fs::symlink_metadata(folder.join("link")).unwrap().is_symlink());
    }

    #[test]
    fn a_folder_that_is_missing_is_named_with_what_to_do() {
        let (_guard, folder) = folder_for_test();
        let error = check(&folder.join("none/report.txt")).unwrap_err();
        assert!(error.to_string().contains("hint: make the folder first"), "{error}");
        assert!(check(&folder).unwrap_err().to_string().contains("hint: name a file"));
    }

    #[test]
    fn a_pipe_that_nobody_reads_stops_nothing() {
        let (_guard, folder) = folder_for_test();
        let pipe = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, pipe.as_std_path(), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        check(&pipe).unwrap();
        write(&pipe, "text").unwrap();
    }
}
