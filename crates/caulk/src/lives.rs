//! Where the lives of a run lie: the first one in the run's folder, later ones, of a command that the guard has started
//! again, in folders below it.

use anyhow::bail;
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::RunInfo;

/// Folder of a life of a run, from 1.
pub(crate) fn folder(run: &Utf8Path, number: usize) -> Utf8PathBuf {
    if number <= 1 { run.to_owned() } else { run.join(format!("life-{number}")) }
}

/// Folders of the lives after the first one.
pub(crate) fn later(run: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> {
    (2..).map(|number| folder(run, number)).take_while(|folder| folder.is_dir())
}

/// So many lives.
pub(crate) fn count(run: &Utf8Path) -> usize {
    1 + later(run).count()
}

/// Folder of a life that a user asks for.
///
/// # Errors
/// If the run has no such life.
pub(crate) fn wanted(run: &Utf8Path, number: usize) -> anyhow::Result<Utf8PathBuf> {
    let count = count(run);
    if !(1..=count).contains(&number) {
        let has = if count == 1 { "one life".into() } else { format!("{count} lives") };
        bail!("this run has no life {number}\nhint: it has {has}");
    }
    Ok(folder(run, number))
}

/// Head of the last life of a run, where there is more than one: it says how the run ended.
pub(crate) fn last(run: &Utf8Path) -> Option<RunInfo> {
    caulk_record::read_info(&later(run).last()?).ok()
}
