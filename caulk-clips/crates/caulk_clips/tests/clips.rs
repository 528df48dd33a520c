//! The command where there is nothing to decode with; what decodes is tested from Python, which makes the videos.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The command in an empty folder.
struct Place {
    folder: tempfile::TempDir,
    command: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Alone: no worker lies beside it.
        let command = folder.path().join("caulk-clips");
        std::fs::copy(env!("CARGO_BIN_EXE_caulk-clips"), &command).expect("a copy of the command");
        Self { folder, command }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("a writable folder");
    }

    fn run(&self, words: &[&str], code: i32) -> (String, String) {
        let command = Command::new(&self.command).args(words).current_dir(self.folder.path()).output();
        let Output { status, stdout, stderr } = command.expect("the command starts");
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert_eq!(status.code(), Some(code), "{words:?}: {err}");
        (out.into_owned(), err.into_owned())
    }
}

#[test]
fn without_the_decoder_it_says_what_to_install() {
    let place = Place::new();
    place.write("videos.csv", "video_path\na.mp4\n");
    for words in [&["decode", "a.mp4", "-o", "a.npy"][..], &["prepare", "videos.csv", "--out", "out"]] {
        let (_, err) = place.run(words, 125);
        assert!(err.contains("hint: install caulk-clips as a whole"), "{err}");
    }
    assert!(!place.folder.path().join("out").exists());
}

#[test]
fn memory_and_disk_are_printed_before() {
    let place = Place::new();
    place.write("videos.csv", "video_path,label\na.mp4,real\nb.mp4,fake\n");
    let words = ["estimate", "videos.csv", "--augment", "2", "--jobs", "2", "--output-format", "json"];
    let estimate =
        |words: &[&str]| -> serde_json::Value { serde_json::from_str(&place.run(words, 0).0).expect("JSON") };
    let plain = estimate(&words);
    assert_eq!(
        (plain["clips"].as_u64(), plain["bytes_per_clip"].as_u64()),
        (Some(6), Some(128 + 6 * 112 * 112 * 3))
    );
    // Whole blocks, and the lines of log and tables.
    assert_eq!(plain["disk_bytes"].as_u64(), Some(6 * (56 * 4096 + 600)));
    assert!(plain["memory"][1]["bytes"].as_u64() < Some(200_000_000), "{plain}");
    let admitted =
        |estimate: &serde_json::Value| [0, 1, 2].map(|at| estimate["memory"][at]["admitted"] == true);
    assert_eq!(admitted(&plain), [true; 3]);
    let small = estimate(&[&words[..], &["--memory", "250MB"]].concat());
    assert_eq!(admitted(&small), [true, true, false]);
}

#[test]
fn a_manifest_that_cannot_be_used_says_where() {
    let place = Place::new();
    place.write("videos.csv", "video_path\na.mp4\na.mp4\n");
    let (_, err) = place.run(&["estimate", "videos.csv"], 125);
    assert!(err.contains("line 3: `a.mp4` is in line 2 already"), "{err}");
    let (_, err) = place.run(&["split", "gone.csv", "--out", "x"], 125);
    assert!(err.contains("failed to read `gone.csv`"), "{err}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let place = Place::new();
    place.write("videos.csv", "video_path\na.mp4\n");
    let line = "ulimit -f 0; exec ./caulk-clips estimate videos.csv > out";
    let ended = Command::new("sh").args(["-c", line]).current_dir(place.folder.path()).output();
    let Output { status, stderr, .. } = ended.expect("a shell");
    assert_eq!(status.code(), Some(125), "{status}: {}", String::from_utf8_lossy(&stderr));
}

#[test]
fn help_names_the_column_with_the_videos() {
    let place = Place::new();
    let (help, _) = place.run(&["prepare", "--help"], 0);
    assert!(help.contains("Usage: caulk clips prepare"), "{help}");
    assert!(help.contains("column `video_path`"), "{help}");
    let (help, _) = place.run(&["prepare", "-h"], 0);
    assert!(help.contains("with the column `video_path`"), "{help}");
}
