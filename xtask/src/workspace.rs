//! Where things are in this checkout.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The checkout that xtask was built from.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The checkout that xtask was built from.
    pub(crate) fn here() -> Self {
        let manifest =
            std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Self { root: Path::new(&manifest).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf) }
    }

    /// Its folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below it.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Cargo's target folder.
    pub(crate) fn target(&self) -> PathBuf {
        let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
        self.root.join(folder)
    }
}
