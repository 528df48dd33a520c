//! Folders that are made, refused, listed and found.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::RunInfo;
use caulk_record::{HomeError, ReadError, WriteError, Writer, home, list, new_run_folder, read, resolve};
use jiff::Zoned;

use crate::story::{folder, info, record, seconds};

fn home_folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let home = Utf8Path::from_path(guard.path()).unwrap().join("project/.caulk");
    (guard, home)
}

fn now(minute: u32) -> Zoned {
    format!("2026-11-21T10:{minute:02}:00+01:00[Europe/Berlin]").parse().unwrap()
}

fn run(home: &Utf8Path, name: &str, minute: u32) -> Utf8PathBuf {
    let folder = new_run_folder(home, name, &now(minute)).unwrap();
    let head = RunInfo { started: now(minute).timestamp().to_string(), ..info() };
    Writer::create(&folder, &head).unwrap().finish(&head).unwrap();
    folder
}

#[test]
fn a_home_folder_hides_itself_from_git_and_others() {
    let (_guard, home) = home_folder();
    let folder = run(&home, "train", 0);
    assert_eq!(folder, home.join("runs/20261121-100000-train"));
    assert_eq!(fs::read_to_string(home.join(".gitignore")).unwrap(), "*\n");
    for path in [&home, &folder] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_home_folder_that_was_there_stays_as_it_is() {
    let (_guard, home) = home_folder();
    fs::create_dir_all(&home).unwrap();
    run(&home, "train", 0);
    assert!(!home.join(".gitignore").exists());
}

#[test]
fn names_are_unique_and_need_no_quoting() {
    let (_guard, home) = home_folder();
    let check =
        |name, id: &str| assert_eq!(new_run_folder(&home, name, &now(0)).unwrap().file_name(), Some(id));
    check("train", "20261121-100000-train");
    check("train", "20261121-100000-train-2");
    check("my model/train.py", "20261121-100000-my-model-train.py");
    check("../..", "20261121-100000-run");
    check("", "20261121-100000-run-2");
}

#[test]
fn home_is_where_the_variable_says() {
    let check = |variable, expected: &str| assert_eq!(home(Utf8Path::new("/srv"), variable), expected);
    check(None, "/srv/.caulk");
    check(Some(""), "/srv/.caulk");
    check(Some("/data"), "/data");
    check(Some("data"), "/srv/data");
}

#[test]
fn runs_are_listed_newest_first() {
    let (_guard, home) = home_folder();
    assert!(list(&home).unwrap().is_empty());
    let folders: Vec<Utf8PathBuf> =
        [("b", 1), ("a", 3), ("c", 2)].map(|(name, minute)| run(&home, name, minute)).into();
    fs::create_dir(home.join("runs/empty")).unwrap();
    fs::write(home.join("runs/file"), "").unwrap();
    let runs = list(&home).unwrap();
    let listed: Vec<&Utf8PathBuf> = runs.iter().map(|run| &run.folder).collect();
    assert_eq!(listed, [&folders[1], &folders[2], &folders[0]]);
    assert!(runs.iter().all(|run| run.bytes > 1000 && run.info.as_ref().unwrap().complete));
}

#[test]
fn a_run_is_found_by_path_id_or_a_part_of_it() {
    let (_guard, home) = home_folder();
    assert!(matches!(resolve(&home, "x"), Err(HomeError::Empty { .. })));
    let (train, eval, other) = (run(&home, "train", 1), run(&home, "eval", 2), run(&home, "retrain", 3));
    let check = |name: &str, folder: &Utf8Path| assert_eq!(resolve(&home, name).unwrap(), folder, "{name}");
    check("20261121-100100-train", &train);
    check("20261121-1002", &eval);
    check("eval", &eval);
    check("-train", &train);
    check("retrain", &other);
    check("300-re", &other);
    check(train.as_str(), &train);
    check(train.join("run.json").as_str(), &train);
    let error = resolve(&home, "train").unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "`train` fits 2 runs");
    assert!(lines[1].starts_with("20261121-100300-retrain  2026-11-21 "), "{error}");
    assert!(lines[2].starts_with("20261121-100100-train  2026-11-21 "), "{error}");
    assert_eq!(lines[3], "hint: write more of one of these names");
    let error = resolve(&home, "nothing").unwrap_err().to_string();
    assert!(
        error.starts_with("no run `nothing` in") && error.contains("hint: there is `20261121-100300"),
        "{error}"
    );
}

#[test]
fn a_folder_with_a_recording_is_not_written_over() {
    let (_guard, folder) = folder();
    drop(record(&folder, &seconds(3, 1)).unwrap());
    let before = read(&folder).unwrap();
    assert!(matches!(Writer::create(&folder, &info()), Err(WriteError::Occupied { .. })));
    assert_eq!(read(&folder).unwrap(), before);
}

/// `/proc` refuses for root too.
#[test]
fn a_folder_that_cannot_be_made_is_a_clear_error() {
    for folder in ["/proc/caulk/runs/x", "/proc/self/x", "/dev/null/runs/x"] {
        let error = Writer::create(Utf8Path::new(folder), &info()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(folder) && text.contains("hint: choose another with `--output DIR`"), "{text}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[test]
fn foreign_folders_are_told_apart() {
    let (_guard, folder) = folder();
    assert!(matches!(read(&folder), Err(ReadError::Open { .. })));
    fs::create_dir_all(&folder).unwrap();
    assert!(matches!(read(&folder), Err(ReadError::Foreign { .. })));
    fs::write(folder.join("run.json"), "[1]").unwrap();
    let recording = read(&folder).unwrap();
    assert_eq!((recording.info, recording.problems.len()), (RunInfo::default(), 1));
    fs::write(folder.join("run.json"), r#"{"schema": 999, "caulk": "7.0"}"#).unwrap();
    let error = read(&folder).unwrap_err().to_string();
    assert!(error.ends_with("hint: written by caulk 7.0; upgrade"), "{error}");
}

#[test]
fn a_recording_without_its_head_is_read() {
    let (_guard, folder) = folder();
    let story = seconds(3, 1);
    let writer = record(&folder, &story).unwrap();
    fs::remove_file(folder.join("run.json")).unwrap();
    let check = || {
        let recording = read(&folder).unwrap();
        assert_eq!(recording.info, RunInfo::default());
        assert_eq!(recording.problems.len(), 1);
        crate::story::assert_is(&recording, &story);
    };
    check();
    writer.finish(&info()).unwrap();
    fs::remove_file(folder.join("run.json")).unwrap();
    check();
}

/// A reader in another thread never misses an event that was taken before it began, nor sees one twice.
#[test]
fn readers_need_not_wait_for_the_recorder() {
    let (_guard, folder) = folder();
    let story = seconds(400, 1);
    let all = crate::story::events(&story);
    let mut writer = Writer::create(&folder, &info()).unwrap();
    let taken = std::sync::atomic::AtomicUsize::new(0);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for second in &story {
                for item in second {
                    item.give(&mut writer);
                }
                let events = crate::story::events(std::slice::from_ref(second)).len();
                taken.fetch_add(events, std::sync::atomic::Ordering::SeqCst);
                writer.flush().unwrap();
            }
            writer.finish(&info()).unwrap();
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        loop {
            let (at_least, last) = (
                taken.load(std::sync::atomic::Ordering::SeqCst),
                done.load(std::sync::atomic::Ordering::SeqCst),
            );
            let events = read(&folder).unwrap().events;
            assert!(events.len() >= at_least, "{} of {at_least}", events.len());
            assert!(events == all[..events.len()], "{} events have gaps", events.len());
            if last {
                break;
            }
        }
    });
}

#[test]
fn what_is_no_folder_cannot_be_listed() {
    let (_guard, home) = home_folder();
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("runs"), "").unwrap();
    let error = list(&home).unwrap_err();
    assert!(matches!(&error, HomeError::Unreadable { path, .. } if *path == home.join("runs")), "{error:?}");
    assert!(matches!(resolve(&home, "x"), Err(HomeError::Unreadable { .. })));
}
