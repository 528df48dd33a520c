//! Where recordings are: `.caulk/runs/<time>-<name>`, or `runs` in the folder that [`HOME_VARIABLE`] names.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Zoned;

use crate::entry::RunEntry;
use crate::error::Candidate;
use crate::head::HEAD;
use crate::reader::{holds_recording, read_info};
use crate::{HomeError, WriteError, private};

/// Environment variable that replaces `.caulk`.
pub const HOME_VARIABLE: &str = "CAULK_HOME";

const USUAL: &str = ".caulk";
const RUNS: &str = "runs";

/// The home folder, given the working directory and the value of [`HOME_VARIABLE`]: that value (taken from the working
/// directory), or `.caulk` there. An empty value counts as none.
pub fn home(directory: &Utf8Path, variable: Option<&str>) -> Utf8PathBuf {
    directory.join(variable.filter(|value| !value.is_empty()).unwrap_or(USUAL))
}

/// Name of a run that begins now: `<time>-<name>`.
pub fn run_name(name: &str, now: &Zoned) -> String {
    format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), clean_name(name))
}

/// Makes a folder for a run that begins now, `runs/<time>-<name>`, and returns it. Names that are taken get a number,
/// also when two runs begin at once. Characters that a shell would have to quote become `-`.
///
/// # Errors
/// [`WriteError::Create`] if it cannot be made, [`WriteError::Foreign`] if what lies above is not this user's.
pub fn new_run_folder(home: &Utf8Path, name: &str, now: &Zoned) -> Result<Utf8PathBuf, WriteError> {
    let stem = run_name(name, now);
    let runs = home.join(RUNS);
    prepare(&runs.join(&stem), &runs)?;
    let mut number = 1;
    loop {
        let folder = runs.join(if number == 1 { stem.clone() } else { format!("{stem}-{number}") });
        match private::make(&folder) {
            Ok(true) => return Ok(folder),
            Ok(false) => number += 1,
            Err(source) => return Err(WriteError::Create { path: folder, source }),
        }
    }
}

/// Makes what lies above a run's folder; of a home folder all of it. An error is about `blamed`.
pub(crate) fn prepare(folder: &Utf8Path, blamed: &Utf8Path) -> Result<(), WriteError> {
    let Some(parent) = folder.parent().filter(|parent| !parent.as_str().is_empty()) else {
        return Ok(());
    };
    let failed = |source| WriteError::Create { path: blamed.to_owned(), source };
    match parent.parent().filter(|home| parent.file_name() == Some(RUNS) && !home.as_str().is_empty()) {
        Some(home) => make_home(home).map_err(|error| match error {
            WriteError::Create { source, .. } => failed(source),
            error => error,
        })?,
        None => return private::make_all(parent).map_err(failed).map(drop),
    }
    if !private::make(parent).map_err(failed)? {
        private::refuse_foreign(parent)?;
    }
    Ok(())
}

/// Makes the home folder, for this user alone, unless it is there. A new one gets a `.gitignore` over all of it; so does
/// one in which that is empty, because the disk was full once.
///
/// # Errors
/// [`WriteError::Create`] if it cannot be made, and [`WriteError::Foreign`] if it is not this user's.
pub fn make_home(home: &Utf8Path) -> Result<(), WriteError> {
    private::refuse_foreign(home)?;
    let failed = |source| WriteError::Create { path: home.to_owned(), source };
    let is_new = private::make_all(home).map_err(failed)?;
    private::refuse_foreign(home)?;
    let path = home.join(".gitignore");
    // In a folder of another name, an empty one may be somebody's own.
    let is_empty = home.file_name() == Some(USUAL)
        && path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
    if !is_new && !is_empty {
        return Ok(());
    }
    ignore_all(&path).map_err(|error| {
        // The next run begins anew.
        let _ = fs::remove_file(&path);
        if is_new {
            let _ = fs::remove_dir(home);
        }
        failed(error)
    })
}

fn ignore_all(path: &Utf8Path) -> io::Result<()> {
    let mut file = private::open(OpenOptions::new().write(true).create(true), path)?;
    file.write_all(b"*\n")
}

fn clean_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    let words = name.chars().map(plain).collect::<String>();
    // A word of dots alone would mean a folder, a leading one would hide it.
    let words = words.split('-').map(|word| word.trim_start_matches('.')).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(40).collect();
    if name.is_empty() { "run".into() } else { name }
}

/// The runs in the home folder, newest first. None where there is no such folder, or it is not this
/// user's.
///
/// # Errors
/// [`HomeError::Unreadable`] where it cannot be said what is in it.
pub fn list(home: &Utf8Path) -> Result<Vec<RunEntry>, HomeError> {
    let mut runs: Vec<RunEntry> = folders(home)?.into_iter().map(entry).collect();
    runs.sort_by(|a, b| b.age().cmp(&a.age()));
    Ok(runs)
}

fn folders(home: &Utf8Path) -> Result<Vec<Utf8PathBuf>, HomeError> {
    let runs = home.join(RUNS);
    if [home, &runs].into_iter().any(|folder| private::refuse_foreign(folder).is_err()) {
        return Ok(Vec::new());
    }
    let unreadable = |source| HomeError::Unreadable { path: closed(home, &runs), source };
    let entries = match runs.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let folder = entry.map_err(unreadable)?.into_path();
        if private::refuse_foreign(&folder).is_err() {
            continue;
        }
        match (folder.symlink_metadata(), folder.metadata()) {
            (Err(error), _) if is_refusal(&error) => return Err(unreadable(error)),
            (_, Err(error)) if is_refusal(&error) => folders.push(folder),
            (_, Ok(found)) if found.is_dir() && may_hold_recording(&folder) => folders.push(folder),
            // Whatever else lies there, or has just gone.
            _ => (),
        }
    }
    Ok(folders)
}

/// Is there a recording in it, or may nobody say?
fn may_hold_recording(folder: &Utf8Path) -> bool {
    holds_recording(folder) || folder.join(HEAD).metadata().is_err_and(|error| is_refusal(&error))
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// The folder that lets nobody pass: the home, or the one with the runs in it.
fn closed(home: &Utf8Path, runs: &Utf8Path) -> Utf8PathBuf {
    if runs.symlink_metadata().is_ok() { runs } else { home }.to_owned()
}

fn entry(folder: Utf8PathBuf) -> RunEntry {
    let files = folder.read_dir_utf8().into_iter().flatten().flatten();
    let bytes = files
        .filter_map(|file| file.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum();
    RunEntry { info: read_info(&folder), folder, bytes }
}

/// The folder of the run that a person means: by a path (to the folder or its `run.json`), by its id, or by a part of it
/// that no other run shares.
///
/// # Errors
/// [`HomeError`] if there is none, or more than one; it names those there are.
pub fn resolve(home: &Utf8Path, name: &str) -> Result<Utf8PathBuf, HomeError> {
    let path = Utf8Path::new(name);
    if path.file_name() == Some(HEAD) && path.is_file() {
        return Ok(path.parent().unwrap_or(path).to_owned());
    }
    // A folder of that name here may be anything; a path is meant as one.
    if path.is_dir() && (name.contains('/') || name == "." || holds_recording(path)) {
        return Ok(path.to_owned());
    }
    if name.contains('/')
        && let Err(source) = path.metadata()
        && is_refusal(&source)
    {
        return Err(HomeError::Unreadable { path: path.to_owned(), source });
    }
    let runs = list(home)?;
    if runs.is_empty() {
        return Err(HomeError::Empty { home: home.to_owned() });
    }
    let matching = |test: &dyn Fn(&str) -> bool| runs.iter().filter(|run| test(run.id())).collect::<Vec<_>>();
    let exact = matching(&|id| id == name);
    let found = if exact.is_empty() { matching(&|id| id.contains(name)) } else { exact };
    match found.as_slice() {
        [one] => Ok(one.folder.clone()),
        [] => {
            let candidates = runs.iter().map(|run| run.id().to_owned()).collect();
            Err(HomeError::Unknown { name: name.to_owned(), home: home.to_owned(), candidates })
        }
        several => {
            let candidates = several.iter().map(|run| Candidate::of(run)).collect();
            Err(HomeError::Ambiguous { name: name.to_owned(), candidates })
        }
    }
}
