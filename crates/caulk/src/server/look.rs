//! One look at everything that is open, on a thread of its own.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use super::convert::{self, Shown};
use super::position::Encoding;
use crate::check::{Buffers, targets};
use crate::cli::{FileArgs, RuleArgs};

/// What is to be looked at.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    /// Counts changes.
    pub(super) generation: u64,
    /// The folder that the editor works in.
    pub(super) folder: Utf8PathBuf,
    /// Texts of open files.
    pub(super) buffers: BTreeMap<Utf8PathBuf, String>,
    pub(super) encoding: Encoding,
}

/// What was seen.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) generation: u64,
    /// Findings of every open file.
    pub(super) files: BTreeMap<Utf8PathBuf, Vec<Shown>>,
    /// Why nothing could be looked at.
    pub(super) error: Option<String>,
}

/// Looks at the projects of all open files.
pub(super) fn look(snapshot: &Snapshot) -> Seen {
    let files = snapshot.buffers.keys().map(|path| (path.clone(), Vec::new())).collect();
    let mut seen = Seen { generation: snapshot.generation, files, error: None };
    if let Err(error) = fill(snapshot, &mut seen) {
        seen.error = Some(format!("{error:#}"));
    }
    seen
}

fn fill(snapshot: &Snapshot, seen: &mut Seen) -> anyhow::Result<()> {
    let bytes = |(path, text): (&Utf8PathBuf, &String)| (path.clone(), text.clone().into_bytes());
    let buffers: Buffers = snapshot.buffers.iter().map(bytes).collect();
    let paths: Vec<Utf8PathBuf> = buffers.keys().filter(|path| path.exists()).cloned().collect();
    // An editor opens what a person only wants to read, too.
    let files = FileArgs { force_exclude: true, ..FileArgs::default() };
    for project in targets(&snapshot.folder, &paths, &RuleArgs::default(), &files, &buffers)? {
        let found = project.check(None).outcome;
        for diagnostic in &found.diagnostics {
            let shown = convert::finding(diagnostic, &project, snapshot.encoding);
            if let Some((path, shown)) = shown {
                seen.files.entry(path).or_default().push(shown);
            }
        }
        for (path, shown) in convert::notices(&found.notices, &project, snapshot.encoding) {
            seen.files.entry(path).or_default().push(shown);
        }
    }
    seen.files.retain(|path, _| snapshot.buffers.contains_key(path));
    Ok(())
}
