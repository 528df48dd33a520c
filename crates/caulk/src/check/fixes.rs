//! Fixes on disk: applied to texts, shown as a diff, written where the file is still what was read.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};

use camino::Utf8Path;
use caulk_check::{Refused, Texts};
use caulk_core::{Applicability, LeakClass, Problem};
use caulk_source::Document;
use similar::TextDiff;

use super::baseline::Known;
use super::{Found, Project};
use crate::files;

/// Lines around a change in a diff.
const CONTEXT: usize = 3;

/// What fixes make of a project.
#[derive(Debug)]
pub(crate) struct Changes {
    /// How many fixes were applied, by rule.
    pub(crate) applied: BTreeMap<LeakClass, usize>,
    /// What is left.
    pub(crate) left: Found,
    /// What could not be done.
    pub(crate) problems: Vec<Problem>,
    files: Vec<Change>,
}

/// One changed file.
#[derive(Debug)]
struct Change {
    old: Document,
    shown: String,
    before: String,
    after: String,
}

impl Changes {
    /// Applies fixes to the texts of a project, which is then as if it had been read so.
    pub(crate) fn make(project: &mut Project, most: Applicability, known: Option<&Known>) -> Self {
        let texts: Texts =
            project.documents.iter().map(|(file, document)| (file.clone(), document.text.clone())).collect();
        let original = project.documents.clone();
        let mut look = |texts: &Texts| {
            for (file, text) in texts {
                if let Some(document) =
                    project.documents.get_mut(file).filter(|document| document.text != *text)
                {
                    document.text.clone_from(text);
                }
            }
            project.check(known)
        };
        let fixed = caulk_check::fix(texts, most, &mut look, |found| &found.outcome.diagnostics);
        let mut changes = Self {
            applied: fixed.applied,
            left: fixed.last,
            problems: fixed.refused.iter().map(|refused| refusal(refused, project)).collect(),
            files: Vec::new(),
        };
        for (file, old) in original {
            if let Some(text) = fixed.texts.get(&file).filter(|text| **text != old.text) {
                changes.add(old, text, project.names.shown(&file));
            }
        }
        changes
    }

    fn add(&mut self, old: Document, text: &str, shown: String) {
        match (old.with(&old.text), old.with(text)) {
            (Some(before), Some(after)) => self.files.push(Change { old, shown, before, after }),
            _ => self
                .problems
                .push(Problem::of_file(shown, "the fixes do not fit its cells; it stays as it is")),
        }
    }

    /// Whether anything changes.
    pub(crate) fn any(&self) -> bool {
        !self.files.is_empty()
    }

    /// All changes as one patch.
    pub(crate) fn diff(&self) -> String {
        let diff = |change: &Change| {
            let diff = TextDiff::from_lines(&change.before, &change.after);
            let (old, new) = (format!("a/{}", change.shown), format!("b/{}", change.shown));
            diff.unified_diff().context_radius(CONTEXT).header(&old, &new).to_string()
        };
        self.files.iter().map(diff).collect()
    }

    /// The whole text of a file, changed or not.
    pub(crate) fn text(&self, path: &Utf8Path) -> Option<&str> {
        let change = self.files.iter().find(|change| change.old.path == path);
        change.map(|change| change.after.as_str())
    }

    /// Writes the changed files, each at once; what cannot be written is a problem.
    pub(crate) fn write(&mut self) {
        for change in &self.files {
            if let Err(message) = change.write() {
                self.problems.push(Problem::of_file(&change.shown, message));
            }
        }
    }
}

impl Change {
    fn write(&self) -> Result<(), String> {
        let path = &self.old.path;
        let encoded = |text: &str| {
            self.old
                .encode(text)
                .ok_or_else(|| "its encoding lacks characters of a fix; it stays as it is".to_owned())
        };
        let failed = |error: std::io::Error| format!("failed to write the fixed file: {error}");
        if fs::read(path).map_err(failed)? != encoded(&self.before)? {
            return Err("it was changed while it was looked at; it stays as it is".to_owned());
        }
        // Replacing a file would get around its being read-only.
        OpenOptions::new().write(true).open(path).map_err(failed)?;
        files::write(path, encoded(&self.after)?).map_err(|error| error.to_string())
    }
}

fn refusal(refused: &Refused, project: &Project) -> Problem {
    Problem {
        file: project.names.shown(&refused.file),
        line: Some(refused.line),
        column: None,
        message: format!("the fix for `{}` does not fit; it was not applied", refused.class),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use camino::Utf8PathBuf;

    use super::*;

    /// A file whose `old` becomes `new`.
    fn changes(path: &Utf8Path, bytes: &[u8], old: &str, new: &str) -> Changes {
        fs::write(path, bytes).unwrap();
        let document = Document::new(path, bytes).unwrap();
        let text = document.text.replace(old, new);
        let (applied, left) = (BTreeMap::new(), Found::default());
        let mut changes = Changes { applied, left, problems: Vec::new(), files: Vec::new() };
        changes.add(document, &text, path.file_name().unwrap().to_owned());
        changes
    }

    fn in_folder() -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        (guard, path)
    }

    fn check(name: &str, bytes: &[u8], expected: &[u8]) {
        let (_guard, folder) = in_folder();
        let path = folder.join(name);
        let mut changes = changes(&path, bytes, "[]", "deque()");
        changes.write();
        assert_eq!(changes.problems, []);
        assert_eq!(fs::read(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn files_keep_how_they_are_written() {
        check("a.py", b"x = []\r\ny = 1\r\n", b"x = deque()\r\ny = 1\r\n");
        check("a.py", b"\xef\xbb\xbfx = []", b"\xef\xbb\xbfx = deque()");
        check("a.py", b"# coding: latin-1\n'\xe4'\nx = []\n", b"# coding: latin-1\n'\xe4'\nx = deque()\n");
        let notebook = |code: &str| {
            format!(
                r#"{{"cells":[{{"cell_type":"code","outputs":[1.0],"source":["%cd a\n","x = {code}"]}}],"metadata":{{}}}}"#
            )
        };
        check("a.ipynb", notebook("[]").as_bytes(), notebook("deque()").as_bytes());
    }

    #[test]
    fn permissions_stay() {
        let (_guard, folder) = in_folder();
        let path = folder.join("a.py");
        let mut changes = changes(&path, b"x = []\n", "[]", "()");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        changes.write();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn what_changed_meanwhile_stays() {
        let (_guard, folder) = in_folder();
        let path = folder.join("a.py");
        let mut changes = changes(&path, b"x = []\n", "[]", "()");
        fs::write(&path, "x = [1]\n").unwrap();
        changes.write();
        assert!(changes.problems[0].message.contains("changed while"));
        assert_eq!(fs::read(&path).unwrap(), b"x = [1]\n");
    }

    #[test]
    fn a_diff_is_a_patch() {
        let (_guard, folder) = in_folder();
        let changes = changes(&folder.join("a.py"), b"a\nx = []\nb", "[]", "()");
        let expected = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n a\n-x = []\n+x = ()\n b\n\\ No newline at end of file\n";
        assert_eq!(changes.diff(), expected);
    }
}
