//! `caulk clips` where there is nothing to decode with; what decodes is tested from Python, which makes the videos.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::process::Command;

use support::{Ended, Place};

#[test]
fn without_the_decoder_it_says_so() {
    let place = Place::new();
    place.write("videos.csv", "video_path\na.mp4\n");
    let alone = place.path("caulk");
    std::fs::copy(env!("CARGO_BIN_EXE_caulk"), &alone).expect("a copy of the command");
    for words in [&["decode", "a.mp4", "-o", "a.npy"][..], &["prepare", "videos.csv", "--out", "out"]] {
        let mut command = Command::new(&alone);
        command.arg("clips").args(words).current_dir(place.path("."));
        let ended = Ended::from(command.output().expect("the binary starts")).code(125);
        assert!(ended.err.contains("caulk was built without FFmpeg"), "{ended:#?}");
    }
    assert!(!place.path("out").exists());
}

#[test]
fn memory_and_disk_are_told_before() {
    let place = Place::new();
    place.write("videos.csv", "video_path,label\na.mp4,real\nb.mp4,fake\n");
    let words =
        ["clips", "estimate", "videos.csv", "--augment", "2", "--jobs", "2", "--output-format", "json"];
    let told = place.caulk(&words).code(0).json();
    assert_eq!(
        (told["clips"].as_u64(), told["bytes_per_clip"].as_u64()),
        (Some(6), Some(128 + 6 * 112 * 112 * 3))
    );
    // Whole blocks, and what log and tables say.
    assert_eq!(told["disk_bytes"].as_u64(), Some(6 * (56 * 4096 + 600)));
    assert!(told["memory"][1]["bytes"].as_u64() < Some(200_000_000), "{told}");
    let admitted = |told: &serde_json::Value| [0, 1, 2].map(|at| told["memory"][at]["admitted"] == true);
    assert_eq!(admitted(&told), [true; 3]);
    let told = place.caulk(&[&words[..], &["--memory", "250MB"]].concat()).code(0).json();
    assert_eq!(admitted(&told), [true, true, false]);
}

#[test]
fn a_manifest_that_cannot_be_used_says_where() {
    let place = Place::new();
    place.write("videos.csv", "video_path\na.mp4\na.mp4\n");
    let ended = place.caulk(&["clips", "estimate", "videos.csv"]).code(125);
    assert!(ended.err.contains("line 3: `a.mp4` is in line 2 already"), "{ended:#?}");
    let ended = place.caulk(&["clips", "split", "gone.csv", "--out", "x"]).code(125);
    assert!(ended.err.contains("failed to read `gone.csv`"), "{ended:#?}");
}
