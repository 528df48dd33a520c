//! A full disk: the program goes on, one warning, and what can be kept is kept.

use std::os::unix::fs::symlink;

use camino::Utf8Path;
use caulk_core::{Death, RunInfo};
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
        second.iter().for_each(|item| item.give(&mut writer));
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
        second.iter().for_each(|item| item.give(&mut writer));
        warnings += usize::from(writer.flush().is_err());
    }
    let death = Some(Death { code: None, signal: Some(9), kill: None, text: "killed".into() });
    warnings += usize::from(writer.finish(&RunInfo { death: death.clone(), ..info() }).is_err());
    assert_eq!(warnings, 1);
    let recording = read(&folder).unwrap();
    assert_eq!(recording.info.death, death);
    assert!(!recording.info.complete);
    let all = crate::story::events(&story);
    assert!(recording.events.len() > 500, "{} events", recording.events.len());
    assert!(recording.events.iter().all(|event| all.contains(event)));
}

#[test]
fn a_full_disk_does_not_cost_what_was_written_nor_the_end_of_the_run() {
    let guard = tempfile::tempdir().unwrap();
    let disk = guard.path().to_str().unwrap();
    let script = r#"mount -t tmpfs -o size=256k tmpfs "$1" || exit 77; shift; exec "$@""#;
    let test = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["-U", "-r", "-m", "sh", "-c", script, "sh", disk]).arg(test);
    command.args(["full_disk::recorder", "--exact", "--ignored", "--nocapture"]).env(FOLDER, disk);
    let Ok(output) = command.output() else {
        return; // No `unshare` here.
    };
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let refused = output.status.code() == Some(77) || error.starts_with("unshare:");
    assert!(refused || output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}
