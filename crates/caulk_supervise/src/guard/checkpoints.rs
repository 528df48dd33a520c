//! Checkpoints on disk: which files match, and whether each is whole.
//!
//! A file that a killed program was still writing is cut off. Archives of `torch.save`, safetensors and numpy say where
//! they end; of other files, emptiness is all that can be seen.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use caulk_guard::Checkpoint;

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

/// What lies at these paths or matches the pattern.
pub fn checkpoints(pattern: Option<&str>, paths: &[String]) -> Vec<Checkpoint> {
    let matches = pattern.and_then(|pattern| glob::glob(pattern).ok()).into_iter().flatten().flatten();
    let named = paths.iter().map(|path| Path::new(path).to_path_buf());
    let mut all: Vec<Checkpoint> = matches.chain(named).filter_map(|path| look(&path)).collect();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all.dedup_by(|a, b| a.path == b.path);
    all
}

/// Why a pattern is none, if it is none.
pub fn pattern_problem(pattern: &str) -> Option<String> {
    glob::Pattern::new(pattern).err().map(|error| error.to_string())
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
        let found = checkpoints(Some(&format!("{}/*", folder.path().display())), &[]);
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
        let path = folder.to_str().unwrap().to_owned();
        assert_eq!(checkpoints(None, std::slice::from_ref(&path)), []);
        fs::write(folder.join("state.json"), "{}").unwrap();
        assert!(checkpoints(None, std::slice::from_ref(&path))[0].complete);
        fs::write(folder.join("model.pt"), ZIP).unwrap();
        assert!(!checkpoints(None, &[path])[0].complete);
    }
}
