//! `caulk top` on runs that go on.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
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

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    place.caulk(&["top", "--interval", "0s"]).code(2).says("--interval");
    place.caulk(&["top", "--format", "yaml"]).code(2).says("yaml");
}
