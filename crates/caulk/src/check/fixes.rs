//! Fixes on disk: applied to texts, shown as a patch, written where the file is still what was read.
//!
//! What is written stays in the project: a file that is reached through a link which leads out of it is left alone, and
//! its findings stay findings.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::{Applied, Refused, Texts};
use caulk_core::{Applicability, LeakClass, Problem, shown_name};
use caulk_source::Document;

use super::baseline::Known;
use super::rewrite::rewrite;
use super::{Found, Project, link, patch};

/// What fixes make of a project.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The findings that are left.
    pub(crate) found: Found,
    /// What could not be done.
    pub(crate) problems: Vec<Problem>,
    /// Files that have fixes and stay as they are, and why.
    pub(crate) left: Vec<Problem>,
    /// A file could not be written.
    pub(crate) failed: bool,
    applied: Vec<Applied>,
    files: Vec<Change>,
}

/// One changed file.
#[derive(Debug)]
struct Change {
    old: Document,
    file: String,
    shown: String,
    before: String,
    after: String,
}

impl Changes {
    /// Applies fixes to the texts of a project, which is then as if it had been read so.
    pub(crate) fn make(
        project: &mut Project,
        directory: &Utf8Path,
        most: Applicability,
        known: Option<&Known>,
    ) -> Self {
        let texts: Texts =
            project.documents.iter().map(|(file, document)| (file.clone(), document.text.clone())).collect();
        let original = project.documents.clone();
        let leave = led_out(project, directory);
        let names: BTreeSet<String> = leave.keys().cloned().collect();
        let mut look = |texts: &Texts| {
            project.set(texts);
            project.check(known)
        };
        let fixed = caulk_check::fix(texts, most, &names, &mut look, |found| &found.outcome.diagnostics);
        let stays = |file: &String| {
            let real = shown_name(leave[file].as_str());
            let message = format!(
                "it stays as it is: a link leads out of the project, to `{real}`; name its folder to fix it"
            );
            Problem::of_file(project.names.shown(file), message)
        };
        let left: Vec<Problem> = fixed.left.iter().map(stays).collect();
        let mut changes = Self {
            found: fixed.last,
            problems: fixed.refused.iter().map(|refused| refusal(refused, project)).collect(),
            left,
            failed: false,
            applied: fixed.applied,
            files: Vec::new(),
        };
        for (file, old) in original {
            if let Some(text) = fixed.texts.get(&file).filter(|text| **text != old.text) {
                let shown = project.names.shown(&file);
                changes.add(file, old, text, shown);
            }
        }
        changes
    }

    fn add(&mut self, file: String, old: Document, text: &str, shown: String) {
        match (old.with(&old.text), old.with(text)) {
            (Some(before), Some(after)) => {
                self.files.push(Change { old, file, shown, before, after });
            }
            _ => self
                .problems
                .push(Problem::of_file(shown, "the fixes do not fit its cells; it stays as it is")),
        }
    }

    /// Whether anything changes.
    pub(crate) fn any(&self) -> bool {
        !self.files.is_empty()
    }

    /// How many fixes were applied, by rule.
    pub(crate) fn applied(&self) -> BTreeMap<LeakClass, usize> {
        let mut counts = BTreeMap::new();
        for fix in &self.applied {
            *counts.entry(fix.class).or_default() += 1;
        }
        counts
    }

    /// All changes as one patch.
    pub(crate) fn diff(&mut self) -> String {
        let mut all = String::new();
        for change in &self.files {
            let patch = patch::new(&change.shown, &change.before, &change.after);
            if patch.written_out {
                let message = "its patch shows characters that steer a terminal or a log as `\\x1b`, so that it cannot be \
                               applied; --fix can";
                self.problems.push(Problem::of_file(&change.shown, message));
            }
            all.push_str(&patch.text);
        }
        all
    }

    /// The whole text of a file, changed or not.
    pub(crate) fn text(&self, path: &Utf8Path) -> Option<&str> {
        let change = self.files.iter().find(|change| change.old.path == path);
        change.map(|change| change.after.as_str())
    }

    /// Writes the changed files, each at once. What cannot be written is a problem; its fixes count as not applied, and
    /// its findings are left.
    pub(crate) fn write(&mut self, project: &mut Project, known: Option<&Known>) {
        let mut stay = Texts::new();
        for change in &self.files {
            if let Err(message) = change.write() {
                self.left.push(Problem::of_file(&change.shown, message));
                stay.insert(change.file.clone(), change.old.text.clone());
            }
        }
        if !stay.is_empty() {
            self.failed = true;
            self.applied.retain(|fix| fix.files.iter().all(|file| !stay.contains_key(file)));
            project.set(&stay);
            self.found = project.check(known);
        }
    }
}

/// Files that a link leads to from within the project and that are none of its own, with where they really are.
fn led_out(project: &Project, directory: &Utf8Path) -> BTreeMap<String, Utf8PathBuf> {
    let mut own: BTreeSet<Utf8PathBuf> = BTreeSet::new();
    let mut led: BTreeMap<String, Utf8PathBuf> = BTreeMap::new();
    for (file, document) in &project.documents {
        match link::target(directory, &document.path) {
            Some(real) => _ = led.insert(file.clone(), real),
            None => own.extend(document.path.canonicalize_utf8().ok()),
        }
    }
    led.retain(|_, real| !own.contains(real));
    led
}

impl Change {
    fn write(&self) -> Result<(), String> {
        let encoded = |text: &str| {
            self.old
                .encode(text)
                .ok_or_else(|| "its encoding lacks characters of a fix; it stays as it is".to_owned())
        };
        let failed =
            |error: std::io::Error| format!("failed to write the fixed file: {error}; it stays as it is");
        let real = self.old.path.canonicalize_utf8().map_err(failed)?;
        let written = rewrite(&real, &encoded(&self.before)?, &encoded(&self.after)?);
        written.map_err(|error| format!("{error}; it stays as it is"))
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use camino::Utf8PathBuf;

    use super::*;

    /// A file whose `old` becomes `new`.
    fn changes(path: &Utf8Path, bytes: &[u8], old: &str, new: &str) -> Changes {
        fs::write(path, bytes).unwrap();
        let document = Document::new(path, bytes).unwrap();
        let text = document.text.replace(old, new);
        let mut changes = Changes {
            found: Found::default(),
            problems: Vec::new(),
            left: Vec::new(),
            failed: false,
            applied: Vec::new(),
            files: Vec::new(),
        };
        let name = path.file_name().unwrap().to_owned();
        changes.add(name.clone(), document, &text, name);
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
        let changes = changes(&path, bytes, "[]", "deque()");
        assert_eq!((changes.files[0].write(), changes.problems), (Ok(()), Vec::new()));
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
        let changes = changes(&path, b"x = []\n", "[]", "()");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        changes.files[0].write().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn what_changed_meanwhile_stays() {
        let (_guard, folder) = in_folder();
        let path = folder.join("a.py");
        let changes = changes(&path, b"x = []\n", "[]", "()");
        fs::write(&path, "x = [1]\n").unwrap();
        assert!(changes.files[0].write().unwrap_err().contains("changed while"));
        assert_eq!(fs::read(&path).unwrap(), b"x = [1]\n");
    }
}
