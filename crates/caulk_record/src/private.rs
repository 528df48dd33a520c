//! Folders and files for their owner alone, whatever the umask; and whose a folder is that is there already.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};

use camino::Utf8Path;

use crate::WriteError;

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// Makes the folder; false where there is something of that name already.
pub(crate) fn make(folder: &Utf8Path) -> io::Result<bool> {
    match DirBuilder::new().mode(FOLDER).create(folder) {
        Ok(()) => {
            // The umask may have taken away even what its owner needs. Some file systems have no modes.
            let _ = fs::set_permissions(folder, Permissions::from_mode(FOLDER));
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the folder and what is missing above it; false where it is there already.
pub(crate) fn make_all(folder: &Utf8Path) -> io::Result<bool> {
    match (make(folder), folder.parent()) {
        (Err(error), Some(above))
            if error.kind() == io::ErrorKind::NotFound && !above.as_str().is_empty() =>
        {
            make_all(above)?;
            make(folder)
        }
        (result, _) => result,
    }
}

/// Opens a file with these options, one that is made included.
pub(crate) fn open(options: &mut OpenOptions, path: &Utf8Path) -> io::Result<File> {
    let file = options.mode(FILE).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.mode() & 0o777 != FILE {
        let _ = file.set_permissions(Permissions::from_mode(FILE));
    }
    Ok(file)
}

/// Writes a file of a recording so that readers see the old one or the new one.
///
/// # Errors
/// What the system says; the old file is still there then.
pub fn write_file(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_file_name(format!(".{}.new", path.file_name().unwrap_or_default()));
    let written = open(OpenOptions::new().write(true).create(true).truncate(true), &new)
        .and_then(|mut file| file.write_all(bytes));
    written.and_then(|()| fs::rename(&new, path)).inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Refuses what another user may have put there: a link, and a folder in a place where anybody may write. Root may do
/// anything anyway.
///
/// # Errors
/// [`WriteError::Foreign`] says whose it is.
pub fn refuse_foreign(path: &Utf8Path) -> Result<(), WriteError> {
    // What is not there, or cannot be looked at, is refused by what comes next.
    let Ok(found) = path.symlink_metadata() else {
        return Ok(());
    };
    let (owner, user) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner == user || owner == 0 {
        return Ok(());
    }
    let above = path.parent().filter(|above| !above.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let is_open = || above.metadata().is_ok_and(|above| above.mode() & 0o002 != 0);
    let what = match () {
        () if found.is_symlink() => "a link",
        () if is_open() => "a folder, where anybody may write,",
        () => return Ok(()),
    };
    Err(WriteError::Foreign { path: path.to_owned(), what, owner })
}
