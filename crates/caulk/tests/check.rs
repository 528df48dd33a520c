//! `caulk check`: which files are looked at, what is reported, how it ends.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use support::{Ended, Place};

/// A file with one finding, at line 3.
const LEAKY: &str = "from functools import cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]\nclass A:\n    @cache\n    def f(self): pass\n";

/// A project with these files, each with one finding.
fn project(files: &[&str]) -> Place {
    let place = Place::new();
    place.write("pyproject.toml", "[project]\nname = 'x'\n");
    for file in files {
        place.write(file, LEAKY);
    }
    place
}

/// Files with findings, in order of their names.
fn found(ended: &Ended) -> Vec<String> {
    let document = ended.json();
    let findings = document["findings"].as_array().expect("a list");
    let file = |finding: &serde_json::Value| finding["sites"][0]["file"].as_str().expect("a path").to_owned();
    let mut files: Vec<_> = findings.iter().map(file).collect();
    files.sort();
    files
}

fn check(place: &Place, arguments: &[&str]) -> Ended {
    place.caulk(&[&["check", "--output-format", "json"], arguments].concat())
}

#[test]
fn findings_fail_and_silence_does_not() {
    let place = project(&["a.py"]);
    place.caulk(&["check"]).code(1).prints("a.py:3:5").prints("Found 1 warning; looked at 1 file.");
    place.write("a.py", "x = 1\n");
    place.caulk(&["check"]).code(0).prints("No leak patterns in 1 file.");
    place.caulk(&["check", "--quiet"]).code(0).prints("");
    place.caulk(&["check", "none.py"]).code(2).says("error: no file or folder `none.py`");
    place.caulk(&["check", "--select", "cached-methods"]).code(2).says("did you mean `cached-method`?");
    place.caulk(&["check", "--no-such-option"]).code(2).says("as a value");
}

#[test]
fn what_git_ignores_is_left_out_unless_it_is_named() {
    let place = project(&["a.py", "gen/b.py", ".venv/lib/c.py", "c_gen.py"]);
    place.write(".gitignore", "/gen\n*_gen.py\n");
    assert_eq!(found(&check(&place, &[])), ["a.py"]);
    assert_eq!(found(&check(&place, &["gen"])), ["gen/b.py"]);
    assert_eq!(found(&check(&place, &["c_gen.py", "a.py"])), ["a.py", "c_gen.py"]);
    assert_eq!(found(&check(&place, &[".venv/lib"])), [".venv/lib/c.py"]);
    // As a virtual environment does it.
    place.write(".venv/.gitignore", "*\n");
    assert_eq!(found(&check(&place, &[".venv/lib"])), [".venv/lib/c.py"]);
}

#[test]
fn patterns_leave_files_out() {
    let place = project(&["a.py", "vendor/b.py"]);
    assert_eq!(found(&check(&place, &["--exclude", "vendor"])), ["a.py"]);
    assert_eq!(found(&check(&place, &["--exclude", "vendor", "vendor/b.py"])), ["vendor/b.py"]);
    let forced = check(&place, &["--exclude", "vendor", "--force-exclude", "vendor/b.py"]).code(0);
    assert_eq!(found(&forced), [""; 0]);
}

#[test]
fn paths_are_relative_to_where_caulk_was_started() {
    let place = project(&["pkg/a.py", "b.py"]);
    let in_pkg = |arguments: &[&str]| {
        let mut command = place.command(&[&["check", "--output-format", "json"], arguments].concat());
        Ended::from(command.current_dir(place.path("pkg")).output().expect("the binary starts"))
    };
    assert_eq!(found(&in_pkg(&[])), ["a.py"]);
    assert_eq!(
        found(&in_pkg(&["../b.py"])),
        [place.path("b.py").canonicalize().expect("a file").to_string_lossy()]
    );
}

#[test]
fn standard_input_is_a_file_of_its_project() {
    let place = project(&["a.py"]);
    let pipe = |arguments: &[&str]| {
        let mut command = place.command(&[&["check", "--output-format", "json", "-"], arguments].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(LEAKY.as_bytes()).expect("a reader");
        drop(stdin);
        Ended::from(child.wait_with_output().expect("an end")).code(1)
    };
    assert_eq!(found(&pipe(&[])), ["<stdin>"]);
    assert_eq!(found(&pipe(&["--stdin-filename", "new.py"])), ["new.py"]);
    place.write("a.py", "");
    assert_eq!(found(&pipe(&["--stdin-filename", "a.py"])), ["a.py"]);
}

#[test]
fn a_broken_file_is_a_problem_and_the_rest_goes_on() {
    let place = project(&["a.py"]);
    place.write("b.py", "def (:\n");
    std::fs::write(place.path("c.py"), b"'\xff'").expect("a writable folder");
    let ended = check(&place, &[]).code(2);
    assert_eq!(found(&ended), ["a.py"]);
    assert_eq!(found(&check(&place, &["--allow-unread"]).code(1)), ["a.py"]);
    let document = ended.json();
    let problems = document["problems"].as_array().expect("a list");
    assert!(problems.iter().any(|problem| problem["file"] == "b.py" && problem["line"] == 1));
    assert!(problems.iter().any(|problem| problem["file"] == "c.py"));
    check(&place, &["c.py"]).code(2);
}

#[test]
fn hints_are_shown_on_request_and_always_to_programs() {
    let place = Place::new();
    let text =
        "import torch\nfrom torch.utils.data import DataLoader\n\nloader = DataLoader([], num_workers=64)\n";
    place.write("a.py", text);
    place.caulk(&["check"]).code(0).prints("1 hint not shown: --info");
    place.caulk(&["check", "--info"]).code(0).prints("info[workers-oversubscribed]").prints("Found 1 hint");
    let concise = place.caulk(&["check", "--info", "--format", "concise"]);
    concise.code(0).prints("info[workers-oversubscribed]");
    let json = check(&place, &[]).json();
    let proof = &json["findings"][0]["proof"];
    for part in ["repeats", "kind", "outlives", "unreleased"] {
        assert!(["proven", "likely", "assumed"].contains(&proof[part].as_str().expect("text")), "{proof}");
    }
}

#[test]
fn the_project_s_settings_count() {
    let place = project(&["a.py", "lib/b.py", "old/c.py"]);
    let with = |settings: &str, arguments: &[&str]| {
        place.write("pyproject.toml", &format!("[tool.caulk]\n{settings}\n"));
        check(&place, arguments)
    };
    assert_eq!(found(&with("", &[]).code(1)), ["a.py", "lib/b.py", "old/c.py"]);
    assert_eq!(found(&with("select = ['figure']", &[]).code(0)), [""; 0]);
    assert_eq!(found(&with("ignore = ['cached-method']", &[]).code(0)), [""; 0]);
    assert_eq!(found(&with("ignore = ['all']", &["--isolated"]).code(1)).len(), 3);
    assert_eq!(found(&with("ignore = ['all']", &["--select", "cached-method"]).code(1)).len(), 3);
    assert_eq!(found(&with("exclude = ['old']", &["--exclude", "lib"])), ["a.py"]);
    assert_eq!(found(&with("per-file-ignores = {'lib/*' = ['container']}", &[])), ["a.py", "old/c.py"]);
    let info = with("severity = {cached-method = 'info'}", &["a.py"]).code(0);
    assert_eq!(info.json()["findings"][0]["severity"], "info");
    with("selct = []", &[]).code(2).says("did you mean `select`?").says("pyproject.toml");
    with("ignore = ['cached-metod']", &[]).code(2).says("did you mean `cached-method`?");
    with("severity = {cached-method = 'bad'}", &[]).code(2).says("write `error`, `warning` or `info`");
}

#[test]
fn comments_silence_and_are_told_where_they_do_not() {
    let place = project(&[]);
    place.write("a.py", &LEAKY.replace("@cache\n", "@cache  # caulk: ignore[cached-method] one instance\n"));
    place.caulk(&["check"]).code(0).prints("Not shown: 1 silenced by comments.");
    place.write("a.py", "x = 1  # caulk: ignore[cached-method]\n");
    place.caulk(&["check"]).code(0).prints("note: a.py:1:8: unused suppression");
}

#[test]
fn every_format_is_written() {
    let place = project(&["a.py"]);
    for (format, part) in [
        ("text", "--> a.py:3:5 in A.f"),
        ("concise", "a.py:3:5: warning[cached-method]"),
        ("sarif", "\"ruleId\": \"cached-method\""),
        ("github", "::warning title=caulk (cached-method),file=a.py,line=3"),
        ("gitlab", "\"check_name\": \"cached-method\""),
        ("markdown", "- **warning** `cached-method` `a.py:3:5`: "),
    ] {
        for option in ["--format", "--output-format"] {
            place.caulk(&["check", option, format]).code(1).prints(part);
        }
    }
    place.caulk(&["check", "--statistics"]).code(1).prints("1  warning  cached-method");
}

#[test]
fn rules_explain_themselves() {
    let place = Place::new();
    place.caulk(&["rules"]).code(0).prints("cached-method").prints("a functools cache on a method");
    let list = place.caulk(&["rules", "--output-format", "json"]).code(0).json();
    assert!(list["rules"].as_array().expect("a list").iter().any(|rule| rule["name"] == "cached-method"));
    place.caulk(&["rule", "cached-method"]).code(0).prints("\nWhat it finds\n");
    place.caulk(&["rule", "cached-metod"]).code(2).says("did you mean `cached-method`?");
    place.caulk(&["rule", "graph"]).code(2).says("is a group of rules");
    place.caulk(&["rule", "native-growth"]).code(0).prints("`caulk run` finds it in a running program");
    place.caulk(&["check", "--select", "native-growth"]).code(2).says("is not a pattern of source");
    let by_runs = list["found_by_runs"].as_array().expect("a list");
    assert!(by_runs.iter().any(|class| class["name"] == "native-growth"), "{by_runs:?}");
    place.caulk(&["check", "--help"]).code(0).prints("[tool.caulk]");
}

#[test]
fn a_baseline_knows_what_was_there() {
    let place = project(&["a.py", "pkg/b.py"]);
    place
        .caulk(&["check", "--write-baseline", "known.json"])
        .code(0)
        .says("Wrote 2 findings to `known.json`");
    place.caulk(&["check", "--baseline", "known.json"]).code(0).prints("2 known to the baseline");
    place.write("a.py", &format!("import os\n\n\n{LEAKY}\n    @cache\n    def g(self): pass\n"));
    let ended = check(&place, &["--baseline", "known.json"]).code(1);
    assert_eq!(ended.json()["findings"][0]["sites"][0]["function"], "A.g");
    place.write("pyproject.toml", "[tool.caulk]\nbaseline = 'known.json'\n");
    let mut command = place.command(&["check", "--output-format", "json"]);
    let inside = Ended::from(command.current_dir(place.path("pkg")).output().expect("the binary starts"));
    assert_eq!(found(&inside.code(0)), [""; 0]);
    place.caulk(&["check", "--baseline", "none.json"]).code(2).says("--write-baseline");
    place.write("known.json", "{}");
    place.caulk(&["check"]).code(2).says("is damaged");
}

#[test]
fn places_in_notebooks_carry_their_cell() {
    let place = project(&[]);
    let cells = r##"{"cells": [{"cell_type": "markdown", "source": ["# A"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "from functools import cache; run = lambda loader: [(A().f(), A().g()) for batch in loader]"]},
        {"cell_type": "code", "source": ["class A:\n", "    @cache\n", "    def f(self): pass\n", "!ls"]}],
        "metadata": {}, "nbformat": 4}"##;
    place.write("a.ipynb", cells);
    let ended = check(&place, &[]).code(1);
    let site = &ended.json()["findings"][0]["sites"][0];
    assert_eq!((&site["cell"], &site["line"], &site["column"]), (&3.into(), &2.into(), &5.into()));
    assert_eq!(ended.json()["problems"], serde_json::json!([]));
    place.caulk(&["check"]).code(1).prints("--> a.ipynb:cell 3:2:5 in A.f").prints(" 1 | class A:\n");
    place.write("b.ipynb", "{");
    place.caulk(&["check", "b.ipynb"]).code(2).prints("problem: b.ipynb: not a notebook");
}

#[test]
fn without_fixes_nothing_is_written() {
    let place = project(&[]);
    let advice = "for batch in loader:\n    handle = model.register_forward_hook(print)\n";
    place.write("a.py", advice);
    place.caulk(&["check", "--unsafe-fixes"]).code(1).prints("Left 1 warning");
    assert_eq!(place.read("a.py"), advice);
    let ended = place.caulk(&["check", "--diff"]).code(0).says("Left 1 warning");
    assert_eq!(ended.out, "");
}

#[test]
fn silence_is_explained() {
    let place = project(&["a.py"]);
    let say = |spot: &str, options: &[&str]| {
        place.caulk(&[&["check", "--explain-silence", spot], options].concat())
    };
    say("a.py:3", &[]).code(0).prints("@cache\n").prints("is reported as `cached-method`");
    say("a.py:3", &["--ignore", "all"]).code(0).prints("`--select cached-method` turns it on");
    say("a.py:1", &[]).code(0).prints("for batch in loader]\n  ");
    place.write("b.py", "LATEST = {}\n\nfor name, x in loader:\n    LATEST[name] = model(x)\n");
    say("b.py:4", &[]).code(0).prints("keys that the next pass brings again");
    place.write("lib/bank.py", "ROWS = []\n\ndef keep(x):\n    ROWS.append(x)\n");
    let train = "from lib.bank import keep\n\ndef main(loader):\n    for x in loader:\n        loss = model(x).sum()\n        \
                 loss.backward()\n        keep(loss)\n";
    place.write("train.py", train);
    say("lib/bank.py:4", &[]).code(0).prints("is reported as `graph-kept-in-container`");
    say("lib/bank.py:4", &["lib", "nowhere"]).code(2).says("no file or folder `nowhere`");
    say("a.py:99", &[]).code(2).says("`a.py` has no line 99");
    say("a.py", &[]).code(2).says("write for example train.py:84");
    place.write("a.py", &LEAKY.replace("@cache\n", "@cache  # caulk: ignore\n"));
    say("a.py:3", &[]).code(0).prints("a comment silences it");
}

#[test]
fn what_a_callee_does_decides_in_the_caller_whatever_the_cache_holds() {
    let place = project(&[]);
    place.write(
        "train.py",
        "import torch\nfrom keep import keep\n\nmodel = torch.nn.Linear(2, 2)\nkept = []\n\ndef main(loader):\n    \
         for x in loader:\n        loss = model(x).sum()\n        loss.backward()\n        kept.append(keep(loss))\n\n\
         main(torch.utils.data.DataLoader([1, 2, 3]))\n",
    );
    let with = |keep: &str, arguments: &[&str]| {
        place.write("keep.py", &format!("def keep(loss):\n    return {keep}\n"));
        found(&check(&place, &[&["train.py"], arguments].concat()))
    };
    for _ in 0..2 {
        assert_eq!(with("loss", &[]), ["train.py"]);
        assert_eq!(with("loss.item()", &["--ignore", "container"]), [""; 0]);
    }
    assert!(place.path("home/cache/check").is_dir());
    std::fs::remove_dir_all(place.path("home")).expect("the cache");
    assert_eq!(with("loss", &["--no-cache"]), ["train.py"]);
    assert!(!place.path("home").exists());
}

#[test]
fn changes_are_waited_for() {
    let place = project(&["a.py"]);
    let mut command = place.command(&["check", "--watch", "--output-format", "concise"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("a.py:3:5: warning[cached-method]")));
    assert!(lines.any(|line| line.starts_with("Found 1 warning")));
    place.write("a.py", "x = 1\n");
    assert!(lines.any(|line| line == "No leak patterns in 1 file."));
    place.write("b.py", LEAKY);
    assert!(lines.any(|line| line.starts_with("b.py:3:5")));
    child.kill().expect("it still runs");
    child.wait().expect("an end");
}

#[test]
fn a_run_that_is_not_there_is_an_error() {
    let place = project(&["a.py"]);
    place.caulk(&["check", "--with", "no-such-run"]).code(2).says("error: no runs recorded");
    place.caulk(&["run", "true"]).code(0);
    place.caulk(&["check", "--with", "no-such-run"]).code(2).says("error: no run `no-such-run`");
    let run = place.runs()[0].file_name().expect("a name").to_string_lossy().into_owned();
    place.caulk(&["check", "--with", &run]).code(1).prints("Found 1 warning");
}

/// A training whose `kept` keeps graphs; one fix, unsafe.
const TRAINING: &str = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nkept = []\n\ndef main(loader):\n    for x in loader:\n        loss = model(x).sum()\n        loss.backward()\n        kept.append(loss)\n\nmain(torch.utils.data.DataLoader([1, 2, 3]))\n";

fn fixed(text: &str) -> String {
    text.replace("kept.append(loss)", "kept.append(loss.detach())")
}

/// The graph rules alone, so that other rules may come and go.
const GRAPH: [&str; 3] = ["check", "--select", "graph"];

#[test]
fn fixes_are_applied_on_request() {
    let place = project(&[]);
    place.write("train.py", TRAINING);
    let caulk = |options: &[&str]| place.caulk(&[&GRAPH[..], options].concat());
    caulk(&[]).code(1).prints("1 can be fixed with --unsafe-fixes");
    caulk(&["--fix"]).code(1).prints("1 can be fixed with --unsafe-fixes");
    assert_eq!(place.read("train.py"), TRAINING);
    let diff = caulk(&["--unsafe-fixes", "--diff"]).code(1).says("Would fix 1 finding");
    assert!(
        diff.out.contains("-        kept.append(loss)\n+        kept.append(loss.detach())\n"),
        "{diff:#?}"
    );
    assert_eq!(place.read("train.py"), TRAINING);
    caulk(&["--unsafe-fixes"]).code(0).prints("Fixed 1 finding (1 graph-kept-in-container).");
    assert_eq!(place.read("train.py"), fixed(TRAINING));
    let again = caulk(&["--unsafe-fixes", "--diff"]).code(0);
    assert_eq!(again.out, "");
}

#[test]
fn fixes_keep_how_a_file_is_written() {
    let place = project(&[]);
    let windows = format!("\u{feff}{}", TRAINING.replace('\n', "\r\n"));
    place.write("a.py", &windows);
    let latin: Vec<u8> = [b"# coding: latin-1\n# \xe4\n", TRAINING.as_bytes()].concat();
    std::fs::write(place.path("b.py"), &latin).expect("a writable folder");
    let cell: Vec<String> =
        TRAINING.split_inclusive('\n').map(|line| serde_json::to_string(line).expect("JSON")).collect();
    let notebook = format!(
        "{{\"cells\": [{{\"cell_type\": \"code\", \"outputs\": [1.50], \"source\": [\"%cd a\\n\", {}]}}],\n \"metadata\": {{}}}}",
        cell.join(", ")
    );
    place.write("c.ipynb", &notebook);
    place.caulk(&[&GRAPH[..], &["--unsafe-fixes"]].concat()).code(0).prints("Fixed 3 findings");
    assert_eq!(place.read("a.py"), fixed(&windows));
    let expected = [b"# coding: latin-1\n# \xe4\n", fixed(TRAINING).as_bytes()].concat();
    assert_eq!(std::fs::read(place.path("b.py")).expect("a file"), expected);
    assert_eq!(place.read("c.ipynb"), fixed(&notebook));
}

#[test]
fn a_file_that_may_not_be_written_stays() {
    let place = project(&[]);
    let path = place.write("train.py", TRAINING);
    place.caulk(&[&GRAPH[..], &["--write-baseline", "known.json"]].concat()).code(0);
    let known = place.caulk(&[&GRAPH[..], &["--unsafe-fixes", "--baseline", "known.json"]].concat());
    known.code(0).prints("1 known to the baseline");
    assert_eq!(place.read("train.py"), TRAINING);
    let mut permissions = std::fs::metadata(&path).expect("a file").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).expect("an own file");
    let writable = std::fs::OpenOptions::new().write(true).open(&path).is_ok();
    let ended = place.caulk(&[&GRAPH[..], &["--unsafe-fixes"]].concat());
    // The superuser may write everything.
    assert!(writable || ended.out.contains("problem: train.py: failed to write"), "{ended:#?}");
}

#[test]
fn what_comes_from_standard_input_goes_to_standard_output() {
    let place = project(&[]);
    let mut command = place.command(&[&GRAPH[..], &["--unsafe-fixes", "-"]].concat());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(TRAINING.as_bytes()).expect("a reader");
    let ended = Ended::from(child.wait_with_output().expect("an end")).code(0).says("Fixed 1 finding");
    assert_eq!(ended.out, fixed(TRAINING));
}
