//! Source files on disk, as the program had them open.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::panic::catch_unwind;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use camino::Utf8PathBuf;
use caulk_core::Diagnostic;

use crate::cells::NotebookCells;
use crate::check;

/// Longest source file that is read, in bytes: longer ones are data.
const LONGEST: u64 = 16 << 20;

/// Files below and outside of the directory in which the run began, each read once.
pub(crate) struct Disk {
    directory: PathBuf,
    notebooks: NotebookCells,
    read: RefCell<HashMap<PathBuf, Option<Rc<str>>>>,
}

impl Disk {
    /// Relative paths are taken from `directory`.
    pub(crate) fn new(directory: &str) -> Self {
        let notebooks = NotebookCells::new(directory);
        Self { directory: directory.into(), notebooks, read: RefCell::default() }
    }

    /// Where a file of a finding lies.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// The text of a file or of a notebook's cell; `None` where there is none, or it is no text.
    pub(crate) fn text(&self, file: &str) -> Option<Rc<str>> {
        if let Some((_, text)) = self.notebooks.find(file) {
            return Some(text.into());
        }
        let path = self.path(file);
        let mut read = self.read.borrow_mut();
        read.entry(path).or_insert_with_key(|path| load(path)).clone()
    }

    /// Some lines of a file, counted from 1.
    pub(crate) fn lines(&self, file: &str, wanted: &BTreeSet<u32>) -> Vec<(u32, String)> {
        let Some(text) = self.text(file) else { return Vec::new() };
        let lines = (1..).zip(text.split('\n')).filter(|(number, _)| wanted.contains(number));
        lines.map(|(number, line)| (number, line.trim_end_matches('\r').to_owned())).collect()
    }
}

impl caulk_diagnose::Sources for Disk {
    fn patterns(&self, files: &BTreeSet<String>) -> Vec<Diagnostic> {
        let directory = Utf8PathBuf::from_path_buf(self.directory.clone()).unwrap_or_default();
        let python = |file: &Utf8PathBuf| file.extension() == Some("py") && directory.join(file).is_file();
        let there = files.iter().map(Utf8PathBuf::from).filter(python);
        // A run is explained although its sources are too much for the analysis.
        catch_unwind(|| check::patterns(&directory, &there.collect::<Vec<_>>())).unwrap_or_default()
    }

    fn read(&self, path: &str) -> Option<String> {
        self.text(path).map(|text| text.to_string())
    }

    fn display(&self, path: &str) -> String {
        // `<string>`, `<stdin>`, `<frozen importlib>` are no files.
        if path.starts_with('<') {
            return path.to_owned();
        }
        if let Some((cell, _)) = self.notebooks.find(path) {
            return cell.to_owned();
        }
        let whole = clean(&self.path(path));
        let below =
            |file: &Path, folder: &Path| Some(file.strip_prefix(folder).ok()?.to_string_lossy().into_owned());
        // Links on the way may give the same file two names.
        let real = || below(&whole.canonicalize().ok()?, &self.directory.canonicalize().ok()?);
        match below(&whole, &self.directory).or_else(real) {
            Some(file) if !file.is_empty() => file,
            _ => whole.to_string_lossy().into_owned(),
        }
    }
}

/// The path without `.` and `..`, by its text alone.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => (),
            Component::ParentDir if clean.file_name().is_some() => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

fn load(path: &Path) -> Option<Rc<str>> {
    // Python sources may declare another encoding; what is ASCII in them stays readable.
    Some(String::from_utf8_lossy(&caulk_source::read_plain(path, LONGEST).ok()?).into())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use caulk_diagnose::Sources;

    use super::*;

    #[test]
    fn lines_are_found_from_the_run_s_directory() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.py"), "one\r\ntwo\nthree").unwrap();
        let disk = Disk::new(folder.path().to_str().unwrap());
        let lines = disk.lines("a.py", &BTreeSet::from([1, 3, 9]));
        assert_eq!(lines, [(1, "one".to_owned()), (3, "three".to_owned())]);
        assert_eq!(disk.text("none.py"), None);
        assert_eq!(disk.text(""), None);
        let absolute = folder.path().join("a.py");
        assert!(disk.text(absolute.to_str().unwrap()).is_some());
    }

    #[test]
    fn files_are_shown_from_where_the_run_began() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("job/pkg")).unwrap();
        fs::write(root.join("job/pkg/a.py"), "").unwrap();
        std::os::unix::fs::symlink(root.join("job"), root.join("link")).unwrap();
        let disk = Disk::new(root.join("job").to_str().unwrap());
        let check = |path: &str, shown: &str| assert_eq!(disk.display(path), shown, "{path}");
        check("pkg/a.py", "pkg/a.py");
        check("./pkg/../pkg/a.py", "pkg/a.py");
        check(root.join("job/pkg/a.py").to_str().unwrap(), "pkg/a.py");
        check(root.join("link/pkg/a.py").to_str().unwrap(), "pkg/a.py");
        check("/usr/lib/python3/x.py", "/usr/lib/python3/x.py");
        check(root.join("jobs.py").to_str().unwrap(), root.join("jobs.py").to_str().unwrap());
        check("<string>", "<string>");
    }
}
