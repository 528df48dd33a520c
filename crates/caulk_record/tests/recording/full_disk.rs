//! A full disk: the program goes on, one warning, and what can be kept is kept.

use std::os::unix::fs::symlink;

use camino::Utf8Path;
use caulk_core::{Death, Note, RunInfo};
use caulk_record::{WriteError, Writer, read};

use crate::story::{folder, info, seconds};

#[test]
fn a_table_that_cannot_be_written_costs_one_warning_and_no_event() {
    let (_guard, folder) = folder();
    let mut writer = Writer::create(&folder, &info()).unwrap();
    symlink("/dev/full", folder.join("census.arrows")).unwrap();
    let story = seconds(100, 5);
    let mut warnings = Vec::new();
    for second in &story {
        for item in second {
            item.give(&mut writer);
        }
        warnings.extend(writer.flush().err());
    }
    assert!(
        matches!(warnings.as_slice(), [WriteError::Write { path, .. }] if path.ends_with("census.arrows")),
        "{warnings:?}"
    );
    crate::story::assert_is(&read(&folder).unwrap(), &story);
    writer.finish(&info()).unwrap();
    let recording = read(&folder).unwrap();
    assert!(recording.info.complete);
    crate::story::assert_is(&recording, &story);
}

const FOLDER: &str = "CAULK_TEST_FULL";

/// Not a test of its own: runs on a small disk that only it sees.
#[test]
#[ignore = "started by the test below"]
fn recorder() {
    let Ok(path) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Utf8Path::new(&path).join("run");
    let mut writer = Writer::create(&folder, &info()).unwrap();
    let story = seconds(300, 1);
    let mut warnings = 0;
    for second in &story {
        for item in second {
            item.give(&mut writer);
        }
        warnings += usize::from(writer.flush().is_err());
    }
    let death =
        Some(Death { code: None, signal: Some(9), kill: None, text: "killed".into(), stopped: false });
    warnings += usize::from(writer.finish(&RunInfo { death: death.clone(), ..info() }).is_err());
    assert_eq!(warnings, 1);
    let recording = read(&folder).unwrap();
    assert_eq!(recording.info.death, death);
    assert!(!recording.info.complete);
    let all = crate::story::events(&story);
    assert!(recording.events.len() > 500, "{} events", recording.events.len());
    assert!(recording.events.iter().all(|event| all.contains(event)));
}

/// Not a test of its own, as above: there is room for the head and hardly more.
#[test]
#[ignore = "started by the test below"]
fn recorder_without_room() {
    let Ok(path) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Utf8Path::new(&path).join("run");
    let mut writer = Writer::create(&folder, &info()).unwrap();
    let mut warnings = 0;
    for second in &seconds(30, 1) {
        for item in second {
            item.give(&mut writer);
        }
        warnings += usize::from(writer.flush().is_err());
    }
    warnings += usize::from(writer.finish(&info()).is_err());
    assert_eq!(warnings, 1);
    let notes = read(&folder).unwrap().info.notes;
    assert!(notes.len() == 1 && notes[0].text.contains("could not be written"), "{notes:?}");
}

/// Not a test of its own, as above: the disk is full for a while.
#[test]
#[ignore = "started by the test below"]
fn recorder_of_a_disk_that_is_cleared() {
    let Ok(path) = std::env::var(FOLDER) else {
        return;
    };
    let (folder, ballast) = (Utf8Path::new(&path).join("run"), Utf8Path::new(&path).join("ballast"));
    let mut writer = Writer::create(&folder, &info()).unwrap();
    let story = seconds(100, 1);
    let mut warnings = 0;
    for (second, items) in story.iter().enumerate() {
        if second == 20 {
            // Fills what is left.
            let _ = std::io::copy(&mut std::io::repeat(1), &mut std::fs::File::create(&ballast).unwrap());
        }
        if second == 60 {
            std::fs::remove_file(&ballast).unwrap();
        }
        for item in items {
            item.give(&mut writer);
        }
        warnings += usize::from(writer.flush().is_err());
    }
    assert_eq!(warnings, 1);
    writer.finish(&info()).unwrap();
    let recording = read(&folder).unwrap();
    assert!(recording.info.complete);
    assert_eq!(recording.info.notes, Vec::<Note>::new());
    assert_eq!(recording.problems, Vec::<String>::new());
    assert!(recording.events == crate::story::events(&story));
    // What the ring could not take came thinned.
    let given = crate::story::samples(&story);
    assert!((given.len() / 2..given.len()).contains(&recording.samples.len()));
}

/// Runs a recorder on a disk of so many KiB that only it sees; nothing where the system does not allow that.
fn on_small_disk(recorder: &str, kib: u32) {
    let guard = tempfile::tempdir().unwrap();
    let disk = guard.path().to_str().unwrap();
    let script = format!(r#"mount -t tmpfs -o size={kib}k tmpfs "$1" || exit 77; shift; exec "$@""#);
    let test = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["-U", "-r", "-m", "sh", "-c", &script, "sh", disk]).arg(test);
    command.args([recorder, "--exact", "--ignored", "--nocapture"]).env(FOLDER, disk);
    let Ok(output) = command.output() else {
        return; // No `unshare` here.
    };
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let refused = output.status.code() == Some(77) || error.starts_with("unshare:");
    assert!(refused || output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}

#[test]
fn a_full_disk_does_not_cost_what_was_written_nor_the_end_of_the_run() {
    on_small_disk("full_disk::recorder", 256);
}

#[test]
fn what_there_is_no_room_for_is_told_of() {
    on_small_disk("full_disk::recorder_without_room", 16);
}

#[test]
fn a_disk_that_is_cleared_in_time_costs_no_event() {
    on_small_disk("full_disk::recorder_of_a_disk_that_is_cleared", 4096);
}
