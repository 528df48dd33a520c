//! What the supervisor sees: processes from outside, agents over the socket, how it ended.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

#[expect(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::fs;
use std::io::Write;
use std::process::Command;

use caulk_core::wire::AT_END;
use common::{Bench, Ended, example};

/// Runs the agent with these arguments as the command.
fn agent(bench: &Bench, arguments: &[&str]) -> Ended {
    let mut command = vec![example("agent").to_str().unwrap().to_owned()];
    command.extend(arguments.iter().copied().map(String::from));
    bench.start(&command).end()
}

#[test]
fn an_agent_is_heard_to_its_last_word() {
    let ended = agent(&Bench::new(), &["hello", "epochs=2000"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let root = ended.lines("started ")[0];
    assert_eq!(ended.lines(&format!("event {root} hello ")), [root]);
    let boundaries = ended.lines(&format!("event {root} boundary "));
    assert_eq!(boundaries.len(), 2000);
    assert_eq!(boundaries.last(), Some(&"1999"));
    assert!(ended.lines("process ").last().unwrap().ends_with("main 0 agent true"), "{}", ended.log);
}

/// The profile is the agent's own work here; a sampler that is not there only makes the loader complain.
#[test]
fn what_a_killed_process_held_is_told_and_of_others_nothing() {
    let bench = || Bench::new().with("sampler=/nowhere/libcaulk_preload.so");
    let ended = agent(&bench(), &["hello", "epochs=1", "heap=5000", "kill"]);
    assert!(ended.outcome().starts_with("137 "), "{}", ended.log);
    let root = ended.lines("started ")[0];
    let told = ended.lines(&format!("event {root} HeapLive"));
    assert_eq!(told.len(), 1, "{}", ended.log);
    let end = format!("boundary: {AT_END}");
    assert!(told[0].contains(&end) && told[0].contains("bytes: 5000"), "{}", told[0]);
    // Of a child that is killed while the command goes on, once it is forgotten at the latest.
    let child = example("agent");
    let ended = bench().shell(&format!("{} hello epochs=1 heap=6000 kill; sleep 0.5", child.display()));
    assert!(ended.log.contains("bytes: 6000"), "{}", ended.log);
    // Says no word before, nor that it ends.
    let ended = agent(&bench(), &["heap=5000", "kill"]);
    assert!(!ended.log.contains("HeapLive"), "{}", ended.log);
}

/// Nothing is asked of it meanwhile, nor after its end.
#[test]
fn what_a_process_has_in_use_is_read_with_every_look_and_after_a_kill() {
    let bench = Bench::new().with("sampler=/nowhere/libcaulk_preload.so").with("period_ms=20");
    let run = bench.start(&[
        example("agent").to_str().unwrap(),
        "hello",
        "heap=5000",
        "uses=7000",
        "wait",
        "uses=9000",
        "kill",
    ]);
    let told = |run: &common::Run| (run.log().matches("counted ").count() > 2).then_some(());
    run.until(told);
    let mut run = run;
    run.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let ended = run.end();
    let root = ended.lines("started ")[0];
    assert!(ended.lines(&format!("counted {root} ")).contains(&"7000 2"), "{}", ended.log);
    let told = ended.lines(&format!("event {root} HeapLive"));
    assert!(told[0].contains("malloc_bytes: 9000, malloc_blocks: 2"), "{}", ended.log);
}

#[test]
fn garbage_closes_one_client_alone() {
    let false_length = format!("bytes={}", "ff".repeat(64));
    // A frame of the right length with a tag of ours and no fields.
    for garbage in [false_length.as_str(), "bytes=0100000001"] {
        let ended = agent(&Bench::new(), &["hello", "hang-up", garbage, "hang-up", "hello", "epochs=2"]);
        assert_eq!(ended.lines("note process ").len(), 1, "{}", ended.log);
        assert_eq!(ended.log.matches(" boundary ").count(), 2);
    }
    // A tag of a later version is skipped, and noted.
    let ended = agent(&Bench::new(), &["bytes=02000000fa00", "hello"]);
    assert_eq!(
        (ended.lines("note process ").len(), ended.log.matches(" hello ").count()),
        (1, 1),
        "{}",
        ended.log
    );
}

#[test]
fn roles_are_told_apart() {
    let agent = example("agent");
    let agent = agent.display();
    let script = format!(
        "{agent} rank=1 hello epochs=2; {agent} rank=0 hello epochs=2; {agent} worker=3 hello epochs=1; sleep 0.1"
    );
    let ended = Bench::new().shell(&script);
    let last: Vec<&str> = ended.lines("process ");
    for role in [" rank 1 ", " rank 0 ", " worker 3 "] {
        assert!(last.iter().any(|line| line.contains(role)), "{role}: {}", ended.log);
    }
    let script = format!("{agent} hello epochs=2; sleep 0.1");
    let ended = Bench::new().shell(&script);
    let root = ended.lines("started ")[0];
    let of_root = ended.lines(&format!("process {root} "));
    assert!(of_root.last().unwrap().contains(" other "), "{}", ended.log);
    let trains = |line: &&str| line.ends_with(" main 0 agent true");
    assert!(ended.lines("process ").iter().any(trains), "{}", ended.log);
}

#[test]
fn agents_learn_that_the_end_is_near() {
    let mut run = Bench::new().start(&[
        "sh",
        "-c",
        &format!("trap '' TERM; {} hello finish", example("agent").display()),
    ]);
    run.until(|run| run.log().contains(" hello ").then_some(()));
    run.signal(libc::SIGTERM);
    assert_eq!(run.read_until("\n"), "SIGTERM\n");
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn progress_is_a_whole_line_for_each_epoch_where_it_was_asked_for() {
    let ended = agent(&Bench::new().with("progress=line"), &["hello", "epochs=3"]);
    let start = |epoch| format!("caulk: epoch {epoch}: 700 MB in use, ");
    let lines: Vec<&str> = ended.stderr.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 3, "{}", ended.stderr);
    for (epoch, line) in (1..).zip(lines) {
        assert!(line.starts_with(&start(epoch)) && line.ends_with(" to tell\n"), "{line}");
    }
    for silent in ["progress=auto", "progress=none"] {
        assert_eq!(agent(&Bench::new().with(silent), &["hello", "epochs=3"]).stderr, "", "{silent}");
    }
}

#[test]
fn without_epochs_progress_waits() {
    let ended = agent(&Bench::new().with("progress=line"), &["hello", "seconds=3"]);
    assert_eq!(ended.stderr, "");
}

#[test]
fn memory_is_seen_from_outside() {
    let program = "import time; x = bytearray(90_000_000); input()";
    let run = Bench::new().start(&["python3", "-c", program]);
    let root =
        run.until(|run| run.log().lines().find_map(|line| line.strip_prefix("started ").map(String::from)));
    run.until(|run| {
        let log = run.log();
        let mut samples = log.lines().filter_map(|line| line.strip_prefix(&format!("sample {root} ")));
        samples
            .any(|sample| {
                let (rss, pss) = sample.split_once(' ').unwrap();
                let pss = pss.strip_prefix("Some(").and_then(|pss| pss.strip_suffix(')'));
                let large = |bytes: &str| bytes.parse::<u64>().unwrap() > 90_000_000;
                large(rss) && pss.is_some_and(large)
            })
            .then_some(())
    });
    drop(run.end());
}

#[test]
fn thousands_of_children_are_counted_and_forgotten() {
    let script = "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done";
    let ended = Bench::new().with("period_ms=5").shell(script);
    assert_eq!(ended.code, Some(0));
    let most = ended
        .lines("system ")
        .iter()
        .map(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap())
        .max();
    assert!(most <= Some(10), "{most:?} at once");
}

#[test]
fn a_process_that_went_its_own_way_is_known_by_its_mark() {
    let bench = Bench::new();
    // The parent ends before anybody looks: the grandchild has another parent by then.
    let script = "(sh -c 'exec sleep 1000 </dev/null' & echo $!) ; read line";
    let mut run = bench.start(&["sh", "-c", script]);
    let pid = run.read_until("\n").trim().to_owned();
    run.until(|run| run.log().contains(&format!("\nprocess {pid} ")).then_some(()));
    common::kill(pid.parse().unwrap(), libc::SIGKILL);
    run.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn silence_of_python_is_explained() {
    let check = |command: &[&str], reason: &str| {
        let run = Bench::new().with("period_ms=20").start(command);
        // It lives until it has been looked at as what it is.
        let looks = |log: &str| log.rfind(" python").map_or(0, |at| log[at..].matches("\nsystem ").count());
        run.until(|run| (looks(&run.log()) > 2).then_some(()));
        let ended = run.end();
        let notes = ended.lines("note ");
        assert!(notes.iter().any(|note| note.contains(reason)), "{command:?}: {}", ended.log);
    };
    // Not the script of a version manager that stands before it, under whose name it would be looked at.
    let told = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let python = told.trim_end();
    check(&[python, "-I", "-c", "input()"], "option -I");
    check(&[python, "-E", "-c", "input()"], "option -E");
    check(&[python, "-uS", "-c", "input()"], "option -S");
    check(
        &["env", "-i", "/usr/bin/env", "PATH=/usr/bin:/bin", "python3", "-c", "input()"],
        "environment did not reach it",
    );
    check(&["sh", "-c", &format!("exec env -i {python} -c 'input()'")], "environment did not reach it");
    let replaced = format!("PYTHONPATH=/elsewhere exec {python} -c 'input()'");
    check(&["sh", "-c", &replaced], "was replaced on the way");
    // Only root can become somebody else.
    if rustix::process::geteuid().is_root() {
        let nobody = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", "input()"];
        check(&nobody, "as another user");
    }
}

/// A container with a limit of 100 MB that counts `before` OOM kills, and `after` once the script has run.
fn check_death(script: &str, after: u32, level: u64, expected: &str) {
    let bench = Bench::new();
    let root = bench.folder.path().join("cgroup");
    fs::create_dir_all(&root).unwrap();
    let events = |kills: u32| format!("oom {kills}\noom_kill {kills}\n");
    for (name, text) in [("max", "104857600\n".into()), ("current", level.to_string()), ("events", events(1))]
    {
        fs::write(root.join(format!("memory.{name}")), text).unwrap();
    }
    let bench = bench.with(&format!("cgroup={}", root.display()));
    let mut run = bench.start(&["sh", "-c", &format!("read line; {script}")]);
    run.until(|run| run.log().contains("\nsystem ").then_some(()));
    fs::write(root.join("memory.events"), events(after)).unwrap();
    run.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let ended = run.end();
    assert!(ended.outcome().contains(expected), "{}", ended.outcome());
}

#[test]
fn kills_are_told_apart() {
    check_death("kill -KILL $$", 2, 10_000_000, "137 Some(Oom)");
    check_death("kill -KILL $$", 1, 10_000_000, "137 Some(NotOom)");
    check_death("kill -KILL $$", 1, 104_000_000, "137 Some(ProbablyOom)");
    check_death("sh -c 'kill -KILL $$'; exit 1", 2, 10_000_000, "1 Some(Oom)");
    check_death("sh -c 'kill -KILL $$'; exit 137", 1, 10_000_000, "137 Some(NotOom)");
    check_death("kill -SEGV $$", 1, 104_000_000, "139 None ended by signal 11 (SIGSEGV)");
    check_death("exit 0", 1, 104_000_000, "0 None exited with code 0");
}

#[test]
fn nothing_is_left_behind() {
    let bench = Bench::new();
    bench.shell("true");
    let left = |folder: &str| fs::read_dir(bench.folder.path().join(folder)).unwrap().count();
    assert_eq!((left("runtime"), left("caulk/_inject")), (0, 0));
}

#[test]
fn a_program_ends_after_the_epochs_that_are_wanted() {
    let agent = example("agent");
    let agent = agent.to_str().unwrap();
    let ended = Bench::new().with("epochs=3").start(&[agent, "hello", "epochs=4", "wait"]);
    let ended = ended.until_end();
    assert_eq!(ended.outcome(), "143 None 3 epochs were over");
    let ended = Bench::new().with("epochs=4").start(&[agent, "hello", "epochs=4"]).end();
    assert_eq!(ended.outcome(), "0 None exited with code 0");
}

#[test]
fn a_program_behind_a_shell_ends_too() {
    let agent = example("agent");
    let script = format!("{} hello epochs=3 wait; exit 5", agent.display());
    let ended = Bench::new().with("epochs=2").start(&["sh", "-c", &script]).until_end();
    assert!(ended.outcome().ends_with("2 epochs were over"), "{}", ended.outcome());
}
