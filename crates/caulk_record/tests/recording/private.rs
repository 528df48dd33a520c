//! Whose a recording is: files for its owner alone, and nothing that another user has put in the way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_record::{WriteError, Writer, list, new_run_folder};
use jiff::Zoned;

use crate::story::{info, record, seconds};

const UMASK: &str = "CAULK_TEST_UMASK";

/// Not a test of its own: runs in a process with another umask.
#[test]
#[ignore = "started by the test below"]
fn recorder() {
    let Ok(path) = std::env::var(UMASK) else {
        return;
    };
    let home = Utf8Path::new(&path).join("project/.caulk");
    let folder = new_run_folder(&home, "train", &Zoned::now()).unwrap();
    let story = seconds(100, 5);
    let writer = record(&folder, &story).unwrap();
    check(&home);
    writer.finish(&info()).unwrap();
    caulk_record::write_file(&folder.join("report.json"), b"{}").unwrap();
    check(&home);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 12);
}

/// All below the folder, and it.
fn check(folder: &Utf8Path) {
    let mode = |path: &Utf8Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(folder), 0o700, "{folder}");
    for entry in folder.read_dir_utf8().unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            check(entry.path());
        } else {
            assert_eq!(mode(entry.path()), 0o600, "{}", entry.path());
        }
    }
}

#[test]
fn files_are_for_their_owner_alone_whatever_the_umask() {
    for umask in ["000", "022", "027", "277", "777"] {
        let guard = tempfile::tempdir().unwrap();
        fs::create_dir(guard.path().join("project")).unwrap();
        let script = format!(r#"umask {umask}; exec "$@""#);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(std::env::current_exe().unwrap());
        command.args(["private::recorder", "--exact", "--ignored"]).env(UMASK, guard.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "umask {umask}: {text}");
    }
}

/// A folder in which anybody may write, and another user's; `None` where these tests may not make such.
fn open_place() -> Option<(tempfile::TempDir, Utf8PathBuf)> {
    let guard = tempfile::tempdir().unwrap();
    let place = Utf8Path::from_path(guard.path()).unwrap().to_owned();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o1777)).unwrap();
    let given = give(&place.join("probe"), |path| fs::create_dir(path).unwrap());
    if !given {
        #[expect(clippy::print_stderr, reason = "says what is not tested here")]
        let () = eprintln!("skipped: only root can give a file to another user");
    }
    given.then_some((guard, place))
}

/// Makes something, and gives it to another user.
fn give(path: &Utf8Path, make: impl Fn(&Utf8Path)) -> bool {
    make(path);
    std::os::unix::fs::lchown(path, Some(12345), Some(12345)).is_ok()
}

fn refused(home: &Utf8Path, foreign: &Utf8Path) {
    let error = new_run_folder(home, "train", &Zoned::now()).unwrap_err();
    assert!(matches!(&error, WriteError::Foreign { path, .. } if path == foreign), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("another user (uid 12345)") && text.contains("hint: remove it"), "{text}");
    assert!(list(home).unwrap().is_empty(), "what another user has put there is not read either");
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    let Some((_guard, place)) = open_place() else { return };
    let target = place.join("target");
    // With a recording in it that would be read.
    let folder = new_run_folder(&target, "old", &Zoned::now()).unwrap();
    Writer::create(&folder, &info()).unwrap().finish(&info()).unwrap();
    let before = fs::read_dir(target.join("runs")).unwrap().count();
    let link = |path: &Utf8Path, to: &Utf8Path| {
        assert!(give(path, |path| symlink(to, path).unwrap()));
        path.to_owned()
    };
    let home = link(&place.join(".caulk"), &target);
    refused(&home, &home);
    // It is the same with what lies below a folder of one's own.
    let own = place.join("own");
    fs::create_dir(&own).unwrap();
    let runs = link(&own.join("runs"), &target.join("runs"));
    refused(&own, &runs);
    let run = link(&place.join("run"), &folder);
    assert!(matches!(Writer::create(&run, &info()), Err(WriteError::Foreign { .. })));
    assert_eq!(fs::read_dir(target.join("runs")).unwrap().count(), before);
    // A link of one's own is.
    let mine = place.join("mine");
    symlink(&target, &mine).unwrap();
    new_run_folder(&mine, "new", &Zoned::now()).unwrap();
    assert_eq!(fs::read_dir(target.join("runs")).unwrap().count(), before + 1);
    assert_eq!(list(&mine).unwrap().len(), 1);
}

#[test]
fn a_folder_of_another_user_is_refused_where_anybody_may_write() {
    let Some((_guard, place)) = open_place() else { return };
    let home = place.join("probe");
    refused(&home, &home);
    // Elsewhere it is there because the owner of the place wants it.
    let home = place.join("project/.caulk");
    fs::create_dir(place.join("project")).unwrap();
    assert!(give(&home, |path| fs::create_dir(path).unwrap()));
    new_run_folder(&home, "train", &Zoned::now()).unwrap();
}

#[test]
fn a_gitignore_that_a_full_disk_left_empty_is_written_again() {
    let guard = tempfile::tempdir().unwrap();
    let home = Utf8Path::from_path(guard.path()).unwrap().join(".caulk");
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".gitignore"), "").unwrap();
    new_run_folder(&home, "train", &Zoned::now()).unwrap();
    assert_eq!(fs::read_to_string(home.join(".gitignore")).unwrap(), "*\n");
    // What somebody has written there stays.
    fs::write(home.join(".gitignore"), "cache\n").unwrap();
    new_run_folder(&home, "train", &Zoned::now()).unwrap();
    assert_eq!(fs::read_to_string(home.join(".gitignore")).unwrap(), "cache\n");
}
