//! What packets have told of videos, kept in a folder that all workers share: the next one need not read them all.
//!
//! An entry is of one file as it is now: its path, size and times, which any change of it changes. Whatever goes wrong here, the
//! packets are read again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use caulk_clip::record::hex;
use caulk_clip::told::{Told, VERSION};
use sha2::{Digest, Sha256};

use crate::log;

/// Bytes of one of the sixteen parts of the folder.
const PART: u64 = 16 << 20;

/// The entry of a video; nothing is kept where there is no folder, or the file cannot be told from others.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    path: Option<PathBuf>,
    /// Bytes that the part of the folder may have.
    room: u64,
}

impl Entry {
    /// The one of a file.
    pub(crate) fn of(folder: Option<&str>, video: &str) -> Self {
        let path = folder.and_then(|folder| Some(Path::new(folder).join(name(video)?)));
        Self { path, room: PART }
    }

    /// What is known.
    pub(crate) fn read(&self) -> Option<Told> {
        parse(&fs::read_to_string(self.path.as_ref()?).ok()?)
    }

    /// Keeps it. Nothing is kept of a damaged video: its messages belong to each answer.
    pub(crate) fn write(&self, told: &Told) {
        if log::errors() == 0 {
            // A full disk, or a folder of somebody else's, costs time and nothing else.
            let _ = self.try_write(told);
        }
    }

    fn try_write(&self, told: &Told) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = text(told)?;
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder)?;
        make_room(folder, text.len() as u64, self.room)?;
        // Of this process and video: whoever else writes the same entry writes the same.
        let partial = path.with_extension(std::process::id().to_string());
        fs::write(&partial, text).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
            let _ = fs::remove_file(&partial);
        })
    }
}

/// As JSON, with a hash in front: what is damaged on the disk is told from what is not.
fn text(told: &Told) -> serde_json::Result<String> {
    let text = serde_json::to_string(told)?;
    Ok(format!("{} {text}", hash(&text)))
}

fn parse(text: &str) -> Option<Told> {
    let (expected, text) = text.split_once(' ')?;
    (hash(text) == expected).then(|| serde_json::from_str(text).ok()).flatten()
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

fn name(video: &str) -> Option<String> {
    let path = fs::canonicalize(video).ok()?;
    let data = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let times = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    let mut hash = Sha256::new();
    hash.update(format!("{VERSION} {} {} {times:?} ", crate::version(), data.size()));
    hash.update(path.as_os_str().as_encoded_bytes());
    let name = hex(&hash.finalize()[..16]);
    Some(format!("{}/{name}", &name[..1]))
}

/// Takes the oldest entries away until there is room for another one.
fn make_room(folder: &Path, more: u64, room: u64) -> io::Result<()> {
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Another worker may have taken it away.
        let Ok(data) = entry.metadata() else { continue };
        entries.push((data.modified()?, data.len(), entry.path()));
    }
    entries.sort_unstable();
    let mut all = more + entries.iter().map(|(_, size, _)| size).sum::<u64>();
    for (_, size, path) in entries {
        if all <= room {
            break;
        }
        let _ = fs::remove_file(path);
        all -= size;
    }
    if all <= room { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn told(total: u32, why: &str) -> Told {
        Told::Whole { why: why.into(), total }
    }

    #[test]
    fn an_entry_is_of_the_file_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (video, cache) = (folder.path().join("a.mkv"), folder.path().join("cache"));
        let entry = || Entry::of(cache.to_str(), video.to_str().unwrap());
        assert_eq!(entry().read(), None);
        fs::write(&video, "one").unwrap();
        entry().write(&told(1, ""));
        assert_eq!(entry().read(), Some(told(1, "")));
        fs::write(&video, "other").unwrap();
        assert_eq!(entry().read(), None);
        assert_eq!(Entry::of(None, video.to_str().unwrap()).read(), None);
    }

    #[test]
    fn what_is_damaged_is_not_read() {
        let text = text(&told(7, "no key frame")).unwrap();
        assert_eq!(parse(&text), Some(told(7, "no key frame")));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(parse(&String::from_utf8_lossy(&bytes)), None, "{at}");
            assert_eq!(parse(&text[..at]), None, "{at}");
        }
    }

    #[test]
    fn the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let entry = |number: u32| Entry { path: Some(folder.path().join(number.to_string())), room: 3000 };
        let large = "x".repeat(1000);
        for number in 0..5 {
            entry(number).write(&told(number, &large));
            let file = fs::File::options().write(true).open(entry(number).path.unwrap()).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number.into()))
                .unwrap();
        }
        let there: Vec<u32> = (0..5).filter(|number| entry(*number).read().is_some()).collect();
        assert_eq!(there, [3, 4]);
        entry(9).write(&told(9, &"x".repeat(3000)));
        assert_eq!(entry(9).read(), None);
    }
}
