//! Python sources on disk: which files belong to a project, what they say, and writing them back.
//!
//! A file named on the command line belongs to a project ([`ProjectRoot`]), and the whole project is read: what is kept alive
//! is decided by callers and callees in other files. Knows nothing of rules or findings.

mod encoding;
mod excluded;
mod ignored;
mod names;
mod notebook;
mod plain;
mod read;
mod roots;
mod walk;

pub use encoding::{Encoding, EncodingError};
pub use excluded::Excludes;
pub use names::{Names, absolute};
pub use plain::{PlainError, read as read_plain};
pub use read::{Document, read};
pub use roots::{Extent, MissingPath, ProjectPaths, ProjectRoot, group};
pub use walk::files;
