//! A recorder that is killed without warning leaves everything that it took.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use camino::Utf8Path;
use caulk_record::read;

use crate::story::{assert_is, folder, record, seconds};

const FOLDER: &str = "CAULK_TEST_FOLDER";

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "started by the tests below"]
fn recorder() {
    let Ok(path) = std::env::var(FOLDER) else {
        return;
    };
    let mut writer = record(Utf8Path::new(&path), &seconds(100, 7)).unwrap();
    // Taken, but never flushed.
    for item in &seconds(101, 7)[100] {
        item.give(&mut writer);
    }
    writeln_ready();
    std::thread::sleep(std::time::Duration::from_mins(1));
}

fn writeln_ready() {
    use std::io::Write;
    let mut out = std::io::stdout();
    out.write_all(b"\nready\n").unwrap();
    out.flush().unwrap();
}

#[test]
fn everything_taken_before_a_sigkill_is_read() {
    let (_guard, folder) = folder();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["kill::recorder", "--exact", "--ignored", "--nocapture"]).env(FOLDER, &folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"), "the recorder got there");
    child.kill().unwrap();
    child.wait().unwrap();
    let recording = read(&folder).unwrap();
    assert_eq!(recording.problems, Vec::<String>::new());
    assert!(!recording.info.complete);
    assert_is(&recording, &seconds(101, 7));
}
