//! Names of a manifest that lead to one and the same video.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use caulk_clip::place;

/// What makes two names one.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// Device and inode.
    File(u64, u64),
    /// Where there is no file, a URL say: the place without detours.
    Place(String),
}

/// For each video the number of the first one that is the same.
pub(crate) fn first_of_each(base: &str, videos: &[&str]) -> Vec<usize> {
    let mut seen = HashMap::new();
    let numbered = videos.iter().enumerate();
    numbered.map(|(number, video)| *seen.entry(identity(base, video)).or_insert(number)).collect()
}

fn identity(base: &str, video: &str) -> Identity {
    let place = place::locate(base, video);
    match std::fs::metadata(&place) {
        Ok(file) => Identity::File(file.dev(), file.ino()),
        Err(_) if place::is_url(&place) => Identity::Place(place),
        Err(_) => Identity::Place(without_detours(Utf8Path::new(&place)).into_string()),
    }
}

fn without_detours(path: &Utf8Path) -> Utf8PathBuf {
    let mut plain = Utf8PathBuf::new();
    for component in path.components() {
        let goes_back = component == Utf8Component::ParentDir;
        if !(goes_back && plain.file_name().is_some() && plain.pop()) {
            plain.push(component);
        }
    }
    plain
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_however_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_str().unwrap();
        std::fs::create_dir(folder.path().join("v")).unwrap();
        for name in ["v/0.mp4", "v/1.mp4"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("0.mp4", folder.path().join("v/link.mp4")).unwrap();
        let absolute = format!("{base}/v/0.mp4");
        let videos = ["v/0.mp4", "v/1.mp4", "./v/0.mp4", &absolute, "v/../v/0.mp4", "v/link.mp4"];
        assert_eq!(first_of_each(base, &videos), [0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn names_without_a_file_are_the_same_where_they_lead_to_one_place() {
        let videos = ["a.mp4", "./b/../a.mp4", "s3://x/a.mp4", "s3://x/a.mp4", "../a.mp4"];
        assert_eq!(first_of_each("/no/such", &videos), [0, 0, 2, 2, 4]);
    }
}
