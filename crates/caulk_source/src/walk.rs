//! The files of a project.

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Problem;
use ignore::{DirEntry, WalkBuilder};

use crate::excluded::{self, Excludes};
use crate::roots::{Extent, Root};

/// Absolute paths of a project's Python files and notebooks, sorted; folders that cannot be read are problems.
pub fn files(root: &Root, excludes: &Excludes) -> (Vec<Utf8PathBuf>, Vec<Problem>) {
    let mut found = Found::default();
    match &root.extent {
        Extent::Folder => found.walk(&root.folder, excludes),
        Extent::Package(top) => found.walk(top, excludes),
        Extent::Scripts => found.scripts(&root.folder, excludes),
        Extent::Nothing => (),
    }
    found.files.sort();
    found.files.dedup();
    (found.files, found.problems)
}

/// Whether a file's name says that it is Python.
pub(crate) fn is_python(path: &Utf8Path) -> bool {
    matches!(path.extension(), Some("py" | "pyw" | "ipynb"))
}

#[derive(Default)]
struct Found {
    files: Vec<Utf8PathBuf>,
    problems: Vec<Problem>,
}

impl Found {
    fn walk(&mut self, folder: &Utf8Path, excludes: &Excludes) {
        let mut walk = WalkBuilder::new(folder);
        // A folder that is ignored as a whole was named: the rules above it do not reach into it.
        walk.hidden(false).require_git(false).parents(!excluded::by_git(folder));
        let excludes = excludes.clone();
        walk.filter_entry(move |entry| keep(entry, &excludes));
        for entry in walk.build() {
            match entry {
                Ok(entry) => self.take(&entry),
                Err(error) => self.problem(folder, &error),
            }
        }
    }

    fn take(&mut self, entry: &DirEntry) {
        let Some(path) = Utf8Path::from_path(entry.path()) else {
            let shown = entry.path().to_string_lossy();
            self.problems.push(Problem::of_file(shown, "the name is not UTF-8; the file is not looked at"));
            return;
        };
        if is_python(path) && path.is_file() {
            self.files.push(path.to_owned());
        }
    }

    /// Files of one folder and of the packages in it.
    fn scripts(&mut self, folder: &Utf8Path, excludes: &Excludes) {
        let entries = match folder.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(Problem::of_file(folder, error.to_string())),
        };
        for path in entries.flatten().map(camino::Utf8DirEntry::into_path) {
            if path.join("__init__.py").is_file() {
                self.walk(&path, excludes);
            } else if is_python(&path) && path.is_file() && !excludes.matches(&path, false) {
                self.files.push(path);
            }
        }
    }

    fn problem(&mut self, folder: &Utf8Path, error: &ignore::Error) {
        let (path, cause) = split(error);
        self.problems.push(Problem::of_file(path.unwrap_or_else(|| folder.to_string()), cause));
    }
}

/// The path that an error is about, and what the system says of it.
fn split(error: &ignore::Error) -> (Option<String>, String) {
    match error {
        ignore::Error::WithPath { path, err } => (Some(path.to_string_lossy().into_owned()), split(err).1),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => split(err),
        ignore::Error::Io(error) => (None, format!("failed to read: {error}")),
        other => (None, other.to_string()),
    }
}

fn keep(entry: &DirEntry, excludes: &Excludes) -> bool {
    let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    let named = entry.depth() == 0;
    let left_out = folder && excluded::by_name(&entry.file_name().to_string_lossy());
    let excluded = Utf8Path::from_path(entry.path()).is_some_and(|path| excludes.matches(path, folder));
    named || !(left_out || excluded)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use super::*;

    fn check(tree: &[(&str, &str)], excludes: &[&str], extent: Extent, expected: &[&str]) {
        let guard = tempfile::tempdir().unwrap();
        let top = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
        for (file, text) in tree {
            let path = top.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let patterns: Vec<String> = excludes.iter().map(ToString::to_string).collect();
        let excludes = Excludes::new(&top, &patterns).unwrap();
        let (files, problems) = files(&Root { folder: top.clone(), extent }, &excludes);
        let names: Vec<_> = files.iter().map(|file| file.strip_prefix(&top).unwrap().as_str()).collect();
        assert_eq!(names, expected);
        assert_eq!(problems, []);
    }

    #[test]
    fn python_is_found_and_other_people_s_code_is_not() {
        let tree = [
            ("a.py", ""),
            ("b.ipynb", ""),
            ("c.txt", ""),
            ("pkg/d.py", ""),
            (".github/e.py", ""),
            ("venv/f.py", ""),
            (".venv/f.py", ""),
            ("x/node_modules/g.py", ""),
            ("x/build/h.py", ""),
        ];
        check(&tree, &[], Extent::Folder, &[".github/e.py", "a.py", "b.ipynb", "pkg/d.py"]);
    }

    #[test]
    fn gitignore_counts_without_a_repository() {
        let tree = [(".gitignore", "gen_*.py\n/data\n"), ("gen_a.py", ""), ("data/b.py", ""), ("c.py", "")];
        check(&tree, &[], Extent::Folder, &["c.py"]);
    }

    #[test]
    fn patterns_of_the_user_leave_out_files_and_folders() {
        let tree = [("a.py", ""), ("tests/b.py", ""), ("x/tests/c.py", ""), ("x/d_pb2.py", "")];
        check(&tree, &["tests", "*_pb2.py"], Extent::Folder, &["a.py"]);
        check(&tree, &["/tests", "!x"], Extent::Folder, &["a.py", "x/d_pb2.py", "x/tests/c.py"]);
    }

    #[test]
    fn beside_a_lone_script_only_scripts_and_packages_count() {
        let tree =
            [("a.py", ""), ("pkg/__init__.py", ""), ("pkg/sub/b.py", ""), ("other/c.py", ""), ("d.py", "")];
        check(&tree, &[], Extent::Scripts, &["a.py", "d.py", "pkg/__init__.py", "pkg/sub/b.py"]);
    }
}
