//! Waiting until a project changes.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use camino::Utf8PathBuf;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::Project;

/// Time without a change after which a burst of changes is over.
const QUIET: Duration = Duration::from_millis(100);

/// Watches the folders of some projects.
pub(crate) struct Watch {
    changes: Receiver<notify::Result<Event>>,
    watcher: RecommendedWatcher,
    folders: BTreeSet<Utf8PathBuf>,
}

impl Watch {
    /// Watches nothing yet.
    pub(crate) fn new() -> notify::Result<Self> {
        let (send, changes) = channel();
        Ok(Self { changes, watcher: notify::recommended_watcher(send)?, folders: BTreeSet::new() })
    }

    /// Watches the folders of projects, too, and says whether there were any that it did not watch yet: what was read
    /// from these may have changed meanwhile. Folders without files of a project are not watched: there may be very
    /// many.
    pub(crate) fn add(&mut self, projects: &[Project]) -> notify::Result<bool> {
        let wanted = folders(projects);
        let new: Vec<Utf8PathBuf> = wanted.difference(&self.folders).cloned().collect();
        for folder in &new {
            self.watcher.watch(folder.as_std_path(), RecursiveMode::NonRecursive)?;
        }
        let any = !new.is_empty();
        self.folders.extend(new);
        Ok(any)
    }

    /// Returns when a file has changed and no other change follows at once.
    pub(crate) fn wait(&self) {
        while let Ok(change) = self.changes.recv() {
            if matters(&change) {
                while self.changes.recv_timeout(QUIET).is_ok() {}
                return;
            }
        }
    }
}

fn folders(projects: &[Project]) -> BTreeSet<Utf8PathBuf> {
    let files = projects.iter().flat_map(|project| project.documents.values());
    let mut folders: BTreeSet<Utf8PathBuf> =
        files.filter_map(|document| document.path.parent()).map(ToOwned::to_owned).collect();
    // New packages begin in a folder above.
    let roots = projects.iter().map(|project| project.names.on_disk(""));
    folders.extend(roots.filter(|root| root.is_dir()));
    folders
}

/// Reading a file changes nothing, and caulk's own folder is none of the project's.
fn matters(change: &notify::Result<Event>) -> bool {
    let Ok(event) = change else { return true };
    let own = |path: &std::path::PathBuf| path.components().any(|part| part.as_os_str() == ".caulk");
    !matches!(event.kind, EventKind::Access(_)) && !event.paths.iter().all(own)
}
