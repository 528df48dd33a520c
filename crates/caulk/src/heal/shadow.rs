//! A copy of a project in which a program runs: Python files, notebooks and small files are copied, and all others are links
//! to the originals. In an overlay, only Python files and notebooks are copied.
//!
//! What the program writes lands in the copy. Only a large file that it changes in place is changed through its link, if there
//! is no overlay, and that is noticed ([`Shadow::written_through`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::Texts;
use caulk_source::{Document, Extent, ProjectRoot};
use caulk_supervise::Overlay;

use super::place::{self, RunPlace};
use crate::check::rewrite;

/// More entries than this are no project but somebody's data.
const MOST_ENTRIES: usize = 100_000;

/// Files of up to this size are copied, as long as all copies together stay below the second one. In bytes.
const SMALL: u64 = 1 << 20;
const MOST_COPIED: u64 = 64 << 20;

/// Folders that are one link: what lies in them belongs to tools.
const WHOLE: [&str; 8] =
    [".git", ".hg", ".tox", ".nox", "node_modules", "site-packages", ".mypy_cache", ".ruff_cache"];

/// Folders that no copy has: those of caulk, and Python's caches.
const LEFT_OUT: [&str; 2] = [".caulk", CACHE];

const CACHE: &str = "__pycache__";

/// A Python file or notebook of the project.
#[derive(Debug)]
pub(crate) struct Source {
    /// Below the project's folder.
    pub(crate) path: Utf8PathBuf,
    pub(crate) document: Document,
    pub(crate) bytes: Vec<u8>,
}

impl Source {
    /// What can be edited: the file by its name, each cell of a notebook by its own name.
    fn texts(&self, name: &str) -> Vec<(String, String)> {
        if self.is_notebook() {
            let cells = self.document.cell_texts().into_iter();
            return cells.map(|(number, text)| (cell_name(name, number), text)).collect();
        }
        vec![(name.to_owned(), self.document.text.clone())]
    }

    /// The whole file with edits; `None` if it has none.
    pub(crate) fn edited(&self, name: &str, texts: &Texts) -> Option<Edited> {
        let own = self.texts(name);
        if own.iter().all(|(name, text)| texts.get(name).is_none_or(|new| new == text)) {
            return None;
        }
        let text = if self.is_notebook() {
            self.document.with_cells(|number| texts.get(&cell_name(name, number)).map(String::as_str))
        } else {
            texts.get(name)?.clone()
        };
        let whole = self.document.with(&text);
        let bytes = whole.as_ref().and_then(|whole| self.document.encode(whole));
        Some(Edited { whole, bytes })
    }

    fn is_notebook(&self) -> bool {
        self.path.extension() == Some("ipynb")
    }
}

/// As reports name a cell: `fit.ipynb:cell 3`.
fn cell_name(notebook: &str, number: u32) -> String {
    format!("{notebook}:cell {number}")
}

/// A file with edits.
#[derive(Debug)]
pub(crate) struct Edited {
    /// `None` if its cells cannot hold the text.
    pub(crate) whole: Option<String>,
    /// `None` if its encoding cannot hold it.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Shows that a file was written to.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: (i64, i64),
}

/// A project, as it was found, and the place of its copy.
#[derive(Debug)]
pub(crate) struct Shadow {
    /// The project's folder.
    pub(crate) root: Utf8PathBuf,
    /// The working directory, in the project.
    directory: Utf8PathBuf,
    /// Where the copy is made; the project's folder if the program runs in place.
    place: Utf8PathBuf,
    overlay: Option<Overlay>,
    folders: Vec<Utf8PathBuf>,
    /// Small files, which are copied as they are.
    copies: Vec<Utf8PathBuf>,
    copied: u64,
    /// Files and folders that are links in the copy.
    links: BTreeMap<Utf8PathBuf, Option<Stamp>>,
    /// Python files and notebooks by the name that reports of runs in the copy give them.
    pub(crate) sources: BTreeMap<String, Source>,
}

impl Shadow {
    /// The folder of the project around a working directory.
    pub(crate) fn root(directory: &Utf8Path) -> Utf8PathBuf {
        let project = ProjectRoot::of(directory, directory);
        let home = std::env::var("HOME").unwrap_or_default();
        match project.extent {
            Extent::Folder if project.folder != home.as_str() && project.folder != "/" => project.folder,
            Extent::Package(_) => project.folder,
            _ => directory.to_owned(),
        }
    }

    /// Reads the project around a working directory; `place` is where it will run.
    ///
    /// # Errors
    /// If the folder cannot be read, or holds more than a project does.
    pub(crate) fn read(directory: &Utf8Path, place: &RunPlace) -> anyhow::Result<Self> {
        let root = Self::root(directory);
        let mut shadow = Self {
            root: root.clone(),
            directory: directory.to_owned(),
            place: place.folder().unwrap_or(&root).to_owned(),
            overlay: match place {
                RunPlace::Overlay(overlay) => Some(overlay.clone()),
                _ => None,
            },
            folders: Vec::new(),
            copies: Vec::new(),
            copied: 0,
            links: BTreeMap::new(),
            sources: BTreeMap::new(),
        };
        shadow.walk(Utf8Path::new(""))?;
        Ok(shadow)
    }

    fn walk(&mut self, below: &Utf8Path) -> anyhow::Result<()> {
        let folder = self.root.join(below);
        let entries = folder.read_dir_utf8().with_context(|| format!("failed to read `{folder}`"))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("failed to read `{folder}`"))?;
            let (name, path) = (entry.file_name(), below.join(entry.file_name()));
            let kind = entry.file_type().with_context(|| format!("failed to read `{}`", entry.path()))?;
            if self.entries() >= MOST_ENTRIES {
                bail!(
                    "`{}` has more than {MOST_ENTRIES} files: too many for a copy of links\n\
                     hint: keep the data outside of the project, and start caulk in the project's folder",
                    self.root
                );
            }
            let own = self.place != self.root && self.place.starts_with(entry.path()) && below == "";
            if kind.is_dir() && LEFT_OUT.contains(&name) || own {
                continue;
            }
            let whole = || WHOLE.contains(&name) || entry.path().join("pyvenv.cfg").exists();
            if kind.is_dir() && !whole() {
                self.folders.push(path.clone());
                self.walk(&path)?;
            } else if kind.is_file() {
                self.take_file(path);
            } else if kind.is_dir() || kind.is_symlink() {
                self.links.insert(path, None);
            }
        }
        Ok(())
    }

    fn entries(&self) -> usize {
        self.folders.len() + self.links.len() + self.copies.len() + self.sources.len()
    }

    fn take_file(&mut self, path: Utf8PathBuf) {
        if matches!(path.extension(), Some("py" | "ipynb")) && self.take(&path) {
            return;
        }
        // A notebook is copied, however large its pictures are.
        if path.extension() == Some("ipynb") {
            self.copies.push(path);
            return;
        }
        let stamp = stamp(&self.root.join(&path));
        match stamp.as_ref().map(|stamp| stamp.size).filter(|size| *size <= SMALL) {
            Some(size) if self.copied + size <= MOST_COPIED => {
                self.copied += size;
                self.copies.push(path);
            }
            _ => drop(self.links.insert(path, stamp)),
        }
    }

    /// Reads a Python file or notebook; false if it is no text that can be edited.
    fn take(&mut self, path: &Utf8Path) -> bool {
        let Ok(bytes) = fs::read(self.root.join(path)) else { return false };
        let Ok(document) = Document::new(&self.root.join(path), &bytes) else { return false };
        self.sources.insert(self.name(path), Source { path: path.to_owned(), document, bytes });
        true
    }

    /// The name that a report of a run in the copy gives to a file.
    fn name(&self, path: &Utf8Path) -> String {
        let whole = self.root.join(path);
        whole
            .strip_prefix(&self.directory)
            .map_or_else(|_| self.place.join(path), Utf8Path::to_owned)
            .into_string()
    }

    /// The sources as they are.
    pub(crate) fn texts(&self) -> Texts {
        self.sources.iter().flat_map(|(name, source)| source.texts(name)).collect()
    }

    /// Where the program runs.
    pub(crate) fn working_directory(&self) -> Utf8PathBuf {
        self.place.join(self.directory.strip_prefix(&self.root).unwrap_or(Utf8Path::new("")))
    }

    /// Makes the copy again, with these texts; nothing of an earlier run is left in it. If the program runs in place, the
    /// edits are taken back when the result is dropped.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn make(&self, texts: &Texts) -> anyhow::Result<InPlace> {
        if self.place == self.root {
            return self.edit(texts);
        }
        let made = match &self.overlay {
            Some(overlay) => self.cover(overlay, texts),
            None => self.build(texts),
        };
        made.with_context(|| {
            format!(
                "failed to copy the project to `{}`\nhint: make room there, or set CAULK_HOME to another disk",
                self.place
            )
        })?;
        Ok(InPlace::default())
    }

    /// Writes edits into the project itself.
    fn edit(&self, texts: &Texts) -> anyhow::Result<InPlace> {
        let mut in_place = InPlace::default();
        for (name, source) in &self.sources {
            let Some(edited) = source.edited(name, texts) else { continue };
            let Some(new) = edited.bytes else {
                bail!("the edits cannot be written in the encoding of `{}`", source.path)
            };
            let path = self.root.join(&source.path);
            rewrite::rewrite(&path, &source.bytes, &new)
                .with_context(|| format!("failed to edit `{path}`"))?;
            in_place.files.push((path, new, source.bytes.clone()));
        }
        Ok(in_place)
    }

    fn build(&self, texts: &Texts) -> io::Result<()> {
        match fs::remove_dir_all(&self.place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&self.place)?,
        }
        for folder in &self.folders {
            fs::create_dir(self.place.join(folder))?;
        }
        for path in self.links.keys() {
            symlink(self.root.join(path), self.place.join(path))?;
        }
        for path in &self.copies {
            match fs::copy(self.root.join(path), self.place.join(path)) {
                // Gone, or not for this user to read: the program fares as it would beside the original.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    symlink(self.root.join(path), self.place.join(path))?;
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.write_sources(texts)
    }

    /// Puts the sources on top of the project, without the caches of Python: an import leaves a trace again.
    fn cover(&self, overlay: &Overlay, texts: &Texts) -> io::Result<()> {
        place::clear(overlay)?;
        for folder in self.source_folders() {
            fs::create_dir_all(self.place.join(folder))?;
            if self.root.join(folder).join(CACHE).is_dir() {
                place::hide(&self.place.join(folder).join(CACHE))?;
            }
        }
        // Settings of the project, by which its sources are read after a run.
        for path in self.copies.iter().filter(|path| path.components().count() == 1) {
            fs::copy(self.root.join(path), self.place.join(path))?;
        }
        self.write_sources(texts)
    }

    fn source_folders(&self) -> BTreeSet<&Utf8Path> {
        self.sources.values().filter_map(|source| source.path.parent()).collect()
    }

    fn write_sources(&self, texts: &Texts) -> io::Result<()> {
        for (name, source) in &self.sources {
            let bytes = source.edited(name, texts).and_then(|edited| edited.bytes);
            let to = self.place.join(&source.path);
            fs::write(&to, bytes.as_ref().unwrap_or(&source.bytes))?;
            fs::set_permissions(&to, fs::metadata(self.root.join(&source.path))?.permissions())?;
        }
        Ok(())
    }

    /// For the supervisor.
    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    /// Whether a run has used a source of the project: named in the command, or imported.
    pub(crate) fn has_run(&self, command: &[OsString]) -> bool {
        let directory = self.working_directory();
        let is_source = |path: &Utf8Path| {
            let path = directory.join(path);
            path.starts_with(&self.place)
                && matches!(path.extension(), Some("py" | "ipynb"))
                && path.is_file()
        };
        let words: Vec<String> =
            self.words(command).iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let named = |word: &String| {
            let module = word.replace('.', "/");
            is_source(Utf8Path::new(word))
                || is_source(Utf8Path::new(&format!("{module}.py")))
                || is_source(Utf8Path::new(&format!("{module}/__main__.py")))
        };
        // Without caches, an import leaves no trace.
        let elsewhere = ["PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"];
        let untraced = self.place == self.root
            || elsewhere.iter().any(|name| std::env::var_os(name).is_some_and(|set| !set.is_empty()));
        let cached = |folder: &&Utf8Path| {
            let entries = self.place.join(folder).join(CACHE).read_dir();
            entries.is_ok_and(|mut entries| entries.next().is_some())
        };
        words.iter().skip(1).any(named) || untraced || self.source_folders().iter().any(cached)
    }

    /// A file of the project that a run has changed through its link.
    pub(crate) fn written_through(&self) -> Option<Utf8PathBuf> {
        if self.place == self.root || self.overlay.is_some() {
            return None;
        }
        let changed = |(path, before): &(&Utf8PathBuf, &Option<Stamp>)| {
            before.as_ref().is_some_and(|before| stamp(&self.root.join(path)).as_ref() != Some(before))
        };
        self.links.iter().find(changed).map(|(path, _)| self.root.join(path))
    }

    /// Why a file of a finding cannot be edited.
    pub(crate) fn why_not(&self, file: &str) -> String {
        let path = self.working_directory().join(file);
        let is_copy = path.starts_with(&self.place);
        let real = path.canonicalize_utf8().unwrap_or(path);
        if real.components().any(|part| matches!(part.as_str(), "site-packages" | "dist-packages")) {
            return format!("`{real}` is an installed package, which heal does not change");
        }
        if real.starts_with(&self.root) && !is_copy {
            return format!(
                "the program imports `{real}` and not its copy: it is installed there, or named by an absolute path; \
                 start it with PYTHONPATH, or heal with --in-place"
            );
        }
        if is_copy && real.starts_with(&self.root) {
            return format!("`{real}` is no Python file that can be edited");
        }
        format!("`{real}` is outside of the project `{}`", self.root)
    }

    /// The command with its paths leading to the copy. Paths that leave the project by `..` become absolute.
    pub(crate) fn words(&self, command: &[OsString]) -> Vec<OsString> {
        if self.place == self.root {
            return command.to_vec();
        }
        let program = command.first().map(|word| self.program(word));
        program.into_iter().chain(command.iter().skip(1).map(|word| self.word(word))).collect()
    }

    /// The program itself: its copy if it is a file of the project, not if it lies behind a link as an interpreter does.
    fn program(&self, word: &OsStr) -> OsString {
        let moved = word.to_str().and_then(|word| self.moved(Utf8Path::new(word)));
        let is_copy = |path: &Utf8PathBuf| {
            let below = path.strip_prefix(&self.place).unwrap_or(path);
            self.copies.iter().any(|copy| copy == below)
                || self.sources.values().any(|source| source.path == below)
        };
        moved.filter(is_copy).map_or_else(|| word.to_owned(), |moved| moved.into_string().into())
    }

    /// A file of the run, by a path from the working directory.
    pub(super) fn file(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.moved(path).unwrap_or_else(|| self.working_directory().join(path))
    }

    fn word(&self, word: &OsStr) -> OsString {
        let Some(text) = word.to_str() else { return word.to_owned() };
        let (option, path) = match text.split_once('=') {
            Some((option, path)) if option.starts_with('-') || !option.contains('/') => (Some(option), path),
            _ => (None, text),
        };
        let moved = self.moved(Utf8Path::new(path));
        match (moved, option) {
            (None, _) => word.to_owned(),
            (Some(moved), None) => moved.into_string().into(),
            (Some(moved), Some(option)) => format!("{option}={moved}").into(),
        }
    }

    /// Where a path of the command leads in the copy; `None` if it needs no change.
    fn moved(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        if path.is_absolute() {
            return path.strip_prefix(&self.root).ok().map(|below| self.place.join(below));
        }
        let leaves = path.components().any(|part| part.as_str() == "..");
        let whole =
            leaves.then(|| self.directory.join(path)).and_then(|path| path.canonicalize_utf8().ok())?;
        Some(whole.strip_prefix(&self.root).map_or_else(|_| whole.clone(), |below| self.place.join(below)))
    }
}

/// Edits that are in the project's files, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct InPlace {
    /// Path, contents with the edits, contents before.
    files: Vec<(Utf8PathBuf, Vec<u8>, Vec<u8>)>,
}

impl Drop for InPlace {
    fn drop(&mut self) {
        for (path, edited, before) in &self.files {
            // A file that the user has changed meanwhile is the user's.
            let _ = rewrite::rewrite(path, edited, before);
        }
    }
}

fn stamp(path: &Utf8Path) -> Option<Stamp> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(Stamp { size: found.size(), modified: (found.mtime(), found.mtime_nsec()) })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    /// A file of so many bytes that is not small.
    fn large(more: usize) -> Vec<u8> {
        vec![b'1'; usize::try_from(SMALL).unwrap() + more]
    }

    fn project() -> (tempfile::TempDir, Utf8PathBuf, Shadow) {
        let guard = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap().join("project");
        for (path, text) in [
            ("pyproject.toml", ""),
            ("lib/model.py", "x = 1\n"),
            ("job/train.py", "y = 2\n"),
            ("job/data.csv", "1"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        fs::write(root.join("job/data.bin"), large(1)).unwrap();
        fs::write(root.join("job/plots.ipynb"), large(1)).unwrap();
        let place = RunPlace::Copy(root.join(".caulk/heal/a/out"));
        let shadow = Shadow::read(&root.join("job"), &place).unwrap();
        (guard, root, shadow)
    }

    #[test]
    fn sources_are_copied_and_the_rest_is_read_through() {
        let (_guard, root, shadow) = project();
        let mut texts = shadow.texts();
        assert_eq!(texts.len(), 2);
        texts.insert("train.py".into(), "y = 3\n".into());
        let _ = shadow.make(&texts).unwrap();
        let copy = shadow.working_directory();
        assert_eq!(fs::read_to_string(copy.join("train.py")).unwrap(), "y = 3\n");
        assert_eq!(fs::read_to_string(root.join("job/train.py")).unwrap(), "y = 2\n");
        assert!(fs::symlink_metadata(copy.join("data.bin")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(copy.join("plots.ipynb")).unwrap().is_file());
        fs::write(copy.join("new.pt"), "").unwrap();
        fs::write(copy.join("data.csv"), "12").unwrap();
        assert_eq!(shadow.written_through(), None);
        assert_eq!(fs::read_to_string(root.join("job/data.csv")).unwrap(), "1");
        let _ = shadow.make(&texts).unwrap();
        assert!(!copy.join("new.pt").exists());
        assert_eq!(fs::read_to_string(copy.join("data.csv")).unwrap(), "1");
        fs::write(copy.join("data.bin"), large(2)).unwrap();
        assert_eq!(shadow.written_through(), Some(root.join("job/data.bin")));
    }

    #[test]
    fn edits_in_place_are_taken_back() {
        let (_guard, root, _) = project();
        let shadow = Shadow::read(&root.join("job"), &RunPlace::Project).unwrap();
        let mut texts = shadow.texts();
        texts.insert("train.py".into(), "y = 3\n".into());
        let train = || fs::read_to_string(root.join("job/train.py")).unwrap();
        let edited = shadow.make(&texts).unwrap();
        assert_eq!(train(), "y = 3\n");
        drop(edited);
        assert_eq!(train(), "y = 2\n");
        drop(shadow.make(&shadow.texts()).unwrap());
        assert_eq!(
            shadow.words(&["python".into(), root.join("job/train.py").into()])[1],
            root.join("job/train.py").as_os_str()
        );
    }

    #[test]
    fn a_command_that_imports_nothing_of_the_project_is_noticed() {
        let (_guard, _, shadow) = project();
        drop(shadow.make(&shadow.texts()).unwrap());
        let has_run = |words: &[&str]| shadow.has_run(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(has_run(&["python", "train.py"]) && has_run(&["python", "-m", "train"]));
        // Where caches are off, nobody can tell.
        let off = ["PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        assert_eq!(has_run(&["python", "-c", "import train"]), off);
        let cache = shadow.working_directory().join(CACHE);
        fs::create_dir(&cache).unwrap();
        fs::write(cache.join("train.pyc"), "").unwrap();
        assert!(has_run(&["python", "-c", "import train"]));
    }

    #[test]
    fn paths_of_the_command_lead_to_the_copy() {
        let (_guard, root, shadow) = project();
        let place = root.join(".caulk/heal/a/out");
        let check = |word: &str, expected: String| {
            assert_eq!(shadow.word(OsStr::new(word)), OsString::from(expected), "{word}");
        };
        check("train.py", "train.py".into());
        check("--lr=0.1", "--lr=0.1".into());
        check(root.join("job/train.py").as_str(), place.join("job/train.py").into_string());
        check(&format!("--out={root}/runs"), format!("--out={place}/runs"));
        check("../lib/model.py", place.join("lib/model.py").into_string());
        check("../..", root.parent().unwrap().to_string());
        let program = |word: &str| shadow.words(&[word.into()])[0].clone();
        assert_eq!(program(root.join("job/train.py").as_str()), place.join("job/train.py").as_os_str());
        assert_eq!(program("../lib/model.py"), place.join("lib/model.py").as_os_str());
        assert_eq!(program("/usr/bin/python3"), OsStr::new("/usr/bin/python3"));
        assert_eq!(program(root.join("job/data.bin").as_str()), root.join("job/data.bin").as_os_str());
    }
}
