//! The results of the runs of a heal, so that `--resume` continues after the last one that was completed.
//!
//! The course is a function of the runs' results. So it is repeated from its beginning, and a run that is in the journal with
//! the same sources is read instead of made.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::bail;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::Texts;
use serde::{Deserialize, Serialize};

use crate::cli::HealArgs;
use crate::files;

/// File in the folder of a heal: command, options and sources, as one number.
const START: &str = "start.json";

/// The heal of a folder.
#[derive(Debug, Serialize, Deserialize)]
struct Start {
    key: String,
}

/// A run that was completed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The sources that ran.
    pub(super) sources: String,
    /// caulk ended it.
    pub(super) cut: bool,
    /// Length of its output when caulk ended it.
    pub(super) output_bytes: Option<u64>,
    /// It ended as it should.
    pub(super) succeeded: bool,
    /// Contents of the files that are to stay the same; `None` if it made none.
    pub(super) files: Vec<Option<String>>,
}

/// The key of a heal: command, options that decide about its runs, and sources.
pub(crate) fn key(args: &HealArgs, directory: &Utf8Path, texts: &Texts) -> String {
    let time = args.time_limit.map(|limit| limit.0);
    let options = (args.epochs, time, &args.same, args.tolerance.to_bits(), args.in_place, &args.from);
    digest(&(env!("CARGO_PKG_VERSION"), &args.command, options, directory, texts))
}

/// A short name for contents.
pub(super) fn digest(contents: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Marks a folder as the one of a heal.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn begin(folder: &Utf8Path, key: String) -> anyhow::Result<()> {
    Ok(files::write(&folder.join(START), serde_json::to_string(&Start { key })?)?)
}

/// The latest folder in `base` of the heal with this key.
///
/// # Errors
/// If there is none.
pub(crate) fn find(base: &Utf8Path, key: &str) -> anyhow::Result<Utf8PathBuf> {
    let entries = base.read_dir_utf8().into_iter().flatten().flatten().map(|entry| entry.path().to_owned());
    let mut folders: Vec<Utf8PathBuf> = entries.collect();
    folders.sort();
    let same =
        |folder: &Utf8PathBuf| read::<Start>(&folder.join(START)).is_some_and(|start| start.key == key);
    match folders.into_iter().rev().find(same) {
        Some(folder) => Ok(folder),
        None => bail!(
            "`{base}` has no heal of this command with these options and sources\nhint: start one without `--resume`"
        ),
    }
}

fn path(folder: &Utf8Path, number: usize) -> Utf8PathBuf {
    folder.join(format!("run-{number}.json"))
}

/// The result of a run of these sources, if it was completed.
pub(super) fn kept(folder: &Utf8Path, number: usize, sources: &str) -> Option<Kept> {
    read::<Kept>(&path(folder, number)).filter(|kept| kept.sources == sources)
}

/// Keeps the result of a run.
///
/// # Errors
/// If it cannot be written.
pub(super) fn keep(folder: &Utf8Path, number: usize, kept: &Kept) -> anyhow::Result<()> {
    Ok(files::write(&path(folder, number), serde_json::to_string(kept)?)?)
}

fn read<T: for<'a> Deserialize<'a>>(path: &Utf8Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_again_with_the_same_sources_alone() {
        let guard = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(guard.path()).unwrap();
        for (name, start) in [("1", "a"), ("2", "a"), ("3", "b")] {
            fs::create_dir(base.join(name)).unwrap();
            begin(&base.join(name), start.into()).unwrap();
        }
        assert_eq!(find(base, "a").unwrap(), base.join("2"));
        assert!(find(base, "c").is_err());
        let run =
            Kept { sources: "s".into(), cut: false, output_bytes: None, succeeded: true, files: vec![None] };
        keep(base, 1, &run).unwrap();
        assert!(kept(base, 1, "s").is_some_and(|kept| kept.succeeded));
        assert!(kept(base, 1, "t").is_none() && kept(base, 2, "s").is_none());
    }
}
