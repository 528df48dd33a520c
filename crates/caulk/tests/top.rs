//! `caulk top` on runs that go on.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use support::terminal::Session;
use support::{Ended, Place};

/// What `top` shows of runs with this name, as soon as `enough` says so.
fn seen(place: &Place, name: &str, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let document = place.caulk(&["top", name, "--format", "json"]).code(0).json();
        let runs = document["runs"].as_array().cloned().unwrap_or_default();
        if enough(&runs) {
            return runs;
        }
        assert!(Instant::now() < until, "{document:#}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_run_is_shown_while_it_goes_on_wherever_it_is_recorded() {
    let place = Place::new();
    // Other tests record at the same time.
    let name = format!("elsewhere-{}", std::process::id());
    let mut command = place.command(&["run", "--output", &name, "sh", "-c", "echo ready; read line"]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");

    let runs = seen(&place, &name, |runs| !runs.is_empty() && runs[0]["processes"] != serde_json::json!([]));
    assert_eq!(runs.len(), 1);
    assert_eq!((&runs[0]["id"], &runs[0]["command"][0]), (&Value::from(name.as_str()), &Value::from("sh")));
    assert_eq!(runs[0]["processes"][0]["name"], "sh");
    let page = place.caulk(&["top", &name]).code(0);
    assert!(page.out.contains("verdict") && page.out.contains(&name), "{}", page.out);

    drop(run.stdin.take());
    run.wait().expect("it ends");
    seen(&place, &name, <[Value]>::is_empty);
    let page = place.caulk(&["top", &name]).code(0);
    assert!(page.out.contains("no run goes on"), "{}", page.out);
}

/// `top` on a terminal, as soon as it listens.
fn watching(place: &Place) -> Session {
    let mut session = Session::start(&mut place.command(&["top", "no-such-run"]));
    session.read_until("q quits");
    session
}

#[test]
fn a_run_that_may_not_be_read_is_not_called_none() {
    let place = Place::new();
    let name = format!("closed-{}", std::process::id());
    let mut command = place.as_nobody(&["run", "--output", &name, "sh", "-c", "echo ready; read line"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut run = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    place.allow(&name, 0o000);
    let look = |arguments: &[&str]| {
        let words = [&["top", &name], arguments].concat();
        Ended::from(place.as_nobody(&words).output().expect("the binary starts"))
    };
    let ended = [look(&[]), look(&["--format", "json"])];
    place.allow(&name, 0o755);
    drop(run.stdin.take());
    run.wait().expect("it ends");
    for ended in ended {
        let ended = ended.code(125).says(&format!("{name}` cannot be read")).says("hint: ");
        assert_eq!(ended.out, "");
    }
}

/// A script of the shell with a command as `"$0" "$@"`.
fn in_shell(command: &Command, script: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn q_quits_and_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    for keys in ["q", "Q", "xyz\nq"] {
        let mut session = watching(&place);
        assert!(!session.is_usual(), "keys are read one by one");
        session.press(keys);
        assert_eq!(session.end().code(), Some(0), "{keys:?}");
        assert!(session.is_usual(), "{keys:?}");
    }
}

#[test]
fn signals_end_it_as_ever_and_leave_the_terminal_as_it_was() {
    let place = Place::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut session = watching(&place);
        session.send(signal);
        assert_eq!(session.end().signal(), Some(signal.as_raw()));
        assert!(session.is_usual(), "{signal:?}");
    }
    let mut session = watching(&place);
    session.press("\x03");
    assert_eq!(session.end().signal(), Some(Signal::INT.as_raw()));
    assert!(session.is_usual());
}

#[test]
fn a_stopped_top_gives_the_terminal_back_and_takes_it_again() {
    let place = Place::new();
    let mut session = Session::start(&mut in_shell(
        &place.command(&["top", "no-such-run"]),
        "set -m; \"$0\" \"$@\"; echo stopped $?; read line; fg; echo ended $?; read line",
    ));
    session.read_until("q quits");
    session.press("\x1a");
    session.read_until("stopped 148\r\n");
    assert!(session.is_usual());
    session.press("\n");
    session.read_until("q quits");
    session.press("q");
    session.read_until("ended 0\r\n");
    assert!(session.is_usual());
}

#[test]
fn without_a_keyboard_no_key_is_named() {
    let place = Place::new();
    let mut session = Session::start(&mut in_shell(
        &place.command(&["top", "no-such-run"]),
        "trap : INT; \"$0\" \"$@\" < /dev/null; echo ended $?; read line",
    ));
    session.read_until("no run goes on");
    session.press("\x03");
    let page = session.read_until("ended 130\r\n");
    assert!(!page.contains("q quits"), "{page}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    place.caulk(&["top", "--interval", "0s"]).code(2).says("--interval");
    place.caulk(&["top", "--format", "yaml"]).code(2).says("yaml");
}
