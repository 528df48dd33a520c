//! Segments of shared memory that the run makes and leaves behind.
//!
//! A segment is a file in `/dev/shm`. One that was not there before the run belongs to it if a process of the run had it
//! open when somebody looked, or if its name says so: torch writes the process id into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::LeftSegment;

/// Segments that are told of.
const MOST: usize = 100;

/// What is known of the folder of shared memory.
#[derive(Debug)]
pub(crate) struct Segments {
    folder: Utf8PathBuf,
    /// There before the run.
    before: BTreeSet<String>,
    /// Made since, by a process of the run.
    own: BTreeSet<String>,
}

impl Segments {
    pub(crate) fn new(folder: &Utf8Path) -> Self {
        Self { folder: folder.to_owned(), before: names(folder).into_keys().collect(), own: BTreeSet::new() }
    }

    /// Looks which of the new segments these processes have open.
    pub(crate) fn look(&mut self, pids: impl Iterator<Item = u32>) {
        let unknown = |name: &String| !self.before.contains(name) && !self.own.contains(name);
        let new: BTreeSet<String> = names(&self.folder).into_keys().filter(unknown).collect();
        if new.is_empty() {
            return;
        }
        for pid in pids {
            let by_name = format!("torch_{pid}_");
            self.own.extend(new.iter().filter(|name| name.starts_with(&by_name)).cloned());
            let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
            let names = links.filter_map(|link| Some(Utf8Path::from_path(&link)?.to_owned()));
            let of_folder = names.filter(|link| link.parent() == Some(&self.folder));
            self.own.extend(
                of_folder
                    .filter_map(|link| link.file_name().map(str::to_owned))
                    .filter(|name| new.contains(name)),
            );
        }
    }

    /// Those of the run's own that are there still.
    pub(crate) fn left(&self) -> Vec<LeftSegment> {
        let left = names(&self.folder).into_iter().filter(|(name, _)| self.own.contains(name));
        left.take(MOST).map(|(name, bytes)| LeftSegment { name, bytes }).collect()
    }
}

/// Files in the folder, with the bytes that they have.
fn names(folder: &Utf8Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?)));
    files.filter(|(_, found)| found.is_file()).map(|(name, found)| (name, found.len())).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_of_the_run_has_open_and_does_not_remove_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let write = |name: &str| fs::File::create(folder.join(name)).unwrap();
        let _old = write("old");
        let mut segments = Segments::new(folder);
        let _held = write("held");
        drop(write("foreign"));
        let pid = std::process::id();
        drop(write(&format!("torch_{pid}_1_2")));
        drop(write(&format!("torch_{pid}9_1_2")));
        segments.look([pid].into_iter());
        fs::write(folder.join("held"), [0; 100]).unwrap();
        let left = segments.left();
        let told: Vec<(&str, u64)> = left.iter().map(|one| (one.name.as_str(), one.bytes)).collect();
        assert_eq!(told, [("held", 100), (format!("torch_{pid}_1_2").as_str(), 0)]);
        fs::remove_file(folder.join("held")).unwrap();
        assert_eq!(segments.left().len(), 1);
    }
}
