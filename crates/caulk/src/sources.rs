//! Source files on disk, as the program had them open.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longest source file that is read, in bytes: longer ones are data.
const LONGEST: u64 = 16 << 20;

/// Files below and outside of the directory in which the run began, each read once.
pub(crate) struct Disk {
    directory: PathBuf,
    read: RefCell<HashMap<PathBuf, Option<Rc<str>>>>,
}

impl Disk {
    /// Relative paths are taken from `directory`.
    pub(crate) fn new(directory: &str) -> Self {
        Self { directory: directory.into(), read: RefCell::default() }
    }

    /// Where a file of a finding lies.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// The text of a file; `None` where there is none, or it is no text.
    pub(crate) fn text(&self, file: &str) -> Option<Rc<str>> {
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

fn load(path: &Path) -> Option<Rc<str>> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > LONGEST {
        return None;
    }
    // Python sources may declare another encoding; what is ASCII in them stays readable.
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
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
}
