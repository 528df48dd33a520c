//! Runs that go on: a supervisor keeps the files of its recording open, wherever they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};

/// Folders of the runs whose supervisors this user may look at, oldest first. Of a run that the guard has started again
/// the folder of the whole.
pub(crate) fn running() -> Vec<Utf8PathBuf> {
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let supervisors = processes.map(|entry| entry.path()).filter(|process| {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name == own)
            && !process.ends_with(std::process::id().to_string())
    });
    let runs: BTreeSet<Utf8PathBuf> = supervisors.filter_map(|process| recording(&process)).collect();
    let mut runs: Vec<Utf8PathBuf> = runs.into_iter().collect();
    runs.sort_by_key(|run| run.file_name().map(str::to_owned));
    runs
}

/// The run that a process records, if it does.
fn recording(process: &Path) -> Option<Utf8PathBuf> {
    let files = fs::read_dir(process.join("fd")).ok()?.flatten();
    let targets = files.filter_map(|file| Utf8PathBuf::from_path_buf(fs::read_link(file.path()).ok()?).ok());
    let folder =
        targets.filter_map(|path| path.parent().map(Utf8Path::to_owned)).find(|folder| is_run(folder))?;
    let whole = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name.starts_with("life-")));
    Some(whole.filter(|whole| is_run(whole)).map_or_else(|| folder.clone(), Utf8Path::to_owned))
}

fn is_run(folder: &Utf8Path) -> bool {
    folder.join("run.json").is_file()
}
