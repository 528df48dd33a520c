//! What goes and what stays, in real folders.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clean::{CleanError, Request, plan, remove};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_hours(1);

/// A project with files of 10,000 bytes that were written a day ago.
struct Project(TempDir);

impl Project {
    fn with(files: &[&str]) -> Self {
        let project = Self(TempDir::new().unwrap());
        for file in files {
            project.write(file, 24 * HOUR);
        }
        project
    }

    fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    fn write(&self, file: &str, age: Duration) {
        let path = self.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![7; 10_000]).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    }

    fn request(&self, folders: &[&str]) -> Request {
        Request {
            root: self.root().to_owned(),
            folders: folders.iter().map(Utf8PathBuf::from).collect(),
            keep: Vec::new(),
            older_than: HOUR,
        }
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"];
        let done =
            Command::new("git").args(["-C", self.root().as_str()]).args(identity).args(arguments).output();
        assert!(done.unwrap().status.success(), "{arguments:?}");
    }

    fn has(&self, file: &str) -> bool {
        self.root().join(file).symlink_metadata().is_ok()
    }
}

#[test]
fn output_goes_and_what_runs_read_stays() {
    let files =
        ["runs/a/events.out", "runs/a/last.ckpt", "runs/b/clip.mp4", "runs/index.csv", "data/train.bin"];
    let project = Project::with(&files);
    let plan = plan(&project.request(&["runs", "logs"])).unwrap();
    assert_eq!(plan.old.iter().map(|old| old.path.as_str()).collect::<Vec<_>>(), files[..2]);
    // What a file takes on the disk is the file system's affair.
    let taken: u64 =
        files[..2].iter().map(|file| fs::metadata(project.root().join(file)).unwrap().blocks() * 512).sum();
    assert_eq!(plan.bytes(), taken);
    assert!(files.iter().all(|file| project.has(file)), "a plan touches nothing");

    let removed = remove(&plan);
    assert_eq!((removed.files, removed.bytes), (2, taken));
    assert_eq!(files.map(|file| project.has(file)), [false, false, true, true, true]);
    assert!(!project.has("runs/a"), "a folder goes with its last file");
}

#[test]
fn what_git_tracks_stays() {
    let project = Project::with(&["runs/notes.txt", "runs/out.txt"]);
    project.git(&["init", "-q"]);
    project.git(&["add", "runs/notes.txt"]);
    let plan = plan(&project.request(&["runs"])).unwrap();
    assert_eq!(plan.old.len(), 1);
    assert_eq!((plan.kept[0].path.as_str(), plan.kept[0].why.as_str()), ("runs/notes.txt", "git tracks it"));
    remove(&plan);
    assert!(project.has("runs/notes.txt") && !project.has("runs/out.txt"));
}

#[test]
fn a_repository_that_git_cannot_read_stays_whole() {
    let project = Project::with(&["runs/out.txt", ".git/HEAD"]);
    assert!(matches!(plan(&project.request(&["runs"])), Err(CleanError::Git { .. })));
}

#[test]
fn a_repository_inside_stays_whole() {
    let project = Project::with(&["runs/theirs/.git/HEAD", "runs/theirs/out.txt", "runs/own.txt"]);
    let plan = plan(&project.request(&["runs"])).unwrap();
    assert_eq!(plan.old.len(), 1);
    assert_eq!(plan.kept[0].path, "runs/theirs");
}

#[test]
fn nothing_outside_the_project_is_touched() {
    let outer = Project::with(&["precious/out.txt", "project/runs/out.txt"]);
    let root = outer.root().join("project");
    for folder in ["..", "../precious", ".", "runs/../..", ".git", outer.root().join("precious").as_str()] {
        let request = Request { root: root.clone(), ..outer.request(&[folder]) };
        assert!(matches!(plan(&request), Err(CleanError::Outside { .. })), "{folder}");
    }
}

#[test]
fn links_are_not_followed() {
    let project = Project::with(&["precious/out.txt", "runs/out.txt"]);
    symlink(project.root().join("precious"), project.root().join("logs")).unwrap();
    assert!(matches!(plan(&project.request(&["logs"])), Err(CleanError::Link { .. })));

    symlink(project.root().join("precious"), project.root().join("runs/link")).unwrap();
    let all = plan(&Request { older_than: Duration::ZERO, ..project.request(&["runs"]) }).unwrap();
    assert_eq!(all.old.len(), 2);
    // The folder becomes a link between looking and removing.
    let stale = plan(&Request { older_than: Duration::ZERO, ..project.request(&["runs"]) }).unwrap();
    remove(&all);
    assert!(project.has("precious/out.txt") && !project.has("runs/link"));
    symlink(project.root().join("precious"), project.root().join("runs")).unwrap();
    let removed = remove(&stale);
    assert_eq!((removed.files, removed.failed.len()), (0, 2));
    assert!(project.has("precious/out.txt"));
}

#[test]
fn what_was_written_lately_or_is_kept_by_the_settings_stays() {
    let project = Project::with(&["runs/old.txt", "runs/best/model.pt"]);
    project.write("runs/new.txt", Duration::ZERO);
    let request = Request { keep: vec!["runs/best/**".into()], ..project.request(&["runs", "runs/best"]) };
    let plan = plan(&request).unwrap();
    assert_eq!(plan.old.iter().map(|old| old.path.as_str()).collect::<Vec<_>>(), ["runs/old.txt"]);
    let mut why: Vec<&str> = plan.kept.iter().map(|kept| kept.why.as_str()).collect();
    why.sort_unstable();
    assert_eq!(why, ["it was written lately", "the settings keep it"]);
}

#[test]
fn a_second_name_of_a_file_frees_nothing() {
    let project = Project::with(&["data/kept.bin"]);
    fs::create_dir(project.root().join("runs")).unwrap();
    fs::hard_link(project.root().join("data/kept.bin"), project.root().join("runs/second.bin")).unwrap();
    let plan = plan(&project.request(&["runs"])).unwrap();
    assert_eq!((plan.old.len(), plan.bytes()), (1, 0));
}
