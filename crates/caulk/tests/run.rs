//! `caulk run` around real programs: what passes through, what is refused, what is left behind.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use support::{Ended, Place, entries};

fn document(place: &Place, name: &str) -> serde_json::Value {
    serde_json::from_str(&place.read(name)).expect("valid JSON")
}

#[test]
fn exit_codes_pass_through() {
    for code in [0, 1, 7, 255] {
        Place::new().caulk(&["run", "sh", "-c", &format!("exit {code}")]).code(code);
    }
}

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    for (signal, code, said) in [("TERM", 143, "SIGTERM"), ("KILL", 137, "SIGKILL"), ("SEGV", 139, "crashed")]
    {
        Place::new().caulk(&["run", "--", "sh", "-c", &format!("kill -{signal} $$")]).code(code).says(said);
    }
}

#[test]
fn input_and_output_pass_through_unchanged() {
    let place = Place::new();
    let mut command = place.command(&["run", "--", "sh", "-c", "cat; echo problem >&2"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let bytes = b"\x00\xffdata\r\n";
    child.stdin.take().expect("a pipe").write_all(bytes).expect("a reader");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.stdout, bytes);
    Ended::from(output).code(0).says("problem\n");
}

#[test]
fn arguments_directory_and_environment_pass_through() {
    let place = Place::new();
    let program = r#"import os, sys; print(sys.argv[1:], os.path.realpath(os.getcwd()), os.environ["MARK"])"#;
    let mut command = place.command(&["run", "python3", "-c", program, "--quiet", "--", "-x", "ä b"]);
    let ended = Ended::from(command.env("MARK", "kept").output().expect("the binary starts")).code(0);
    let here = place.path("").canonicalize().expect("it exists");
    assert_eq!(ended.out, format!("['--quiet', '--', '-x', 'ä b'] {} kept\n", here.display()));
}

#[test]
fn a_command_that_does_not_exist_is_127_and_leaves_nothing() {
    let place = Place::new();
    place.caulk(&["run", "no-such-program-here"]).code(127).says("error: ").says("no-such-program-here");
    assert_eq!(place.runs().len(), 0);
}

#[test]
fn a_file_that_cannot_be_executed_is_126() {
    let place = Place::new();
    let program = place.write("train.py", "print('hello')\n");
    place.caulk(&[std::ffi::OsStr::new("run"), program.as_os_str()]).code(126).says("error: ").says("hint: ");
    assert_eq!(place.runs().len(), 0);
}

#[test]
fn wrong_arguments_are_2() {
    let place = Place::new();
    place.caulk(&["run"]).code(2);
    let unknown = place.caulk(&["run", "--no-such-option", "true"]).code(2);
    // It is no part of the command.
    assert!(!unknown.err.contains("as a value"), "{}", unknown.err);
    place.caulk(&["run", "--budget", "much", "true"]).code(2).says("50GB");
    place.caulk(&["run", "--boundary", "5-epochs", "true"]).code(2).says("30-seconds");
    place.caulk(&["bogus"]).code(2);
}

#[test]
fn the_report_goes_to_standard_error_only() {
    let ended = Place::new().caulk(&["run", "echo", "from the program"]).code(0);
    assert_eq!(ended.out, "from the program\n");
    let ended = ended.says("── caulk ").says("recording: ");
    assert!(!ended.err.contains('\x1b'), "colour in a pipe: {ended:#?}");
}

#[test]
fn the_reason_for_looking_from_outside_only_is_said_once() {
    let ended = Place::new().caulk(&["run", "true"]).code(0);
    assert_eq!(ended.err.matches("from outside alone").count(), 1, "{ended:#?}");
}

#[test]
fn quiet_says_nothing_but_passes_everything() {
    let place = Place::new();
    let ended =
        place.caulk(&["run", "--quiet", "--report-json", "r.json", "sh", "-c", "echo out; exit 4"]).code(4);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("out\n", ""));
    assert_eq!(document(&place, "r.json")["run"]["death"]["code"], 4);
}

#[test]
fn the_report_can_go_to_a_file() {
    let place = Place::new();
    let ended = place.caulk(&["run", "--report", "report.txt", "true"]).code(0);
    assert!(!ended.err.contains("── caulk"), "{ended:#?}");
    assert!(place.read("report.txt").starts_with("── caulk "));
    assert_eq!(entries(&place.path("")).len(), 2, "the report and the recordings, nothing else");
}

#[test]
fn json_is_written_whatever_the_death() {
    let cases = [
        ("exit 0", "code", 0),
        ("exit 3", "code", 3),
        ("kill -KILL $$", "signal", 9),
        ("kill -INT $$", "signal", 2),
    ];
    for (script, key, value) in cases {
        let place = Place::new();
        place.caulk(&["run", "--report-json", "report.json", "sh", "-c", script]);
        let document = document(&place, "report.json");
        assert_eq!(document["schema"], 2);
        assert_eq!(document["command"], "run");
        assert_eq!(document["run"]["death"][key], value, "{script}: {document:#}");
        assert!(document["verdicts"].is_array() && document["findings"].is_array(), "{document:#}");
    }
}

#[test]
fn an_exception_is_reported_with_its_code() {
    let program = "raise ValueError('no')";
    Place::new().caulk(&["run", "python3", "-c", program]).code(1).says("ValueError: no").says("exit code 1");
}

#[test]
fn a_home_that_cannot_be_written_stops_before_the_start() {
    let place = Place::new();
    let file = place.write("file", "");
    let mut command = place.command(&["run", "touch", "started"]);
    command.env("CAULK_HOME", file.join("home"));
    Ended::from(command.output().expect("the binary starts")).code(125).says("error: ").says("hint: ");
    assert!(!place.path("started").exists());
}

#[test]
fn a_folder_that_cannot_be_written_does_not_keep_the_training_from_starting() {
    let place = Place::new();
    place.write(".caulk", "in the way");
    let caulk = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env_remove("CAULK_HOME").env("XDG_STATE_HOME", place.path("state"));
        Ended::from(command.output().expect("the binary starts"))
    };
    let ended = caulk(&["run", "sh", "-c", "exit 5"]).code(5).says("hint: ");
    assert_eq!(ended.err.matches("caulk: warning: this run is recorded in ").count(), 1, "{ended:#?}");
    // It is found from here, and not from elsewhere.
    assert_eq!(entries(&place.path("state/caulk/runs")).len(), 1);
    assert_eq!(caulk(&["report", "--format", "json"]).code(0).json()["run"]["death"]["code"], 5);
    assert!(caulk(&["runs"]).code(0).out.contains("exit 5"));
    std::fs::create_dir(place.path("elsewhere")).expect("a writable folder");
    let mut command = place.command(&["runs"]);
    command.current_dir(place.path("elsewhere"));
    command.env_remove("CAULK_HOME").env("XDG_STATE_HOME", place.path("state"));
    Ended::from(command.output().expect("the binary starts")).code(0).says("no runs in `.caulk`");
    // A folder that was asked for is not replaced by another.
    place.write("taken", "");
    caulk(&["run", "--output", "taken", "touch", "started"]).code(125).says("hint: ");
    assert!(!place.path("started").exists());
}

#[test]
fn what_will_not_be_seen_is_said_during_a_long_run() {
    let place = Place::new();
    let mut command = place.command(&["run", "sh", "-c", "read line"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stderr = std::io::BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("text");
    assert!(line.starts_with("caulk: note: ") && line.contains("from outside alone"), "{line}");
    drop(child.stdin.take());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    child.wait().expect("an end");
    assert!(rest.contains("note: "), "the report says it again: {rest}");
}

#[test]
fn a_report_that_cannot_be_written_stops_before_the_start() {
    for option in ["--report", "--report-json"] {
        let place = Place::new();
        let ended = place.caulk(&["run", option, "none/report", "touch", "started"]).code(125);
        ended.says("failed to write `none/report`").says("hint: make the folder first");
        assert!(!place.path("started").exists());
        assert_eq!(place.runs().len(), 0);
    }
}

#[test]
fn a_folder_is_used_for_one_recording() {
    let place = Place::new();
    place.caulk(&["run", "--output", "rec", "true"]).code(0);
    assert!(place.path("rec/run.json").exists());
    let before = place.read("rec/run.json");
    place.caulk(&["run", "--output", "rec", "touch", "started"]).code(125).says("hint: ");
    assert!(!place.path("started").exists());
    assert_eq!(place.read("rec/run.json"), before);
}

#[test]
fn a_disk_that_fills_up_costs_one_warning() {
    let place = Place::new();
    // As a full disk: beyond 2 KB every write fails.
    let script = format!(
        "trap '' XFSZ; ulimit -f 4; exec {} run sh -c 'sleep 3; exit 5'",
        env!("CARGO_BIN_EXE_caulk")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(place.path("")).stdin(Stdio::null());
    command.env("CAULK_HOME", place.path("home")).env("CAULK_PACKAGE", "/nowhere");
    let ended =
        Ended::from(command.output().expect("sh starts")).code(5).says("File too large").says("── caulk ");
    assert_eq!(ended.err.matches("warning:").count(), 1, "{ended:#?}");
}

#[test]
fn by_default_recordings_are_kept_here_and_out_of_git() {
    let place = Place::new();
    let mut command = place.command(&["run", "true"]);
    Ended::from(command.env_remove("CAULK_HOME").output().expect("the binary starts"))
        .code(0)
        .says(".caulk/runs/");
    assert_eq!(entries(&place.path(".caulk/runs")).iter().filter(|path| path.is_dir()).count(), 1);
    assert!(place.read(".caulk/.gitignore").contains('*'));
}

#[test]
fn a_closed_standard_error_changes_nothing() {
    for code in [0, 9] {
        let place = Place::new();
        let script = format!("sleep 0.3; exit {code}");
        let mut command = place.command(&["run", "--report-json", "report.json", "sh", "-c", &script]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        drop(child.stderr.take());
        assert_eq!(child.wait().expect("an end").code(), Some(code));
        assert_eq!(document(&place, "report.json")["run"]["death"]["code"], code);
    }
}

#[test]
fn a_report_into_a_pipe_without_reader_changes_nothing() {
    let place = Place::new();
    let pipe = place.path("pipe");
    std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo exists");
    place.caulk(&["run", "--report", "pipe", "sh", "-c", "exit 5"]).code(5);
    place.caulk(&["run", "--report", "/dev/full", "sh", "-c", "exit 5"]).code(5).says("warning: ");
}

#[test]
fn a_program_without_growth_does_not_fail_on_leak() {
    Place::new().caulk(&["run", "--fail-on-leak", "sh", "-c", "exit 0"]).code(0);
    Place::new().caulk(&["run", "--fail-on-leak", "sh", "-c", "exit 6"]).code(6);
}

#[test]
fn a_budget_is_a_size_or_a_share_of_the_memory_there_is() {
    let place = Place::new();
    let budget = |budget: &str| {
        place.caulk(&["run", "--budget", budget, "--report-json", "report.json", "true"]).code(0);
        let limits = document(&place, "report.json")["run"]["limits"].clone();
        let physical = limits["physical_bytes"].as_u64().expect("a number");
        let all = limits["cgroup_bytes"].as_u64().map_or(physical, |cgroup| cgroup.min(physical));
        (limits["budget_bytes"].as_u64().expect("a number"), all)
    };
    assert_eq!(budget("64MB").0, 64 << 20);
    let (half, all) = budget("50%");
    assert_eq!(half, all / 2);
}

#[test]
fn secrets_on_the_command_line_are_not_kept() {
    let place = Place::new();
    place.caulk(&["run", "--report-json", "report.json", "echo", "--api-key=sk-very-secret"]).code(0);
    assert!(!place.read("report.json").contains("very-secret"));
    for file in entries(&place.runs()[0]).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&file).expect("a readable file");
        assert!(!String::from_utf8_lossy(&bytes).contains("very-secret"), "{}", file.display());
    }
}

#[test]
fn names_that_hold_the_shape_of_a_secret_hide_their_values() {
    let place = Place::new();
    let arguments =
        ["--dbpass", "very-1", "MYSQL_PWD=very-2", "+auth.x=very-3", "{'creds': ['very-4', 'very-5']}"];
    let arguments =
        [&["run", "--report-json", "report.json", "echo", "--passes", "3"][..], &arguments].concat();
    let mut command = place.command(&arguments);
    command.env("TORCH_JWT_FILE", "very-6").env("PYTHON_AUTHORS", "kept");
    let ended = Ended::from(command.output().expect("the binary starts")).code(0);
    // The program has them.
    assert!(ended.out.contains("very-1") && ended.out.contains("very-5"), "{ended:#?}");
    let shown =
        [ended.err, place.read("report.json"), place.caulk(&["runs", "--format", "json"]).code(0).out];
    let files = entries(&place.runs()[0]).into_iter().filter(|path| path.is_file());
    let files = files
        .map(|file| String::from_utf8_lossy(&std::fs::read(file).expect("a readable file")).into_owned());
    for text in shown.into_iter().chain(files) {
        assert!(!text.contains("very-"), "{text}");
    }
    let run = &document(&place, "report.json")["run"];
    let kept = ["echo", "--passes", "3", "--dbpass", "***", "MYSQL_PWD=***", "+auth.x=***", "{'creds': ***}"];
    assert_eq!(run["target"]["command"], serde_json::json!(kept));
    let environment = run["target"]["environment"].to_string();
    assert!(environment.contains(r#"["TORCH_JWT_FILE","***"]"#), "{environment}");
    assert!(environment.contains(r#"["PYTHON_AUTHORS","kept"]"#), "{environment}");
}

#[test]
fn a_script_without_a_shebang_or_with_one_runs_as_in_a_shell() {
    let place = Place::new();
    let script = place.write("train.sh", "#!/bin/sh\nexit 21\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("own file");
    place.caulk(&["run", "./train.sh"]).code(21);
}
