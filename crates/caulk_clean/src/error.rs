//! Why nothing can be removed.

use std::io;

use camino::Utf8PathBuf;

/// Why no plan could be made; nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// A folder lies outside the project, or is the project itself.
    #[error(
        "`{folder}` does not lie inside the project `{root}`\nhint: name folders below the project's root"
    )]
    Outside {
        /// The folder as it was named.
        folder: Utf8PathBuf,
        /// The project.
        root: Utf8PathBuf,
    },
    /// A folder, or one above it, is a link.
    #[error(
        "`{link}` is a link, and links are not followed\nhint: clean the folder it leads to, or remove the link by hand"
    )]
    Link {
        /// The link.
        link: Utf8PathBuf,
    },
    /// git could not say what it tracks.
    #[error(
        "git cannot say which files of `{root}` it tracks, so nothing is removed: {cause}\nhint: see that `git -C {root} status` works"
    )]
    Git {
        /// The project.
        root: Utf8PathBuf,
        /// What git or the system said.
        cause: String,
    },
    /// A pattern cannot be read.
    #[error("`{pattern}` is no pattern as in .gitignore: {cause}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong.
        cause: String,
    },
    /// The project's root cannot be read.
    #[error("`{root}` cannot be read: {cause}")]
    Root {
        /// The project.
        root: Utf8PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
}
