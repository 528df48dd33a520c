//! What files are called: absolute on disk, relative in the analysis, short for people.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Names of one project's files.
///
/// The analysis resolves imports by paths, so its names are relative to one folder that holds the whole project. Where
/// the project lies below the working directory, these are the names that people see too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    directory: Utf8PathBuf,
    base: Utf8PathBuf,
}

impl Names {
    /// Names for the project in `root`, seen from the working `directory`; both absolute.
    pub fn new(directory: &Utf8Path, root: &Utf8Path) -> Self {
        let base = if root.starts_with(directory) { directory } else { root };
        Self { directory: directory.to_owned(), base: base.to_owned() }
    }

    /// What the analysis calls a file.
    pub fn internal(&self, file: &Utf8Path) -> String {
        file.strip_prefix(&self.base).unwrap_or(file).as_str().to_owned()
    }

    /// Where a file of the analysis lies.
    pub fn on_disk(&self, internal: &str) -> Utf8PathBuf {
        self.base.join(internal)
    }

    /// What people read: relative to the working directory where the file is below it, else absolute.
    pub fn shown(&self, internal: &str) -> String {
        let path = self.on_disk(internal);
        path.strip_prefix(&self.directory).unwrap_or(&path).as_str().to_owned()
    }
}

/// A path seen from a directory, without `.` and `..`, by its text alone.
pub fn absolute(directory: &Utf8Path, path: &Utf8Path) -> Utf8PathBuf {
    let mut clean = Utf8PathBuf::new();
    for part in directory.join(path).components() {
        match part {
            Utf8Component::CurDir => (),
            Utf8Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(directory: &str, root: &str, file: &str, internal: &str, shown: &str) {
        let names = Names::new(directory.into(), root.into());
        assert_eq!(names.internal(file.into()), internal);
        assert_eq!(names.shown(internal), shown);
        assert_eq!(names.on_disk(internal), file);
    }

    #[test]
    fn names_are_short_below_the_working_directory() {
        check("/srv", "/srv", "/srv/pkg/a.py", "pkg/a.py", "pkg/a.py");
        check("/srv", "/srv/job", "/srv/job/a.py", "job/a.py", "job/a.py");
        check("/srv/job/tools", "/srv/job", "/srv/job/tools/a.py", "tools/a.py", "a.py");
        check("/srv/job/tools", "/srv/job", "/srv/job/b.py", "b.py", "/srv/job/b.py");
        check("/home", "/srv", "/srv/a.py", "a.py", "/srv/a.py");
    }

    #[test]
    fn dots_are_taken_out() {
        assert_eq!(absolute("/a/b".into(), "../c/./d.py".into()), "/a/c/d.py");
        assert_eq!(absolute("/a".into(), ".".into()), "/a");
        assert_eq!(absolute("/".into(), "../x".into()), "/x");
    }
}
