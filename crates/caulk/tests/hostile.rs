//! `caulk check` on a tree that somebody has made to do harm.

#[allow(dead_code, reason = "shared by several test programs, none of which needs all of it")]
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::{Ended, Place, Watched};

/// A training whose `kept` keeps graphs; one fix, unsafe.
const TRAINING: &str = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nkept = []\n\ndef main(loader):\n    for x in loader:\n        loss = model(x).sum()\n        loss.backward()\n        kept.append(loss)\n\nmain(torch.utils.data.DataLoader([1, 2, 3]))\n";

/// Memory that no check of a small tree needs, in bytes.
const ROOM: u64 = 512 << 20;

fn fixed(text: &str) -> String {
    text.replace("kept.append(loss)", "kept.append(loss.detach())")
}

/// Two folders side by side: a project with these files, and `outside`.
fn project(files: &[(&str, &str)]) -> Place {
    let place = Place::new();
    place.write("job/pyproject.toml", "[project]\nname = 'x'\n");
    for (file, text) in files {
        place.write(&format!("job/{file}"), text);
    }
    place
}

/// Runs in the project, killed where it hangs or grows beyond [`ROOM`].
fn caulk(place: &Place, arguments: &[&str]) -> Watched {
    let mut command = place.command(&[&["check", "--select", "graph"], arguments].concat());
    Watched::run(command.current_dir(place.path("job")), ROOM)
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a writable folder");
}

fn link(to: impl AsRef<Path>, path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
    symlink(to, path).expect("a writable folder");
}

/// The files and reasons of a list in the report.
fn listed(ended: &Ended, key: &str) -> Vec<(String, String)> {
    let text = |entry: &serde_json::Value, key: &str| entry[key].as_str().expect("a text").to_owned();
    let list = ended.json()[key].as_array().expect("a list").clone();
    list.iter().map(|entry| (text(entry, "file"), text(entry, "message"))).collect()
}

#[test]
fn fixes_do_not_leave_the_project_through_links() {
    let place = project(&[("own.py", TRAINING), (".gitignore", "/ignored\n"), ("ignored/e.py", TRAINING)]);
    for file in ["outside/a.py", "outside/pkg/b.py", "outside/pkg/__init__.py", "job/.venv/lib/c.py"] {
        place.write(file, TRAINING);
    }
    link(place.path("outside/a.py"), &place.path("job/absolute.py"));
    link("../outside/a.py", &place.path("job/relative.py"));
    link("absolute.py", &place.path("job/twice.py"));
    link(".venv/lib/c.py", &place.path("job/environment.py"));
    link("ignored/e.py", &place.path("job/ignored.py"));
    link("own.py", &place.path("job/inside.py"));
    link("../outside/pkg", &place.path("job/folder"));
    let ended = caulk(&place, &["--unsafe-fixes", "--output-format", "json", ".", "folder/b.py"]).ended;
    let ended = ended.code(1);
    for file in ["outside/a.py", "outside/pkg/b.py", "job/.venv/lib/c.py", "job/ignored/e.py"] {
        assert_eq!(place.read(file), TRAINING, "{file}");
    }
    assert_eq!(place.read("job/own.py"), fixed(TRAINING));
    let left = listed(&ended, "left");
    let files: Vec<&str> = left.iter().map(|(file, _)| file.as_str()).collect();
    let expected = ["absolute.py", "environment.py", "folder/b.py", "ignored.py", "relative.py", "twice.py"];
    assert_eq!(files, expected);
    assert!(left.iter().all(|(_, why)| why.contains("a link leads out of the project, to `/")), "{left:?}");
    let document = ended.json();
    assert_eq!(
        (document["summary"]["fixed"].as_u64(), document["findings"].as_array().map(Vec::len)),
        (Some(2), Some(6))
    );
    // What is shown is what would be done.
    place.write("job/own.py", TRAINING);
    let diff =
        caulk(&place, &["--unsafe-fixes", "--diff"]).ended.code(1).says("problem: absolute.py: it stays");
    assert!(diff.out.contains("+++ b/own.py") && !diff.out.contains("absolute.py"), "{diff:#?}");
    let text = caulk(&place, &["--unsafe-fixes"]).ended.code(1);
    text.prints("problem: absolute.py: it stays as it is: a link leads out of the project");
}

#[test]
fn fixes_do_not_leave_an_unmarked_tree_through_links() {
    let place = Place::new();
    place.write("outside/a.py", TRAINING);
    place.write("tree/own.py", TRAINING);
    link("../outside", &place.path("tree/src"));
    link("../outside/a.py", &place.path("tree/a.py"));
    let fix = |directory: &str, path: &str| {
        let mut command = place.command(&["check", "--select", "graph", "--unsafe-fixes", path]);
        Watched::run(command.current_dir(place.path(directory)), ROOM).ended
    };
    let whole = place.path("tree/src").display().to_string();
    for (directory, path) in
        [("tree", "src"), ("tree", "src/a.py"), ("tree", "a.py"), ("", "tree/src"), ("home", &whole)]
    {
        fs::create_dir_all(place.path("home")).expect("a writable folder");
        fix(directory, path).code(1).prints("a link leads out of the project");
        assert_eq!(place.read("outside/a.py"), TRAINING, "{directory} {path}");
    }
    fix("tree", "own.py");
    assert_eq!(place.read("tree/own.py"), fixed(TRAINING));
}

#[test]
fn a_source_stays_whole_where_nothing_can_be_written() {
    let place = project(&[("train.py", TRAINING)]);
    let script =
        "trap '' XFSZ; ulimit -f 0; exec \"$0\" check --select graph --unsafe-fixes --output-format json";
    let caulk = place.command::<&str>(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(caulk.get_program()).current_dir(place.path("job"));
    let ended = Watched::run(&mut command, ROOM).ended.code(2);
    assert_eq!(place.read("job/train.py"), TRAINING);
    assert_eq!(support::entries(&place.path("job")).iter().filter(|path| path.is_file()).count(), 2);
    let document = ended.json();
    assert_eq!(
        (document["summary"]["fixed"].as_u64(), document["findings"].as_array().map(Vec::len)),
        (Some(0), Some(1))
    );
    assert_eq!(listed(&ended, "left")[0].0, "train.py");
}

#[test]
fn names_forge_nothing_in_a_patch() {
    let place = project(&[]);
    let names = [
        "a\n+++ b/evil.py\n@@ -1 +1 @@\n-x\n+y.py",
        "b\x1b[2J\u{9b}m.py",
        "c\n::error::pwned.py",
        "d \"ä.py",
    ];
    for name in names {
        place.write(&format!("job/{name}"), TRAINING);
    }
    let diff = caulk(&place, &["--unsafe-fixes", "--diff"]).ended.code(1);
    let both = format!("{}{}", diff.out, diff.err);
    assert!(!both.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{diff:#?}");
    assert!(!both.lines().any(|line| line.trim_start().starts_with("::")), "{diff:#?}");
    assert_eq!(diff.out.lines().filter(|line| line.starts_with("+++ ")).count(), names.len(), "{diff:#?}");
    assert!(diff.out.contains("+++ \"b/b\\033[2J\\302\\233m.py\"\n"), "{diff:#?}");
    // Every patch is of the file that it was made for.
    place.write("all.patch", &diff.out);
    let mut git = std::process::Command::new("git");
    git.args(["apply", "--unsafe-paths", "../all.patch"]).current_dir(place.path("job"));
    if git.status().is_ok_and(|status| status.success()) {
        for name in names {
            assert_eq!(place.read(&format!("job/{name}")), fixed(TRAINING), "{name:?}");
        }
    }
    assert!(!place.path("job/evil.py").exists());
}

#[test]
fn no_output_steers_a_terminal_or_a_log() {
    let hostile = TRAINING
        .replace("kept.append(loss)", "kept.append(loss)  # \x1b]0;x\x07 ##[error]x \u{9b}2J\r::error::y");
    let place = project(&[]);
    for name in ["::error::a.py", "b\n::error::b.py", "c\x1b[m\u{9b}\u{202e}##[error].py"] {
        place.write(&format!("job/{name}"), &hostile);
        place.write(&format!("job/x{name}"), "x = (\n");
    }
    for format in ["text", "concise", "json", "sarif", "github", "gitlab"] {
        let ended = caulk(&place, &["--output-format", format, "--no-cache"]).ended.code(2);
        check_log(&ended, format == "github");
    }
    check_log(&caulk(&place, &["--unsafe-fixes", "--diff"]).ended.code(2), false);
    check_log(&caulk(&place, &["--statistics"]).ended.code(2), false);
    place.write("job/d.py", &format!("{hostile}::error::\n"));
    check_log(&caulk(&place, &["--explain-silence", "d.py:11"]).ended.code(0), false);
    check_log(&caulk(&place, &["--explain-silence", "d.py:10"]).ended.code(0), false);
    // Settings quote what is wrong, and errors name their file.
    let folder = place.path("x\nhint: rm -rf ~\n::error::\x1b[m");
    fs::create_dir_all(&folder).expect("a writable folder");
    fs::write(folder.join("pyproject.toml"), "[tool.caulk]\nx = \"\x1b]0;::error::\n")
        .expect("a writable folder");
    let ended = Watched::run(place.command(&["check"]).current_dir(&folder), ROOM).ended.code(2);
    check_log(&ended, false);
    assert!(!ended.err.lines().any(|line| line.starts_with("hint: rm")), "{ended:#?}");
    let ended = Watched::run(place.command(&["check", "\x1b[m\n::error::x"]).current_dir(&folder), ROOM)
        .ended
        .code(2);
    check_log(&ended, false);
}

#[track_caller]
fn check_log(ended: &Ended, commands: bool) {
    let both = format!("{}{}", ended.out, ended.err);
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!both.contains(steers), "{ended:#?}");
    let command = |line: &&str| line.trim_start().starts_with("::") || line.contains("##[");
    for line in both.lines().filter(command) {
        let own = ["::error title=caulk", "::warning title=caulk", "::notice title=caulk"];
        assert!(commands && own.iter().any(|start| line.starts_with(start)), "{line}\n{ended:#?}");
    }
}

#[test]
fn pipes_and_devices_stop_nothing() {
    // What is in the way of a source is one file that was not read; of settings, an error.
    for name in ["x.py", "x.ipynb", ".gitignore", ".ignore", "sub/.gitignore", ".git/info/exclude"] {
        for device in [None, Some("/dev/zero")] {
            let place = project(&[("train.py", TRAINING), ("sub/a.py", "")]);
            let path = place.path(&format!("job/{name}"));
            fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
            device.map_or_else(|| pipe(&path), |device| link(device, &path));
            let ended = caulk(&place, &["--output-format", "json"]).ended.code(2);
            let unread = listed(&ended, "unread");
            assert_eq!(unread.len(), 1, "{ended:#?}");
            assert!(unread[0].0 == name && unread[0].1.contains("not a plain file, but a"), "{unread:?}");
            assert_eq!(ended.json()["summary"]["files"], 2);
            caulk(&place, &["--allow-unread"]).ended.code(1).prints("2 files, 1 not read");
        }
    }
    for name in ["pyproject.toml", "known.json"] {
        for device in [None, Some("/dev/zero")] {
            let place = project(&[("train.py", TRAINING)]);
            let path = place.path(&format!("job/{name}"));
            let _ = fs::remove_file(&path);
            device.map_or_else(|| pipe(&path), |device| link(device, &path));
            let ended = caulk(&place, &["--baseline", "known.json"]).ended.code(2);
            ended.says("not a plain file, but a").says(name);
        }
    }
    // git's own files in place of a folder, and what is named by itself.
    for device in [None, Some("/dev/zero")] {
        let place = project(&[("train.py", TRAINING)]);
        let path = place.path("job/.git");
        device.map_or_else(|| pipe(&path), |device| link(device, &path));
        caulk(&place, &[]).ended.code(1).prints("looked at 1 file.");
        caulk(&place, &["--unsafe-fixes", "--diff"]).ended.code(1);
        let path = place.path("job/named");
        device.map_or_else(|| pipe(&path), |device| link(device, &path));
        caulk(&place, &["named"]).ended.code(2).prints("problem: named: not a plain file");
    }
}

#[test]
fn odd_trees_are_looked_at_as_far_as_they_go() {
    let place = project(&[("train.py", TRAINING)]);
    let job = place.path("job");
    link("loop.py", &job.join("loop.py"));
    link("b", &job.join("a"));
    link("a", &job.join("b"));
    link(".", &job.join("here"));
    link("user@host.123:456", &job.join(".#train.py"));
    fs::write(job.join(OsStr::from_bytes(b"bad\xff.py")), "").expect("a writable folder");
    fs::write(job.join(OsStr::from_bytes(b"data\xff.bin")), "").expect("a writable folder");
    let ended = caulk(&place, &["--output-format", "json"]).ended.code(2);
    let unread: Vec<String> = listed(&ended, "unread").into_iter().map(|(file, _)| file).collect();
    assert_eq!(unread, ["bad\u{fffd}.py", "loop.py"]);
    assert_eq!(ended.json()["summary"]["files"], 1);
}

#[test]
fn the_cache_follows_no_link() {
    for name in [".caulk", ".caulk/cache", ".caulk/cache/check"] {
        let place = project(&[("train.py", TRAINING)]);
        place.write("outside/keep.txt", "");
        for number in 0..20 {
            place.write(&format!("outside/{number}"), "");
            place.write(&format!("outside/cache/check/{number}"), "");
            place.write(&format!("outside/check/{number}"), "");
        }
        link(place.path("outside"), &place.path(&format!("job/{name}")));
        let mut command = place.command(&["check"]);
        Watched::run(command.env_remove("CAULK_HOME").current_dir(place.path("job")), ROOM).ended.code(1);
        for folder in ["outside", "outside/cache/check", "outside/check"] {
            let files = support::entries(&place.path(folder));
            let files = files.iter().filter(|path| path.is_file()).count();
            assert_eq!(files, if folder == "outside" { 21 } else { 20 }, "{name} {folder}");
        }
    }
    let place = project(&[("train.py", TRAINING)]);
    fs::create_dir_all(place.path("job/.caulk/cache")).expect("a writable folder");
    link(place.path("outside"), &place.path("job/.caulk/cache/.gitignore"));
    let mut command = place.command(&["check"]);
    Watched::run(command.env_remove("CAULK_HOME").current_dir(place.path("job")), ROOM).ended.code(1);
    assert!(place.path("job/.caulk/cache/check").is_dir() && !place.path("outside").exists());
}

#[test]
fn a_baseline_is_not_written_through_a_link() {
    let place = project(&[("train.py", TRAINING)]);
    place.write("outside/.bashrc", "precious");
    link("../outside/.bashrc", &place.path("job/known.json"));
    link("../outside/new", &place.path("job/new.json"));
    for name in ["known.json", "new.json"] {
        caulk(&place, &["--write-baseline", name])
            .ended
            .code(2)
            .says("is a link")
            .says("hint: name that file");
    }
    assert_eq!(place.read("outside/.bashrc"), "precious");
    assert!(!place.path("outside/new").exists());
}

#[test]
fn what_was_not_looked_at_is_not_counted_and_fails() {
    let deep = format!("x = {}{}\n", "[".repeat(1000), "]".repeat(1000));
    let place = project(&[("a.py", "x = 1\n"), ("syntax.py", "def (:\n"), ("deep.py", &deep)]);
    place.write("job/long.py", &"x = 1\n".repeat(1_000_000));
    place.write("job/coding.py", "# coding: klingon\n");
    fs::write(place.path("job/bytes.py"), b"'\xff'").expect("a writable folder");
    place.write("job/broken.ipynb", "{");
    let expected = ["broken.ipynb", "bytes.py", "coding.py", "deep.py", "long.py", "syntax.py"];
    let ended = caulk(&place, &["--output-format", "json"]).ended.code(2);
    let unread: Vec<String> = listed(&ended, "unread").into_iter().map(|(file, _)| file).collect();
    assert_eq!(unread, expected);
    let summary = &ended.json()["summary"];
    assert_eq!((summary["files"].as_u64(), summary["unread"].as_u64()), (Some(1), Some(6)));
    caulk(&place, &[]).ended.code(2).prints("No leak patterns in 1 file, 6 not read.");
    caulk(&place, &["--unsafe-fixes"]).ended.code(2).prints("1 file, 6 not read.");
    caulk(&place, &["--unsafe-fixes", "--diff"]).ended.code(2).says("1 file, 6 not read.");
    caulk(&place, &["--write-baseline", "known.json"]).ended.code(2).says("warning: deep.py");
    let sarif = caulk(&place, &["--output-format", "sarif"]).ended.code(2).json();
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let allowed = caulk(&place, &["--output-format", "sarif", "--allow-unread"]).ended.code(0).json();
    assert_eq!(allowed["runs"][0]["invocations"][0]["executionSuccessful"], true);
    let notes = invocation["toolExecutionNotifications"].as_array().expect("a list");
    assert_eq!(notes.iter().filter(|note| note["descriptor"]["id"] == "unread").count(), 6);
    caulk(&place, &["--allow-unread"]).ended.code(0).prints("No leak patterns in 1 file, 6 not read.");
    place.write("job/train.py", TRAINING);
    caulk(&place, &[]).ended.code(2);
    caulk(&place, &["--allow-unread"]).ended.code(1);
    place.write("job/pyproject.toml", "[tool.caulk]\nallow-unread = true\n");
    caulk(&place, &[]).ended.code(1);
    place.write("job/pyproject.toml", "[tool.caulk]\nallow-unread = 1\n");
    caulk(&place, &[]).ended.code(2).says("must be true or false");
}

#[test]
fn rules_and_settings_are_bounded() {
    let place = project(&[("train.py", TRAINING), ("a/kept.py", "")]);
    let (rules, mut folder) = ("a*b*c\n".repeat(40_000), "job".to_owned());
    for _ in 0..5 {
        folder.push_str("/a");
        place.write(&format!("{folder}/.gitignore"), &rules);
    }
    let ended = caulk(&place, &["--output-format", "json"]).ended.code(2);
    assert!(
        listed(&ended, "unread")
            .iter()
            .all(|(file, why)| file.ends_with(".gitignore") && why.contains("its rules are not known"))
    );
    assert_eq!(ended.json()["summary"]["files"], 2);
    place.write("job/.gitignore", &"x\n".repeat(200_000));
    place.write("job/pyproject.toml", &format!("[tool.caulk]\nexclude = [{}]\n", "'a*b*c',".repeat(100_000)));
    caulk(&place, &[]).ended.code(2).says("pyproject.toml`: larger than 256 kB").says("hint: `--isolated`");
}

/// Sources that take as much memory as a source can, and what becomes of them: each is looked at, or known to be too deep.
#[test]
fn memory_is_bounded_by_the_size_of_a_source() {
    let size = 100_000;
    let text =
        |start: &str, part: &str, end: &str| format!("{start}{}{end}\n", part.repeat(size / part.len()));
    let open = |part: &str| format!("x = {}1\n", part.repeat(400_000 / part.len()));
    let deep = |part: &str, end: &str| format!("x = {}1{}\n", part.repeat(400_000), end.repeat(400_000));
    let sources = [
        ("parentheses", deep("(", ")")),
        ("open", open("(")),
        ("brackets", deep("[{(", ")}]")),
        ("unary", open("-")),
        ("not", open("not ")),
        ("power", open("1**")),
        ("lambda", open("lambda:")),
        ("ternary", open("1 if 1 else ")),
        ("attributes", text("x = a", ".b", "")),
        ("calls", text("x = a", "()", "")),
        ("sum", text("x = 1", "+a", "")),
        ("mixed", text("x = ", "-f(lambda a, b: [", "")),
        ("formatted", text("x = ", "f'{", "")),
        ("lists", text("x = [", "[[]],", "]")),
        ("sets", text("x = [", "{a},", "]")),
        ("names", text("x = [", "a,", "]")),
        ("statements", text("", "a=[]\n", "")),
        ("functions", text("", "def f(a):a\n", "")),
        ("branches", text("if a:a\n", "elif a:a\n", "")),
        ("strings", text("x = (", "'' ", ")")),
        ("broken", text("", "(\n", "")),
        ("unknown", text("", "$", "")),
    ];
    for (name, text) in sources {
        let place = project(&[("a.py", &text)]);
        // What the program itself takes, and what its source says of each byte.
        let room = (70 << 20) + 400 * u64::try_from(text.len()).expect("a size");
        let ran = |place: &Place, arguments: &[&str]| {
            let mut command = place.command(&[&["check", "--no-cache"], arguments].concat());
            let ended = Watched::run(command.current_dir(place.path("job")), room).ended;
            assert!(ended.code.is_some(), "{name}: {ended:#?}");
        };
        ran(&place, &["a.py"]);
        if name == "parentheses" {
            ran(&place, &["--fix"]);
            fs::remove_file(place.path("job/a.py")).expect("a file");
            let source = format!("%cd x\n{text}# caulk: ignore\n");
            let cells =
                serde_json::json!({"cells": [{"cell_type": "code", "source": source}], "metadata": {}});
            place.write("job/a.ipynb", &cells.to_string());
            ran(&place, &["a.ipynb"]);
        }
    }
}
