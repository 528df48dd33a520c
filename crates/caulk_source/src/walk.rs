//! The files of a project.

use std::fs;
use std::io;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::Problem;

use crate::excluded::{self, Excludes};
use crate::ignored::Rules;
use crate::roots::{Extent, ProjectRoot};

/// Absolute paths of a project's Python files and notebooks, sorted; folders that cannot be read are problems.
pub fn files(root: &ProjectRoot, excludes: &Excludes) -> (Vec<Utf8PathBuf>, Vec<Problem>) {
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
        // A folder that is ignored as a whole was named: the rules above it do not reach into it.
        let reach = !excluded::by_git(folder);
        let mut unread = Vec::new();
        let rules = Rules::above(folder.as_std_path(), reach, &mut unread);
        // Names below it need not be UTF-8.
        let mut folders = vec![(folder.as_std_path().to_owned(), rules)];
        while let Some((folder, rules)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.problem(&folder, format!("failed to read: {error}"));
                    continue;
                }
            };
            let rules = rules.enter(&folder, &mut unread);
            for entry in entries {
                match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?.is_dir()))) {
                    Ok((path, is_folder)) if left_out(&path, is_folder, excludes, &rules) => (),
                    Ok((path, true)) => folders.push((path, rules.clone())),
                    Ok((path, false)) => self.take(&path),
                    Err(error) => self.problem(&folder, format!("failed to read: {error}")),
                }
            }
        }
        for (file, error) in unread {
            self.problem(&file, format!("its rules are not known: {error}"));
        }
    }

    fn take(&mut self, path: &Path) {
        match Utf8Path::from_path(path) {
            Some(path) if is_source(path) => self.files.push(path.to_owned()),
            Some(_) => (),
            None => {
                let shown = path.to_string_lossy();
                if is_python(Utf8Path::new(&shown)) {
                    self.problem(path, "the name is not UTF-8".to_owned());
                }
            }
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
            } else if is_source(&path) && !excludes.matches(&path, false) {
                self.files.push(path);
            }
        }
    }

    fn problem(&mut self, path: &Path, message: String) {
        self.problems.push(Problem::of_file(path.to_string_lossy(), message));
    }
}

/// Whether something is to be looked at as Python: by its name a file of Python, and no folder. What is there in place
/// of a file is found out when it is read. A link to nothing is nothing: editors mark open files so.
fn is_source(path: &Utf8Path) -> bool {
    let there = |path: &Utf8Path| match fs::metadata(path) {
        Ok(found) => !found.is_dir(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    is_python(path) && there(path)
}

fn left_out(path: &Path, folder: bool, excludes: &Excludes, rules: &Rules) -> bool {
    let by_name = folder && path.file_name().is_some_and(|name| excluded::by_name(&name.to_string_lossy()));
    let excluded = Utf8Path::from_path(path).is_some_and(|path| excludes.matches(path, folder));
    by_name || excluded || rules.ignore(path, folder)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
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
        let (files, problems) = files(&ProjectRoot { folder: top.clone(), extent }, &excludes);
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
