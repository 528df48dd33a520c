//! Files that appear whole or not at all: written beside their place under a name that no other process uses, then moved.

use std::fs::{self, File};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};

use crate::shard::Shard;

/// The worker ends its names with the same.
const ENDING: &str = ".partial";

/// Where a file is written at first. Processes of two machines may have one number, but not one shard.
pub(crate) fn beside(path: &Utf8Path, shard: Shard) -> Utf8PathBuf {
    let Shard { index, count } = shard;
    format!("{path}.{index}-of-{count}.{}{ENDING}", std::process::id()).into()
}

/// Replaces a file of a set, which this shard alone writes to, by one that is on the disk.
///
/// # Errors
/// If the system refuses.
pub fn replace(path: &Utf8Path, shard: Shard, text: &str) -> io::Result<()> {
    let partial = beside(path, shard);
    let mut file = File::create(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&partial, path)
}

/// Removes what killed programs have left of tables and clips. Only for who is alone: others may be writing theirs.
pub(crate) fn sweep(folder: &Utf8Path) {
    let is_ours = |path: &Utf8PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.ends_with(ENDING) && ["metadata.", "clips", "failed"].iter().any(|start| name.starts_with(start))
    };
    let is_partial = |path: &Utf8PathBuf| path.as_str().ends_with(ENDING);
    let tables = entries(folder).filter(is_ours);
    let clips = entries(&folder.join("clips")).flat_map(|part| entries(&part)).filter(is_partial);
    for path in tables.chain(clips) {
        // What cannot be removed is in nobody's way.
        let _ = fs::remove_file(path);
    }
}

fn entries(folder: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> + use<> {
    folder.read_dir_utf8().into_iter().flatten().filter_map(|entry| Some(entry.ok()?.into_path()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn leftovers_go_and_everything_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let kept = ["metadata.csv", "clips/be/a.npy", "download.partial"];
        let left = [
            "metadata.csv.partial",
            "metadata.parquet.0-of-4.17.partial",
            "clips-0-of-4.jsonl.0-of-4.17.partial",
            "clips/be/a.npy.17.partial",
        ];
        fs::create_dir_all(folder.join("clips/be")).unwrap();
        kept.iter().chain(&left).for_each(|name| fs::write(folder.join(name), "").unwrap());
        sweep(folder);
        let is_there = |name: &&str| folder.join(name).exists();
        assert!(kept.iter().all(is_there) && !left.iter().any(is_there));
        sweep(&folder.join("missing"));
    }
}
