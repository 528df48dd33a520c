//! `caulk report` and `caulk runs` on recordings that real runs left.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use support::terminal::Session;
use support::{Ended, Place};

/// A place with two runs: the first ends with 3, the latest with 0.
fn two_runs() -> Place {
    let place = Place::new();
    place.caulk(&["run", "sh", "-c", "exit 3"]).code(3);
    place.caulk(&["run", "true"]).code(0);
    assert_eq!(place.runs().len(), 2);
    place
}

fn name(place: &Place, index: usize) -> String {
    place.runs()[index].file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn without_a_name_the_latest_run_is_shown() {
    let place = two_runs();
    let ended = place.caulk(&["report", "--format", "json"]).code(0);
    assert_eq!(ended.json()["run"]["id"], name(&place, 1));
    assert_eq!(ended.json()["run"]["death"]["code"], 0);
    let text = place.caulk(&["report"]).code(0);
    assert!(text.out.starts_with("── caulk "), "{text:#?}");
    assert_eq!(text.err, "");
}

#[test]
fn a_run_is_found_by_name_and_by_folder() {
    let place = two_runs();
    let folder = place.runs()[0].display().to_string();
    for which in [name(&place, 0), folder] {
        let ended = place.caulk(&["report", &which, "--format", "json"]).code(0);
        assert_eq!(ended.json()["run"]["death"]["code"], 3, "{which}");
    }
}

#[test]
fn a_name_that_fits_no_run_is_an_error_with_a_hint() {
    let place = two_runs();
    place.caulk(&["report", "no-such-run"]).code(125).says("error: no run `no-such-run`").says("hint: ");
    Place::new().caulk(&["report"]).code(125).says("error: no runs recorded").says("hint: ");
}

#[test]
fn a_report_can_go_to_a_file() {
    let place = two_runs();
    let ended = place.caulk(&["report", "--format", "json", "--output", "report.json"]).code(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
    let document: serde_json::Value = serde_json::from_str(&place.read("report.json")).expect("valid JSON");
    assert_eq!(document["schema"], 2);
}

#[test]
fn without_samples_of_the_heap_there_is_no_profile() {
    let place = two_runs();
    let ended = place.caulk(&["report", "--format", "pprof", "--output", "heap.pb.gz"]).code(125);
    ended.says("error: the heap of this run was not sampled").says("hint: ");
    assert!(!place.path("heap.pb.gz").exists());
    // A run whose profile cannot be written ends as its command did.
    let args = ["run", "--report", "heap.pb.gz", "--format", "pprof", "sh", "-c", "exit 3"];
    place.caulk(&args).code(3).says("warning: ").says("was not sampled");
}

#[test]
fn a_profile_is_not_written_to_a_terminal() {
    let place = two_runs();
    let mut session = Session::start(&mut place.command(&["report", "--format", "pprof"]));
    let before = session.read_until("a profile is binary, and standard output is a terminal");
    assert!(before.contains("error:"), "{before:?}");
}

#[test]
fn every_format_of_a_check_is_one_of_a_run() {
    let place = Place::new();
    let formats = [
        ("text", "── caulk "),
        ("concise", "Nothing can be said about memory"),
        ("json", "\"schema\": 2"),
        ("sarif", "\"version\": \"2.1.0\""),
        ("github", ""),
        ("gitlab", "[]"),
        ("markdown", "### caulk"),
    ];
    for (format, part) in formats {
        place.caulk(&["run", "--report", format, "--format", format, "true"]).code(0);
        let written = place.read(format);
        assert!(written.contains(part), "{format}: {written}");
        for option in ["--format", "--output-format"] {
            let shown = place.caulk(&["report", option, format]).code(0);
            assert!(shown.out.contains(part), "{format}: {shown:?}");
        }
    }
    place.caulk(&["run", "--format", "sarif", "true"]).code(2).says("--report <FILE>");
    place.caulk(&["report", "--lines", "--format", "sarif"]).code(125).says("hint: give `--format text`");
}

#[test]
fn a_report_without_source_is_refused_in_a_format_that_shows_it() {
    let place = two_runs();
    place.caulk(&["report", "--no-source"]).code(125).says("this format shows source").says("hint: ");
    place.caulk(&["report", "--no-source", "--format", "json"]).code(0).prints("\"schema\": 2");
    place.caulk(&["report", "--no-source", "--lines"]).code(2);
}

#[test]
fn a_flame_graph_is_a_page_whose_name_is_printed() {
    let place = two_runs();
    let standard = format!("{}.flame.html", name(&place, 1));
    for (arguments, file) in
        [(&["report", "--flame", "heap.html"][..], "heap.html"), (&["report", "--flame"], &standard)]
    {
        let ended = place.caulk(arguments).code(0);
        assert_eq!((ended.out.trim_end(), ended.err.as_str()), (file, ""));
        assert!(place.read(file).starts_with("<!DOCTYPE html>"), "{file}");
    }
    place.caulk(&["report", "--flame", "--format", "json"]).code(2).says("cannot be used with");
}

#[test]
fn a_run_that_was_seen_from_outside_has_no_moments_to_compare() {
    let place = two_runs();
    place.caulk(&["report", "--from", "1", "--to", "2"]).code(125).says("error: this run has no moments");
}

#[test]
fn runs_are_listed_newest_first() {
    let place = two_runs();
    let list = place.caulk(&["runs", "--format", "json"]).code(0).json();
    let names: Vec<_> =
        list["runs"].as_array().expect("a list").iter().map(|run| run["id"].clone()).collect();
    assert_eq!(names, [name(&place, 1), name(&place, 0)]);
    assert_eq!(list["runs"][1]["ending"], "exit 3");
    let text = place.caulk(&["runs"]).code(0);
    let lines: Vec<_> = text.out.lines().collect();
    assert!(lines[1].contains(&name(&place, 1)) && lines[2].contains("exit 3"), "{text:#?}");
}

#[test]
fn no_runs_are_no_error() {
    let place = Place::new();
    assert_eq!(place.caulk(&["runs", "--format", "json"]).code(0).json()["runs"], serde_json::json!([]));
    place.caulk(&["runs"]).code(0).says("no runs");
}

/// What `caulk` says as somebody who may be refused something, with a folder closed to everybody meanwhile.
fn refused(place: &Place, closed: &str, arguments: &[&str]) -> Ended {
    place.allow(closed, 0o000);
    let ended = Ended::from(place.as_nobody(arguments).output().expect("the binary starts"));
    place.allow(closed, 0o755);
    ended
}

#[test]
fn runs_that_may_not_be_read_are_not_called_none() {
    let place = Place::new();
    let recorded = place.as_nobody(&["run", "true"]).output().expect("the binary starts");
    assert_eq!(recorded.status.code(), Some(0));
    let run = format!("home/runs/{}", name(&place, 0));
    for closed in ["home", "home/runs"] {
        let says = format!("{closed}` cannot be read");
        for arguments in [&["runs"][..], &["runs", "--format", "json"], &["report"], &["report", "true"]] {
            let ended = refused(&place, closed, arguments).code(125).says(&says).says("hint: ");
            assert!(ended.err.contains("Permission denied") && !ended.err.contains("no runs"), "{ended:#?}");
            assert_eq!(ended.out, "");
        }
    }
    // Of others in the same folder something can be said.
    let ended = refused(&place, &run, &["runs"]).code(0).prints("broken").prints(&name(&place, 0));
    assert!(!ended.err.contains("no runs"), "{ended:#?}");
    refused(&place, &run, &["report"]).code(125).says("failed to open recording").says("hint: ");
    let path = place.path(&run).display().to_string();
    refused(&place, "home", &["report", &path]).code(125).says(&path).says("Permission denied");
}

#[test]
fn runs_that_a_name_may_mean_are_told_apart() {
    let place = Place::new();
    for code in [3, 4] {
        place.caulk(&["run", "sh", "-c", &format!("exit {code}")]).code(code);
    }
    let ended = place.caulk(&["report", "sh"]).code(125).says("error: `sh` fits 2 runs").says("hint: ");
    for (index, code) in [(0, "exit 3"), (1, "exit 4")] {
        let id = format!("{}  ", name(&place, index));
        let line = ended.err.lines().find(|line| line.contains(&id)).expect("it is listed");
        assert!(line.contains(" 20") && line.ends_with(&format!("sh -c {code}")), "{line}");
    }
}

#[test]
fn broken_recordings_are_listed_as_such_and_do_not_hide_others() {
    let place = two_runs();
    std::fs::write(place.runs()[1].join("run.json"), "{ not json").expect("a writable folder");
    let list = place.caulk(&["runs", "--format", "json"]).code(0).json();
    let broken: Vec<_> =
        list["runs"].as_array().expect("a list").iter().filter(|run| !run["problem"].is_null()).collect();
    assert_eq!(broken.len(), 1, "{list:#}");
    let text = place.caulk(&["runs"]).code(0);
    assert!(text.out.contains("broken") && text.out.contains("exit 3"), "{text:#?}");
}

#[test]
fn a_run_whose_supervisor_was_killed_is_explained() {
    let place = Place::new();
    let mut command = place.command(&["run", "sh", "-c", "read line"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("the binary starts");
    let started = || place.runs().first().is_some_and(|run| run.join("run.json").exists());
    while !started() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let during = place.caulk(&["report"]).code(0);
    assert!(during.out.contains("Still running"), "{during:#?}");
    child.kill().expect("it still runs");
    child.wait().expect("an end");
    let after = place.caulk(&["report"]).code(0);
    assert!(after.out.contains("The end was not seen"), "{after:#?}");
    let list = place.caulk(&["runs"]).code(0);
    assert!(list.out.contains("not known"), "{list:#?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = two_runs();
    let mut command = place.command(&["report"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let ended = Ended::from(child.wait_with_output().expect("an end")).code(0);
    assert_eq!(ended.err, "");
}

#[test]
fn version_and_help_are_data() {
    let place = Place::new();
    let version = place.caulk(&["--version"]).code(0);
    let (first, facts) = version.out.split_once('\n').expect("facts");
    assert_eq!(first, format!("caulk {}", env!("CARGO_PKG_VERSION")));
    assert!(facts.starts_with("commit: ") && facts.contains("\nrecordings: schema "), "{facts}");
    assert_eq!(place.caulk(&["-V"]).code(0).out, format!("{first}\n"));
    for arguments in [&["--help"][..], &["run", "--help"], &["report", "--help"], &["runs", "--help"]] {
        assert!(place.caulk(arguments).code(0).out.contains("Usage: caulk"), "{arguments:?}");
    }
}

#[test]
fn completions_and_manual_pages_are_made_from_the_arguments() {
    let place = Place::new();
    for (shell, word) in
        [("bash", "complete -F _caulk"), ("zsh", "#compdef caulk"), ("fish", "complete -c caulk")]
    {
        let ended = place.caulk(&["completions", shell]).code(0);
        assert!(ended.out.contains(word) && ended.out.contains("fail-on-leak"), "{shell}: {}", ended.out);
    }
    place.caulk(&["completions", "tcsh"]).code(2).says("bash");
    place.caulk(&["man", "pages/man1"]).code(0).says("wrote the manual pages to pages/man1");
    let page = place.read("pages/man1/caulk-run.1");
    assert!(page.contains("caulk run") && page.contains("fail\\-on\\-leak"), "{page}");
    assert!(place.read("pages/man1/caulk.1").contains("caulk\\-check"));
    place.write("taken", "");
    place.caulk(&["man", "taken"]).code(125).says("taken");
}
