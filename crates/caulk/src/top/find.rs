//! Runs that go on: a supervisor keeps the files of its recording open, wherever they are.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};

/// Runs that go on.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// Folders of the runs whose supervisors this user may look at, oldest first. Of a run that the guard has started
    /// again the folder of the whole.
    pub(crate) runs: Vec<Utf8PathBuf>,
    /// Folders of such runs in which this user may not read.
    pub(crate) closed: Vec<Utf8PathBuf>,
}

/// Now.
pub(crate) fn running() -> Running {
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let supervisors = processes.map(|entry| entry.path()).filter(|process| {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name == own)
            && !process.ends_with(std::process::id().to_string())
    });
    let mut found = Running::default();
    let folders: BTreeSet<Utf8PathBuf> = supervisors.filter_map(|process| recording(&process)).collect();
    for folder in folders {
        let of = if is_closed(&folder) { &mut found.closed } else { &mut found.runs };
        of.push(folder);
    }
    found.runs.sort_by_key(|run| run.file_name().map(str::to_owned));
    found
}

/// The run that a process records, if it does.
fn recording(process: &Path) -> Option<Utf8PathBuf> {
    let files = fs::read_dir(process.join("fd")).ok()?.flatten();
    let mut targets =
        files.filter_map(|file| Utf8PathBuf::from_path_buf(fs::read_link(file.path()).ok()?).ok());
    let folder = targets.find_map(|path| {
        let folder = path.parent()?;
        (is_run(folder) || is_ring(&path) && is_closed(folder)).then(|| folder.to_owned())
    })?;
    let whole = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name.starts_with("life-")));
    Some(whole.filter(|whole| is_run(whole)).map_or_else(|| folder.clone(), Utf8Path::to_owned))
}

fn is_run(folder: &Utf8Path) -> bool {
    folder.join("run.json").is_file()
}

/// What a supervisor writes at once, by its name.
fn is_ring(path: &Utf8Path) -> bool {
    path.extension() == Some("log") && path.file_name().is_some_and(|name| name.starts_with("ring-"))
}

fn is_closed(folder: &Utf8Path) -> bool {
    let head = fs::File::open(folder.join("run.json"));
    head.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}
