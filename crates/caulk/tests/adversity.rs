//! `caulk run` where hardly anything can be written: what Python runs, caulk runs.
//!
//! Disks are full, or cannot be written, in a mount namespace that only the test sees. Where the system allows none, these
//! tests say that they are skipped.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use caulk_core::wire::{Hello, Message, PROTOCOL, Standing};
use support::{Ended, Place, entries};

const CAULK: &str = env!("CARGO_BIN_EXE_caulk");

/// A program of which more is known than its exit code.
const PROGRAM: &str = "print('it runs'); import sys, time; time.sleep(0.3); sys.exit(5)";

/// Says of one run that it was watched, with one warning, and ended as the program did.
#[track_caller]
fn is_watched(ended: Ended, warning: &str) -> Ended {
    let ended = ended.code(5).says(warning).says("── caulk ").says("exit code 5");
    assert_eq!(ended.out, "it runs\n", "{ended:#?}");
    assert_eq!(ended.err.matches("warning:").count(), 1, "{ended:#?}");
    ended
}

/// The interpreter itself: a script of that name may need a working directory.
fn python() -> String {
    let found =
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    String::from_utf8(found.expect("python3 exists").stdout).expect("UTF-8").trim().to_owned()
}

/// A shell in the place, without a folder for recordings that somebody has chosen.
fn shell(place: &Place, script: &str) -> Ended {
    let mut command = std::process::Command::new("bash");
    command.args(["-c", script]).current_dir(place.path("")).stdin(Stdio::null());
    command
        .env("PYTHON", python())
        .env("SAID", said())
        .env("GROW", GROW)
        .env("CAULK", CAULK)
        .env("PROGRAM", PROGRAM)
        .env("CAULK_PACKAGE", "/nowhere");
    command.env("HOME", place.path("own")).env_remove("CAULK_HOME");
    for variable in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"] {
        command.env_remove(variable);
    }
    Ended::from(command.output().expect("bash starts"))
}

/// The same where the script sees disks of its own; `None` where that is not allowed.
fn namespace(place: &Place, script: &str) -> Option<Ended> {
    let inner = place.write("inner.sh", &format!("set -e\n{script}"));
    let inner = inner.to_str().expect("a name in UTF-8");
    // Mounts hide the folder in which this test lies: the script is read from a descriptor.
    let outer = format!(
        "exec 9<{inner}; exec unshare -U -r -m bash -c 'mount -t tmpfs none /mnt || exit 77; . /dev/fd/9'"
    );
    let ended = shell(place, &outer);
    let refused = ended.code == Some(77) || ended.err.starts_with("unshare:");
    if refused {
        skip("this system allows no mount namespace");
    }
    (!refused).then_some(ended)
}

#[expect(clippy::print_stderr, reason = "says what is not tested here")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Long enough to be looked at more than once.
const LONGER: &str = "PROGRAM=${PROGRAM/0.3/2}; ";

const RUN: &str = r#""$CAULK" run -- "$PYTHON" -c "$PROGRAM""#;

/// Nothing in the usual places can be written.
const READ_ONLY: &str = "
mkdir /mnt/work /mnt/home
for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro none $folder; done
mount -t tmpfs -o ro none /mnt/work; mount -t tmpfs -o ro none /mnt/home
export HOME=/mnt/home; cd /mnt/work
";

/// The working directory, the home folder and those for temporary files are on one small disk, which is full.
const FULL: &str = "
mount -t tmpfs -o size=64k none /tmp
mkdir /tmp/work /tmp/home
mount -t tmpfs -o ro none /var/tmp
export HOME=/tmp/home; cd /tmp/work
cat /dev/zero > /tmp/ballast 2> /dev/null || true
";

#[test]
fn a_working_directory_that_is_gone_costs_one_warning() {
    let place = Place::new();
    let ended = shell(&place, &format!("mkdir gone; cd gone; rmdir ../gone; {RUN}"));
    let ended = is_watched(ended, "the working directory was removed");
    // There is another place, in which it is found.
    let ended = ended.says("this run is recorded in `").says("recording: ");
    assert!(!ended.err.contains("hint: choose another"), "{ended:#?}");
    let runs = entries(&place.path("own/.local/state/caulk/runs"));
    assert_eq!(runs.len(), 1);
    let head = std::fs::read_to_string(runs[0].join("run.json")).expect("a head");
    let head: serde_json::Value = serde_json::from_str(&head).expect("JSON");
    let gone = place.path("").canonicalize().expect("it exists").join("gone");
    assert_eq!(head["target"]["directory"], gone.to_str().expect("UTF-8"));
    let again = "mkdir gone; cd gone; rmdir ../gone";
    shell(&place, &format!("{again}; \"$CAULK\" report")).code(0).prints("exit code 5");
    shell(&place, &format!("{again}; \"$CAULK\" runs")).code(0).prints("exit 5");
}

#[test]
fn a_chosen_folder_below_a_directory_that_is_gone_is_excused() {
    let place = Place::new();
    for option in ["--output=rec", "--report=r.txt", "--report-json=r.json"] {
        let run = RUN.replace("run", &format!("run {option}"));
        let ended = shell(&place, &format!("mkdir gone; cd gone; rmdir ../gone; {run}")).code(5);
        assert_eq!(ended.out, "it runs\n", "{option}: {ended:#?}");
        ended.says("── caulk ").says("warning: ");
    }
    let ended = shell(&place, &format!("mkdir gone; cd gone; rmdir ../gone; export CAULK_HOME=rec; {RUN}"));
    is_watched(ended, "watched without a recording");
}

#[test]
fn nothing_that_can_be_written_costs_one_warning_and_the_report_comes() {
    let place = Place::new();
    let Some(ended) = namespace(&place, &format!("{READ_ONLY}{LONGER}{RUN}")) else { return };
    let ended = is_watched(ended, "this run is watched without a recording; its report comes at its end");
    let ended =
        ended.says("Read-only file system").says("there is no recording of this run").says("resident");
    assert!(!ended.err.contains("recording: "), "{ended:#?}");
}

#[test]
fn a_disk_that_is_full_at_the_start_costs_one_warning_and_the_report_comes() {
    let place = Place::new();
    let Some(ended) = namespace(&place, &format!("{FULL}{LONGER}{RUN}")) else { return };
    is_watched(ended, "watched without a recording").says("No space left").says("resident");
    // Nothing is left behind that would be in the way when there is room again.
    let script = format!(
        "{FULL}{RUN} || true; ls -A /tmp/work >&2; rm /tmp/ballast; mount -o remount,size=9m /tmp; exec {RUN} 2>&1"
    );
    let Some(ended) = namespace(&place, &script) else { return };
    assert!(ended.out.contains("recording: .caulk/runs/"), "{ended:#?}");
    let hidden = namespace(
        &place,
        &format!(
            "{FULL}{RUN} || true; rm /tmp/ballast; mount -o remount,size=9m /tmp; {RUN} || true; cat .caulk/.gitignore"
        ),
    );
    assert!(hidden.is_some_and(|ended| ended.out.ends_with("*\n")));
}

#[test]
fn a_place_that_was_chosen_may_be_full_but_not_wrong() {
    let place = Place::new();
    for chosen in ["export CAULK_HOME=/tmp/chosen", "set -- --output /tmp/chosen"] {
        let run = RUN.replace("run", "run \"$@\"");
        let full = FULL.replace("size=64k", "size=64k,nr_inodes=6");
        let fill = "touch /tmp/a /tmp/b /tmp/c 2> /dev/null || true";
        let Some(ended) = namespace(&place, &format!("{full}{fill}\n{chosen}; {run}")) else { return };
        is_watched(ended, "watched without a recording");
        let Some(ended) = namespace(&place, &format!("{READ_ONLY}{chosen}; {run}")) else { return };
        assert_eq!(ended.out, "", "{ended:#?}");
        ended.code(125).says("hint: ");
    }
}

#[test]
fn reports_for_which_there_is_no_room_are_shown() {
    let place = Place::new();
    let run = RUN.replace("run", "run --report /tmp/r.txt");
    let Some(ended) = namespace(&place, &format!("{FULL}echo old > /mnt/r; {run}")) else { return };
    ended.code(5).says("── caulk ").says("a report is missing");
    // An old file is not lost for one that has no room.
    let run = RUN.replace("run", "run --report old.txt");
    let script = format!(
        "{}{run} 2> /dev/null || true; cat old.txt",
        FULL.replace("cat /dev/zero", "echo old > old.txt; cat /dev/zero")
    );
    let Some(ended) = namespace(&place, &script) else { return };
    assert_eq!(ended.out, "it runs\nold\n", "{ended:#?}");
}

#[test]
fn strange_homes_are_passed_over() {
    let place = Place::new();
    place.write(".caulk", "in the way");
    let cases = [
        "export HOME=/dev/null/x",
        "unset HOME",
        "export HOME=",
        "export XDG_STATE_HOME=/proc/self",
        "export XDG_STATE_HOME=relative",
        "export XDG_STATE_HOME=$'/tmp/\\xff'",
        "export TMPDIR=/dev/null/x HOME=/proc/x",
    ];
    for case in cases {
        let ended = shell(&place, &format!("{case}; {RUN}"));
        is_watched(ended, "this run is recorded in `");
    }
    assert!(!place.path("relative").exists());
}

/// As another user, since root may write anywhere.
#[test]
fn a_user_who_may_write_nowhere_is_watched() {
    let place = Place::new();
    std::fs::set_permissions(place.path(""), std::fs::Permissions::from_mode(0o755)).expect("own folder");
    let probe = shell(&place, "setpriv --reuid 12345 --regid 12345 --clear-groups \"$CAULK\" --version");
    if probe.code != Some(0) {
        return skip("only root can become another user");
    }
    // The interpreter may lie where only root comes to.
    let run = "exec setpriv --reuid 12345 --regid 12345 --clear-groups \"$CAULK\" run -- sh -c 'echo it runs; exit 5'";
    let script = format!("mkdir own; export HOME=$PWD/own; {run}");
    is_watched(shell(&place, &script), "Permission denied")
        .says("this run is recorded in `/tmp/caulk-home-12345/");
    let _ = std::fs::remove_dir_all("/tmp/caulk-home-12345");
}

#[test]
fn a_limit_on_files_is_an_error_and_not_the_end() {
    let place = Place::new();
    let ended = shell(&place, &format!("ulimit -f 0; {RUN}"));
    is_watched(ended, "watched without a recording").says("File too large");
    // Later it is one warning of the writer's.
    let ended = shell(&place, &format!("{RUN} 2> /dev/null; ulimit -f 0; \"$CAULK\" report --output r.txt"));
    ended.code(125).says("error: failed to write `r.txt`").says("File too large").says("hint: make room");
    let plan = "ulimit -f 0; \"$CAULK\" plan --preset vit_gru --gpu 'GTX 1650' --output plan.yaml";
    shell(&place, plan).code(125).says("failed to write `plan.yaml`");
    place.write("a.py", "x = 1\n");
    let check = "ulimit -f 0; \"$CAULK\" check a.py --write-baseline found.json";
    shell(&place, check).code(2).says("found.json");
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/caulk");
    let selftest = format!("ulimit -f 0; CAULK_PACKAGE={package} \"$CAULK\" selftest --python \"$PYTHON\"");
    shell(&place, &selftest).code(125).says("failed to write").says("File too large");
    let plan = "ulimit -f 0; \"$CAULK\" plan -- touch started";
    shell(&place, plan).code(125).says("there is no room for the recording");
    assert!(!place.path("started").exists());
    shell(&place, "ulimit -f 0; \"$CAULK\" runs > list.txt").code(125).says("standard output");
}

#[test]
fn a_program_finds_the_signal_of_the_limit_as_it_would_without_caulk() {
    let place = Place::new();
    let read = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    for trap in ["", "trap '' XFSZ; "] {
        let plain = shell(&place, &format!("{trap}sh -c \"{read}\"")).code(0);
        let watched = shell(&place, &format!("{trap}\"$CAULK\" run -q -- sh -c \"{read}\"")).code(0);
        assert_eq!(watched.out, plain.out);
    }
    // A program that does not expect it ends by it.
    let write = "\"$CAULK\" run -q -- sh -c 'head -c 9000 /dev/zero > own.txt'";
    shell(&place, &format!("ulimit -f 1; {write}")).code(153);
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    let place = Place::new();
    let open = place.path("open");
    std::fs::create_dir_all(place.path("target/runs")).expect("a writable folder");
    std::fs::create_dir(&open).expect("a writable folder");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).expect("own folder");
    let give = |path: &Path| std::os::unix::fs::lchown(path, Some(12345), Some(12345));
    symlink(place.path("target"), open.join(".caulk")).expect("a writable folder");
    if give(&open.join(".caulk")).is_err() {
        return skip("only root can give a file to another user");
    }
    let ended = is_watched(shell(&place, &format!("cd open; {RUN}")), "this run is recorded in `");
    ended
        .says("`.caulk` is a link of another user (uid 12345), which is not followed")
        .says("hint: remove it");
    assert_eq!(entries(&place.path("target/runs")).len(), 0);
    shell(&place, "cd open; \"$CAULK\" runs").code(0).says("is a link of another user").prints("exit 5");
    shell(&place, "cd open; CAULK_HOME=.caulk \"$CAULK\" run -- touch started")
        .code(125)
        .says("another user");
    assert!(!open.join("started").exists());
    // So it is with a folder where anybody may make one.
    std::fs::remove_file(open.join(".caulk")).expect("own folder");
    std::fs::create_dir(open.join(".caulk")).expect("own folder");
    give(&open.join(".caulk")).expect("root");
    let ended = is_watched(shell(&place, &format!("cd open; {RUN}")), "this run is recorded in `");
    ended.says("`.caulk` is a folder, where anybody may write, of another user");
    assert_eq!(entries(&open.join(".caulk")).len(), 0);
}

#[test]
fn recordings_are_private_and_what_the_user_names_follows_the_umask() {
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    for (umask, named) in [("000", 0o666), ("022", 0o644), ("077", 0o600)] {
        let place = Place::new();
        let report = "\"$CAULK\" report --output o.txt; \"$CAULK\" plan --preset vit_gru --gpu 'GTX 1650' --output p.yaml";
        let run = RUN.replace("run", "run --report r.txt --report-json r.json");
        shell(&place, &format!("umask {umask}; {run}; {report}"));
        for file in ["r.txt", "r.json", "o.txt", "p.yaml"] {
            assert_eq!(mode(&place.path(file)), named, "{file} with umask {umask}");
        }
        let runs = entries(&place.path(".caulk/runs"));
        for folder in [&place.path(".caulk"), &place.path(".caulk/runs"), &runs[0]] {
            assert_eq!(mode(folder), 0o700, "{} with umask {umask}", folder.display());
        }
        let files = entries(&runs[0]);
        assert!(files.iter().any(|file| file.ends_with("report.json")), "{files:?}");
        for file in files.iter().chain([&place.path(".caulk/.gitignore")]) {
            assert_eq!(mode(file), 0o600, "{} with umask {umask}", file.display());
        }
    }
}

/// A program that grows after its first step, of which it tells as an agent does: the guard ends it to start it again.
const GROW: &str = "\
import os, socket, time
agent = socket.socket(socket.AF_UNIX)
agent.connect(os.environ['CAULK_SOCKET'])
agent.sendall(bytes.fromhex(os.environ['SAID']))
kept = []
while True:
    kept.append(bytearray(4 << 20))
    time.sleep(0.02)
";

/// What the program says, in hexadecimal digits.
fn said() -> String {
    let hello = Hello { protocol: PROTOCOL, executable: "python".into(), ..Hello::default() };
    let mut bytes = Vec::new();
    Message::from(hello).encode(&mut bytes);
    Message::from(Standing { steps: 5, ..Standing::default() }).encode(&mut bytes);
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// Runs it under the guard in a shell. A package that holds nothing but a folder gives it a socket.
const GUARD: &str = r#"
mkdir -p $PACKAGE/_inject; touch $PACKAGE/_inject/sitecustomize.py
CAULK_PACKAGE=$PACKAGE exec "$CAULK" run --guard --budget 150MB --resume-cmd "$RESUME" -- "$PYTHON" -c "$GROW"
"#;

#[test]
fn the_guard_says_its_restart_as_a_shell_takes_it() {
    let place = Place::new();
    let resume = r#"sh -c 'echo "$1" $2; exit 5' x 'a b; c' --api-key=s3cret"#;
    place.write("resume", resume);
    let ended = shell(&place, &format!("PACKAGE=$PWD/caulk; RESUME=$(cat resume){GUARD}")).code(5);
    assert_eq!(ended.out, "a b; c --api-key=s3cret\n", "{ended:#?}");
    let line = ended.err.lines().find_map(|line| line.strip_prefix("caulk: guard: restart 1"));
    let line = line.unwrap_or_else(|| panic!("no restart: {ended:#?}"));
    let (_, said) = line.split_once(": ").expect("a command");
    // What it says, a shell takes as the same words, but for secrets.
    let words = std::process::Command::new("sh").arg("-c").arg(said).output().expect("sh starts");
    assert_eq!(String::from_utf8_lossy(&words.stdout), "a b; c --api-key=***\n");
}

#[test]
fn lives_of_a_guarded_run_make_one_report_without_a_recording() {
    let place = Place::new();
    let script = READ_ONLY.replace("/dev/shm", "") + "PACKAGE=/mnt/caulk; RESUME='sh -c \"exit 5\"'" + GUARD;
    let Some(ended) = namespace(&place, &script.replace("-o ro none $folder", "-o ro,size=1m none $folder"))
    else {
        return;
    };
    let ended = ended.code(5).says("guard: restart 1").says("life 2: ");
    assert_eq!(ended.err.matches("warning:").count(), 1, "{ended:#?}");
    assert_eq!(ended.err.matches("── caulk ").count(), 1, "{ended:#?}");
}
