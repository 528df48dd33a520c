//! What may go, found without touching anything.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{CleanError, Request, kept, tracked};

/// Bytes of a block of `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

/// Why something stays that is not older than [`Request::older_than`].
pub const LATELY: &str = "it was written lately";

/// A file that may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Old {
    /// Relative to the root.
    pub path: Utf8PathBuf,
    /// Bytes on the disk that its removal frees: none where another name leads to the same file.
    pub bytes: u64,
}

/// Something that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Relative to the root.
    pub path: Utf8PathBuf,
    /// Why, to follow "kept: ".
    pub why: String,
}

/// What [`crate::remove`] would do.
#[derive(Debug, Clone, Default)]
pub struct Cleanup {
    /// The project's root, without links.
    pub root: Utf8PathBuf,
    /// Folders that were gone through, relative to the root: those asked for that are there, without any inside another.
    pub asked: Vec<Utf8PathBuf>,
    /// Files and links that may go, in order of their paths.
    pub old: Vec<Old>,
    /// Folders that will be empty then, the innermost first, relative to the root.
    pub folders: Vec<Utf8PathBuf>,
    /// What stays although it lies in one of the folders.
    pub kept: Vec<Kept>,
}

impl Cleanup {
    /// Bytes that removing everything frees.
    pub fn bytes(&self) -> u64 {
        self.old.iter().map(|old| old.bytes).sum()
    }

    /// Is there nothing that may go?
    pub fn is_empty(&self) -> bool {
        self.old.is_empty() && self.folders.is_empty()
    }

    /// Files that may go in one of the folders asked for.
    pub fn in_folder<'a>(&'a self, folder: &'a Utf8Path) -> impl Iterator<Item = &'a Old> {
        self.old.iter().filter(move |old| old.path.starts_with(folder))
    }

    /// Of one of the folders asked for: files that may go, and their bytes.
    pub fn of_folder(&self, folder: &Utf8Path) -> (usize, u64) {
        self.in_folder(folder).fold((0, 0), |(count, bytes), old| (count + 1, bytes + old.bytes))
    }
}

/// Finds what may go. Folders that do not exist are passed over.
///
/// # Errors
/// If a folder lies outside the project or is a link, or git cannot say what it tracks.
pub fn plan(request: &Request) -> Result<Cleanup, CleanError> {
    let unreadable = |cause| CleanError::Root { root: request.root.clone(), cause };
    let root = request.root.canonicalize_utf8().map_err(unreadable)?;
    let mut folders = Vec::new();
    for folder in &request.folders {
        let folder = inside(&root, folder)?;
        if root.join(&folder).is_dir() {
            folders.push(folder);
        }
    }
    let walk = Walk {
        tracked: tracked::files(&root, &folders)?,
        keep: patterns(&root, &request.keep)?,
        now: SystemTime::now(),
        older_than: request.older_than,
        plan: Cleanup { root, ..Cleanup::default() },
    };
    Ok(walk.run(&folders))
}

/// The folder relative to the root, with no link on the way.
fn inside(root: &Utf8Path, folder: &Utf8Path) -> Result<Utf8PathBuf, CleanError> {
    let outside = || CleanError::Outside { folder: folder.to_owned(), root: root.to_owned() };
    let relative =
        if folder.is_absolute() { folder.strip_prefix(root).map_err(|_| outside())? } else { folder };
    let mut clean = Utf8PathBuf::new();
    for component in relative.components() {
        match component {
            Utf8Component::Normal(name) => clean.push(name),
            Utf8Component::CurDir => continue,
            _ => return Err(outside()),
        }
        let link = root.join(&clean);
        if link.is_symlink() {
            return Err(CleanError::Link { link });
        }
    }
    if clean.as_str().is_empty() || clean.starts_with(".git") { Err(outside()) } else { Ok(clean) }
}

fn patterns(root: &Utf8Path, keep: &[String]) -> Result<Gitignore, CleanError> {
    let mut builder = GitignoreBuilder::new(root);
    for pattern in keep {
        let wrong =
            |error: ignore::Error| CleanError::Pattern { pattern: pattern.clone(), cause: error.to_string() };
        builder.add_line(None, pattern).map_err(wrong)?;
    }
    let wrong =
        |error: ignore::Error| CleanError::Pattern { pattern: keep.join(", "), cause: error.to_string() };
    builder.build().map_err(wrong)
}

struct Walk {
    tracked: BTreeSet<Utf8PathBuf>,
    keep: Gitignore,
    now: SystemTime,
    older_than: Duration,
    plan: Cleanup,
}

impl Walk {
    fn run(mut self, folders: &[Utf8PathBuf]) -> Cleanup {
        for folder in folders {
            // A folder inside another one was gone through with it.
            let inside = |other: &Utf8PathBuf| other != folder && folder.starts_with(other);
            if !folders.iter().any(inside) && !self.plan.asked.contains(folder) {
                self.folder(folder);
                self.plan.asked.push(folder.clone());
            }
        }
        self.plan.old.sort_by(|a, b| a.path.cmp(&b.path));
        self.plan.old.dedup();
        self.plan
    }

    /// Goes through a folder; true where nothing in it stays.
    fn folder(&mut self, folder: &Utf8Path) -> bool {
        let entries = match fs::read_dir(self.plan.root.join(folder)) {
            Ok(entries) => entries.flatten().collect::<Vec<DirEntry>>(),
            Err(error) => return self.stays(folder, format!("it cannot be read: {error}")),
        };
        if entries.iter().any(|entry| entry.file_name() == ".git") {
            return self.stays(folder, "a git repository of its own".into());
        }
        let mut empty = true;
        for entry in entries {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                empty = self.stays(folder, "a name in it is not Unicode".into());
                continue;
            };
            let path = folder.join(name);
            // Of the link itself, not of what it leads to.
            empty &= match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => self.folder(&path),
                Ok(metadata) => self.file(&path, &metadata),
                Err(error) => self.stays(&path, format!("it cannot be read: {error}")),
            };
        }
        if empty {
            self.plan.folders.push(folder.to_owned());
        }
        empty
    }

    /// Notes a file or link; true where it may go.
    fn file(&mut self, path: &Utf8Path, metadata: &Metadata) -> bool {
        if self.tracked.contains(path) {
            return self.stays(path, "git tracks it".into());
        }
        if let Some(kind) = kept::kind(path.file_name().unwrap_or_default()) {
            return self.stays(path, format!("it is {kind}"));
        }
        if self.keep.matched_path_or_any_parents(path, false).is_ignore() {
            return self.stays(path, "the settings keep it".into());
        }
        let age = metadata.modified().ok().and_then(|time| self.now.duration_since(time).ok());
        if age.unwrap_or_default() < self.older_than {
            return self.stays(path, LATELY.into());
        }
        let bytes = if metadata.nlink() > 1 { 0 } else { metadata.blocks() * BLOCK };
        self.plan.old.push(Old { path: path.to_owned(), bytes });
        true
    }

    fn stays(&mut self, path: &Utf8Path, why: String) -> bool {
        self.plan.kept.push(Kept { path: path.to_owned(), why });
        false
    }
}
