//! Plain files of a bounded size.
//!
//! In somebody else's tree anything may lie where a file is expected: a pipe that nobody writes to, a link to a device
//! that never ends. Neither stops a reader here, and nothing is read beyond a limit.

use std::fs::{self, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum PlainError {
    /// What the system says.
    #[error("failed to read: {0}")]
    Io(#[from] io::Error),
    /// There is something else of this name.
    #[error("not a plain file, but {0}")]
    Other(&'static str),
    /// It is longer than this many bytes.
    #[error("larger than {}", size(*.0))]
    Long(u64),
}

impl PlainError {
    /// Whether nothing of this name is there, or only a folder.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Io(error) => {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
            Self::Other(kind) => *kind == FOLDER,
            Self::Long(_) => false,
        }
    }
}

const FOLDER: &str = "a folder";

/// Reads a plain file of at most `most` bytes. A link is followed to what it leads to.
///
/// # Errors
/// [`PlainError`] if it is something else, longer, or cannot be read.
pub fn read(path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>, PlainError> {
    let path = path.as_ref();
    // A device is not even opened: that alone may do something.
    plain(fs::metadata(path)?.file_type())?;
    // It may be another one by now: a pipe is not waited for, and looked at again.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    plain(found.file_type())?;
    if found.len() > most {
        return Err(PlainError::Long(most));
    }
    // What the system makes on the spot has no size, and a file may grow while it is read.
    let mut bytes = Vec::with_capacity(found.len() as usize + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(PlainError::Long(most)) } else { Ok(bytes) }
}

fn plain(kind: FileType) -> Result<(), PlainError> {
    let other = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        FOLDER
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(PlainError::Other(other))
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} kB", bytes >> 10),
        mega => format!("{mega} MB"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, mknodat};

    use super::*;

    fn check(path: &Path, expected: &str) {
        let said = read(path, 10).map_or_else(|error| error.to_string(), |bytes| format!("{bytes:?}"));
        assert!(said.starts_with(expected), "{}: {said}", path.display());
    }

    #[test]
    fn only_plain_files_are_read_and_no_more_than_the_limit() {
        let guard = tempfile::tempdir().unwrap();
        let at = |name: &str| guard.path().join(name);
        fs::write(at("ten"), "0123456789").unwrap();
        fs::write(at("eleven"), "0123456789a").unwrap();
        mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("loop", at("loop")).unwrap();
        check(&at("ten"), "[48, 49");
        check(&at("eleven"), "larger than 0 kB");
        check(&at("pipe"), "not a plain file, but a pipe");
        check(&at("socket"), "not a plain file, but a socket");
        check(&at("zero"), "not a plain file, but a device");
        check(&at("loop"), "failed to read");
        check(&at("none"), "failed to read");
        check(guard.path(), "not a plain file, but a folder");
        // Has no size, and content all the same.
        check(Path::new("/proc/self/maps"), "larger than");
    }
}
