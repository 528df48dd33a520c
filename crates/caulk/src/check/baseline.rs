//! The baseline as a file: paths in it are relative to its own folder, so that it does not matter where caulk starts.

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::Baseline;
use caulk_core::{Diagnostic, shown_name};
use caulk_source::{PlainError, read_plain};

use super::link;
use crate::files::{self, FileError};

/// Longest baseline that is read, in bytes: some 100,000 findings.
const LONGEST: u64 = 16 << 20;

/// A baseline and where it lies.
#[derive(Debug)]
pub(crate) struct Known {
    baseline: Baseline,
    folder: Utf8PathBuf,
}

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BaselineError {
    #[error("the baseline `{}` cannot be read{}", shown_name(path.as_str()), hint(source))]
    Open { path: Utf8PathBuf, source: PlainError },
    #[error(
        "the baseline `{}` is damaged\nhint: write it again with --write-baseline", shown_name(path.as_str())
    )]
    Damaged { path: Utf8PathBuf, source: serde_json::Error },
    #[error(
        "the baseline `{}` is of another version of caulk\nhint: write it again with --write-baseline", shown_name(path.as_str())
    )]
    Version { path: Utf8PathBuf },
    #[error(
        "the baseline `{}` is a link, or reached through one, that leads to `{}`\nhint: name that file itself",
        shown_name(path.as_str()), shown_name(real.as_str())
    )]
    Link { path: Utf8PathBuf, real: Utf8PathBuf },
    #[error(transparent)]
    Write(#[from] FileError),
}

fn hint(error: &PlainError) -> &'static str {
    if error.is_absent() { "\nhint: `caulk check --write-baseline FILE` makes one" } else { "" }
}

impl Known {
    /// Reads a baseline; the path is absolute.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, BaselineError> {
        let bytes = read_plain(path, LONGEST)
            .map_err(|source| BaselineError::Open { path: path.to_owned(), source })?;
        let baseline: Baseline = serde_json::from_slice(&bytes)
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

/// Writes a baseline that knows all of these. A link below the working directory may be somebody else's, and is not
/// written through.
pub(crate) fn write(
    directory: &Utf8Path,
    path: &Utf8Path,
    found: &[Diagnostic],
    on_disk: impl Fn(&str) -> Utf8PathBuf,
) -> Result<(), BaselineError> {
    if let Some(real) = link::target(directory, path) {
        return Err(BaselineError::Link { path: path.to_owned(), real });
    }
    let folder = folder(path);
    let baseline = Baseline::new(found, |file| relative(&folder, &on_disk(file)));
    // Values of plain data: there is nothing in them that JSON cannot hold.
    let text = serde_json::to_string_pretty(&baseline).expect("plain data is valid JSON");
    Ok(files::write(path, &(text + "\n"))?)
}

fn folder(path: &Utf8Path) -> Utf8PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// A path seen from a folder at or above it; from elsewhere the path itself.
fn relative(folder: &Utf8Path, path: &Utf8Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).as_str().to_owned()
}
