//! The command does not notice the supervisor: exit codes, signals, streams, environment.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

#[expect(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use common::{Bench, until};

#[test]
fn exit_codes_are_the_commands_own() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255)] {
        assert_eq!(Bench::new().shell(script).code, Some(code), "{script}");
    }
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("SEGV", 139), ("INT", 130)] {
        assert_eq!(Bench::new().shell(&format!("kill -{signal} $$")).code, Some(code), "{signal}");
    }
}

#[test]
fn commands_that_do_not_start_say_why() {
    let bench = Bench::new();
    let file = |name: &str, text: &str, mode: u32| {
        let path = bench.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", "echo", 0o644);
    let program = file("train.py", "pass", 0o644);
    let orphan = file("orphan", "#!/no/such/interpreter\n", 0o755);
    let check = |command: &str, code: i32, text: &str| {
        let ended = bench.start(&[command]).end();
        assert_eq!(ended.code, Some(code), "{command}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{command}: {}", ended.stderr);
        assert!(bench.folder.path().join("runtime").read_dir().unwrap().next().is_none());
    };
    check("caulk-no-such-command", 127, "command `caulk-no-such-command` not found");
    check("/no/such/command", 127, "not found");
    check("", 127, "not found");
    check(&plain, 126, "chmod +x");
    check(&program, 126, "caulk run -- python");
    check(&orphan, 126, "names an interpreter that does not exist");
    check("/", 126, "cannot be executed");
    let empty: [&str; 0] = [];
    assert_eq!(bench.start(&empty).end().code, Some(125));
}

#[test]
fn streams_pass_byte_for_byte() {
    let bytes: Vec<u8> = (0..400_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut run = Bench::new().start(&["sh", "-c", "cat; printf error >&2"]);
    let mut stdin = run.child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let ended = run.end();
    writer.join().unwrap();
    assert!(ended.stdout == bytes && ended.stderr == "error");
}

#[test]
fn the_environment_changes_by_prefixes_alone() {
    let bench = Bench::new();
    let mut command = bench.command(&["env"]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("PYTHONPATH", "/mine:/yours").env("EMPTY", "").env("ODD", "a\nb");
    let text = String::from_utf8(bench.start_as(&mut command).end().stdout).unwrap();
    let package = bench.folder.path().to_str().unwrap();
    assert!(text.contains(&format!("\nPYTHONPATH={package}/caulk/_inject:/mine:/yours\n")), "{text}");
    assert!(text.contains(&format!("CAULK_AGENT=package={package}\n")), "{text}");
    let names =
        ["PATH", "PYTHONPATH", "EMPTY", "ODD", "CAULK_AGENT", "CAULK_BOARD", "CAULK_RUN", "CAULK_SOCKET"];
    let unknown =
        text.lines().filter(|line| !names.iter().any(|name| line.starts_with(name)) && *line != "b");
    assert_eq!(unknown.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_package_with_a_colon_in_its_path_is_reached_by_a_link() {
    let bench = Bench::new();
    let odd = bench.folder.path().join("a:b;c/caulk");
    fs::create_dir_all(odd.join("_inject")).unwrap();
    fs::write(odd.join("_inject/here"), "found").unwrap();
    let bench = bench.with(&format!("package={}", odd.to_str().unwrap()));
    let ended = bench.shell("cat ${PYTHONPATH%%:*}/here");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "found", "{}", ended.stderr);
}

/// What `/proc/self/status` says about signals, without the supervisor and with it.
fn check_dispositions(prepare: unsafe fn()) {
    let bench = Bench::new();
    let read = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let mut plain = std::process::Command::new("sh");
    let mut supervised = bench.command(&["sh", "-c", read]);
    plain.args(["-c", read]).stdout(Stdio::piped());
    for command in [&mut plain, &mut supervised] {
        let prepare = move || {
            // SAFETY: as the caller says, async-signal-safe.
            unsafe { prepare() };
            Ok(())
        };
        // SAFETY: the closure calls async-signal-safe functions alone.
        unsafe { command.pre_exec(prepare) };
    }
    let plain = String::from_utf8(plain.output().unwrap().stdout).unwrap();
    let supervised = String::from_utf8(bench.start_as(&mut supervised).end().stdout).unwrap();
    assert_eq!(supervised, plain);
}

#[test]
fn dispositions_and_mask_are_those_the_supervisor_found() {
    check_dispositions(|| {});
    check_dispositions(|| {
        for signal in [libc::SIGPIPE, libc::SIGHUP, libc::SIGCHLD, libc::SIGXFSZ] {
            // SAFETY: changes a disposition; takes numbers.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    });
}

#[test]
fn a_signal_to_the_supervisor_reaches_the_command_once() {
    let signals = [
        (libc::SIGHUP, "SIGHUP\n"),
        (libc::SIGINT, "SIGINT\n"),
        (libc::SIGUSR1, "SIGUSR1\n"),
        (libc::SIGUSR2, "SIGUSR2\n"),
        (libc::SIGTERM, "SIGTERM\n"),
    ];
    let mut run = Bench::new().start(&["python3", "-c", common::NAME_SIGNALS]);
    run.read_until("ready\n");
    for (signal, name) in signals {
        run.signal(signal);
        assert_eq!(run.read_until("\n"), name);
    }
    run.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout), (Some(3), Vec::new()));
}

#[test]
fn a_signal_to_the_group_is_not_sent_again() {
    let bench = Bench::new();
    let mut run = bench.start_as(bench.command(&["python3", "-c", common::NAME_SIGNALS]).process_group(0));
    run.read_until("ready\n");
    for _ in 0..3 {
        common::kill(-run.pid(), libc::SIGHUP);
        assert_eq!(run.read_until("\n"), "SIGHUP\n");
        // Of signals that wait the kernel gives the lower number first: this one is passed on after the other was.
        run.signal(libc::SIGTERM);
        assert_eq!(run.read_until("\n"), "SIGTERM\n");
    }
    run.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let ended = run.end();
    assert_eq!((ended.code, ended.stdout), (Some(3), Vec::new()));
}

#[test]
fn a_killed_supervisor_leaves_the_command_unharmed() {
    let bench = Bench::new();
    let done = bench.folder.path().join("done");
    let script = format!("echo $$; read line; echo on; touch {}", done.display());
    let mut run = bench.start(&["sh", "-c", &script]);
    run.read_until("\n");
    let mut stdin = run.child.stdin.take().unwrap();
    run.signal(libc::SIGKILL);
    assert_eq!(run.child.wait().unwrap().code(), None);
    stdin.write_all(b"\n").unwrap();
    until(&done, |done| done.exists().then_some(()));
    assert_eq!(run.read_until("on\n"), "on\n");
    // Nothing of the supervisor's is left that holds the pipe open: it ends with the command.
    assert!(run.end().stdout.is_empty());
}

#[test]
fn what_a_killed_supervisor_left_is_swept() {
    let bench = Bench::new();
    let mut run = bench.start(&["sh", "-c", "echo ready; read line"]);
    run.read_until("ready\n");
    run.signal(libc::SIGKILL);
    let runtime = run.runtime.clone();
    drop(run.end());
    let count = || fs::read_dir(&runtime).unwrap().count();
    assert_eq!(count(), 1);
    bench.shell("true");
    assert_eq!(count(), 0);
}

#[test]
fn a_daemon_is_not_waited_for() {
    let bench = Bench::new();
    let script = "setsid sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 & echo $!; exit 4";
    let ended = bench.shell(script);
    assert_eq!(ended.code, Some(4));
    common::kill(String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap(), libc::SIGKILL);
}

#[test]
fn closed_streams_harm_nobody() {
    let bench = Bench::new().with("progress=line");
    let agent = common::example("agent");
    let script = format!("exec 1>&- 2>&-; {} hello epochs=3; exit 5", agent.display());
    let mut command = bench.command(&["sh", "-c", &script]);
    let close = || {
        for descriptor in 0..3 {
            // SAFETY: takes a number.
            unsafe { libc::close(descriptor) };
        }
        Ok(())
    };
    // SAFETY: the closure calls async-signal-safe functions alone.
    unsafe { command.pre_exec(close) };
    assert_eq!(bench.start_as(&mut command).end().code, Some(5));
}
