//! The baseline as a file: paths in it are relative to its own folder, so that it does not matter where caulk starts.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::Baseline;
use caulk_core::Diagnostic;

use crate::files::{self, FileError};

/// A baseline and where it lies.
#[derive(Debug)]
pub(crate) struct Known {
    baseline: Baseline,
    folder: Utf8PathBuf,
}

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BaselineError {
    #[error("failed to read the baseline `{path}`{}", hint(source))]
    Open { path: Utf8PathBuf, source: io::Error },
    #[error(
        "the baseline `{path}` is damaged\nhint: write it again with `caulk check --write-baseline {path}`"
    )]
    Damaged { path: Utf8PathBuf, source: serde_json::Error },
    #[error(
        "the baseline `{path}` is of another version of caulk\nhint: write it again with --write-baseline"
    )]
    Version { path: Utf8PathBuf },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "\nhint: `caulk check --write-baseline FILE` makes one",
        _ => "",
    }
}

impl Known {
    /// Reads a baseline; the path is absolute.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, BaselineError> {
        let text = fs::read_to_string(path)
            .map_err(|source| BaselineError::Open { path: path.to_owned(), source })?;
        let baseline: Baseline = serde_json::from_str(&text)
            .map_err(|source| BaselineError::Damaged { path: path.to_owned(), source })?;
        if !baseline.is_current() {
            return Err(BaselineError::Version { path: path.to_owned() });
        }
        Ok(Self { baseline, folder: folder(path) })
    }

    /// Takes known findings out and says how many there were; `on_disk` finds the absolute path of a finding's file.
    pub(crate) fn take_out(
        &self,
        found: &mut Vec<Diagnostic>,
        on_disk: impl Fn(&str) -> Utf8PathBuf,
    ) -> usize {
        self.baseline.take_out(found, |file| relative(&self.folder, &on_disk(file)))
    }
}

/// Writes a baseline that knows all of these.
pub(crate) fn write(
    path: &Utf8Path,
    found: &[Diagnostic],
    on_disk: impl Fn(&str) -> Utf8PathBuf,
) -> Result<(), FileError> {
    let folder = folder(path);
    let baseline = Baseline::new(found, |file| relative(&folder, &on_disk(file)));
    // Values of plain data: there is nothing in them that JSON cannot hold.
    let text = serde_json::to_string_pretty(&baseline).expect("plain data is valid JSON");
    files::write(path, &(text + "\n"))
}

fn folder(path: &Utf8Path) -> Utf8PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// A path seen from a folder at or above it; from elsewhere the path itself.
fn relative(folder: &Utf8Path, path: &Utf8Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).as_str().to_owned()
}
