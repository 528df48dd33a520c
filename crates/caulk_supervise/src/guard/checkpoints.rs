//! Checkpoints on disk: which files match, and whether each is whole.
//!
//! A file that a killed program was still writing is cut off. Archives of `torch.save`, safetensors and numpy say where
//! they end; of other files, emptiness is all that can be seen.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use caulk_guard::{Checkpoint, choose};

/// End of a ZIP archive: its mark, and how far from the end of the file it may lie.
const ZIP: &[u8] = b"PK\x03\x04";
const ZIP_END: &[u8] = b"PK\x05\x06";
const ZIP_END_WITHIN: u64 = 66_000;

/// Longest header of safetensors, in bytes.
const LONGEST_HEADER: u64 = 100 << 20;

/// Names that files have before they are whole.
const UNFINISHED: [&str; 4] = [".tmp", ".part", ".partial", ".incomplete"];

/// Most files of one folder that are looked at.
const MOST_FILES: usize = 1000;

/// Where the checkpoints of a run are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoints {
    pattern: Option<String>,
    /// Paths that the program has told.
    told: Vec<String>,
    /// What was there before the run.
    old: Vec<Checkpoint>,
}

impl Checkpoints {
    /// Those that match a pattern with an absolute path. What lies there already is another run's, unless a word of the
    /// command names it: it would be wrong to go on with that.
    ///
    /// # Errors
    /// Why that is no pattern.
    pub fn matching(pattern: Option<String>, command: &[OsString]) -> Result<Self, String> {
        if let Some(pattern) = &pattern {
            glob::Pattern::new(pattern).map_err(|error| error.to_string())?;
        }
        let mut all = Self { pattern, ..Self::default() };
        let named = |one: &Checkpoint| {
            let name = one.path.rsplit('/').next().unwrap_or_default();
            command.iter().any(|word| word.to_string_lossy().contains(name))
        };
        all.old = all.find();
        all.old.retain(|one| !named(one));
        Ok(all)
    }

    /// The pattern.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }

    /// How many were there before the run, and are left alone.
    pub fn old(&self) -> usize {
        self.old.len()
    }

    /// Whether there is anything to be known of checkpoints.
    pub fn are_known(&self) -> bool {
        self.pattern.is_some() || !self.told.is_empty()
    }

    /// The program has told where one lies.
    pub fn learn(&mut self, path: &str) {
        if !path.is_empty() && !self.told.iter().any(|known| known == path) {
            self.told.push(path.to_owned());
        }
    }

    /// Those of this run, complete or not.
    pub fn find(&self) -> Vec<Checkpoint> {
        let matches = self.pattern().and_then(|pattern| glob::glob(pattern).ok());
        let told = self.told.iter().map(|path| Path::new(path).to_path_buf());
        let paths = matches.into_iter().flatten().flatten().chain(told);
        let mut all: Vec<Checkpoint> = paths.filter_map(|path| look(&path)).collect();
        all.retain(|one| !self.old.contains(one));
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all.dedup_by(|a, b| a.path == b.path);
        all
    }

    /// The newest complete one.
    pub fn newest(&self) -> Option<Checkpoint> {
        choose(&self.find(), None).cloned()
    }
}

fn look(path: &Path) -> Option<Checkpoint> {
    let data = fs::metadata(path).ok()?;
    let name = path.file_name()?.to_str()?;
    let unfinished = UNFINISHED.iter().any(|end| name.ends_with(end));
    let (modified_ns, whole) =
        if data.is_dir() { folder(path)? } else { (modified(&data), is_whole(path, &data)) };
    Some(Checkpoint { path: path.to_str()?.to_owned(), modified_ns, complete: whole && !unfinished })
}

/// Of a folder, the newest file counts, and each must be whole.
fn folder(path: &Path) -> Option<(u64, bool)> {
    let entries = fs::read_dir(path).ok()?.flatten().take(MOST_FILES);
    let mut newest = None;
    let mut whole = true;
    for entry in entries {
        let Ok(data) = fs::metadata(entry.path()) else { continue };
        if data.is_file() {
            newest = newest.max(Some(modified(&data)));
            whole &= data.len() == 0 || is_whole(&entry.path(), &data);
        }
    }
    newest.map(|newest| (newest, whole))
}

fn modified(data: &Metadata) -> u64 {
    (data.mtime() as u64).saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec() as u64)
}

fn is_whole(path: &Path, data: &Metadata) -> bool {
    data.len() > 0
        && File::open(path).and_then(|mut file| ends_well(path, &mut file, data.len())).unwrap_or(true)
}

fn ends_well(path: &Path, file: &mut File, length: u64) -> io::Result<bool> {
    let mut head = [0; 8];
    let read = file.read(&mut head)?;
    if head.starts_with(ZIP) {
        file.seek(SeekFrom::Start(length.saturating_sub(ZIP_END_WITHIN)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        return Ok(tail.windows(ZIP_END.len()).any(|window| window == ZIP_END));
    }
    if path.extension().is_some_and(|kind| kind == "safetensors") {
        return Ok(read == head.len() && safetensors_end(file, u64::from_le_bytes(head))? <= length);
    }
    Ok(true)
}

/// Where the last tensor ends: the highest number in the header's `data_offsets`.
fn safetensors_end(file: &mut File, header: u64) -> io::Result<u64> {
    let mut text = Vec::new();
    file.take(header.min(LONGEST_HEADER)).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let offsets = text.split("\"data_offsets\":[").skip(1).filter_map(|rest| {
        let (pair, _) = rest.split_once(']')?;
        pair.split_once(',')?.1.trim().parse::<u64>().ok()
    });
    Ok(8 + header + offsets.max().unwrap_or(0))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    fn check(name: &str, bytes: &[u8], expected: bool) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        let pattern = format!("{}/*", folder.path().display());
        let found = Checkpoints { pattern: Some(pattern), ..Checkpoints::default() }.find();
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].complete, expected, "{name}");
    }

    #[test]
    fn what_was_cut_off_is_not_whole() {
        let zip = [ZIP, &[7; 100], ZIP_END, &[0; 18]].concat();
        check("a.pt", &zip, true);
        check("a.pt", &zip[..60], false);
        check("a.pt.tmp", &zip, false);
        check("a.pt", b"", false);
        check("a.txt", b"anything", true);
    }

    #[test]
    fn safetensors_end_where_their_header_says() {
        let header = br#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let whole = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat();
        check("a.safetensors", &whole, true);
        check("a.safetensors", &whole[..whole.len() - 1], false);
    }

    #[test]
    fn a_folder_is_as_whole_as_its_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("checkpoint-5");
        fs::create_dir(&folder).unwrap();
        let mut all = Checkpoints::default();
        all.learn(folder.to_str().unwrap());
        assert_eq!(all.find(), []);
        fs::write(folder.join("state.json"), "{}").unwrap();
        assert!(all.newest().is_some());
        fs::write(folder.join("model.pt"), ZIP).unwrap();
        assert!(all.newest().is_none() && all.find().len() == 1);
    }

    #[test]
    fn what_another_run_has_left_is_not_taken() {
        let root = tempfile::tempdir().unwrap();
        let pattern = Some(format!("{}/*.txt", root.path().display()));
        let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
        write("old.txt", "1");
        write("given.txt", "1");
        let command = ["train", "--resume=given.txt"].map(OsString::from);
        let all = Checkpoints::matching(pattern.clone(), &command).unwrap();
        assert_eq!((all.old(), all.find().len()), (1, 1));
        let none = Checkpoints::matching(pattern, &[]).unwrap();
        assert_eq!(none.newest(), None);
        // Written again, it is this run's.
        let file = File::options().write(true).open(root.path().join("old.txt")).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(9)).unwrap();
        assert!(none.newest().is_some_and(|newest| newest.path.ends_with("old.txt")));
        assert!(Checkpoints::matching(Some("a/***".into()), &[]).is_err());
    }
}
