//! On a terminal: keys, job control, hang-up, lines of progress.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

#[expect(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use common::{Bench, example, until};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A program that leads a session on a terminal of its own.
struct Session {
    keyboard: File,
    program: Child,
    seen: String,
}

impl Session {
    fn start(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let copy = || OwnedFd::from(terminal.try_clone().unwrap());
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let lead = || {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        };
        // SAFETY: the closure makes two system calls.
        unsafe { command.pre_exec(lead) };
        let program = command.spawn().unwrap();
        // The command holds copies of the terminal until it is dropped: then the session has it alone.
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        Self { keyboard: master.into(), program, seen: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads up to the next occurrence of a text and returns what came before it.
    fn read_until(&mut self, text: &str) -> String {
        self.seen.clear();
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(text.as_bytes()) {
            let read = self.keyboard.read(&mut byte);
            assert!(matches!(read, Ok(1)), "ended after {}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        bytes.truncate(bytes.len() - text.len());
        self.seen = String::from_utf8(bytes).unwrap();
        self.seen.clone()
    }

    fn end(mut self) -> Option<i32> {
        self.program.wait().unwrap().code()
    }
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let bench = Bench::new();
    let mut session = Session::start(&mut bench.command(&["python3", "-c", common::NAME_SIGNALS]));
    session.read_until("ready\r\n");
    for _ in 0..2 {
        session.press("\x03");
        session.read_until("SIGINT\r\n");
        // Of signals that wait the kernel gives the lower number first: this one is passed on after the other was.
        common::kill(session.program.id() as i32, libc::SIGTERM);
        assert_eq!(session.read_until("SIGTERM\r\n"), "");
    }
    session.press("\n");
    assert_eq!(session.end(), Some(3));
}

#[test]
fn a_job_stops_and_goes_on() {
    let bench = Bench::new();
    let job = bench.command(&["sh", "-c", "echo ready; read line; exit 5"]);
    let words = [job.get_program()].into_iter().chain(job.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let script = format!("set -m; {}; echo stopped $?; fg; echo ended $?", line.join(" "));
    let mut session = Session::start(Command::new("bash").args(["-c", &script]));
    session.read_until("ready\r\n");
    session.press("\x1a");
    session.read_until("stopped 148\r\n");
    session.press("line\n");
    session.read_until("ended 5\r\n");
    assert_eq!(session.end(), Some(0));
}

#[test]
fn a_terminal_that_hangs_up_is_told_to_the_command() {
    let bench = Bench::new();
    let file = bench.folder.path().join("heard");
    let program = format!(
        "import signal, sys, time\n\
         def heard(number, frame):\n    open('{}', 'w').write(signal.Signals(number).name)\n    sys.exit(0)\n\
         signal.signal(signal.SIGHUP, heard)\n\
         print('ready', flush=True)\n\
         while True: time.sleep(1)\n",
        file.display()
    );
    let mut session = Session::start(&mut bench.command(&["python3", "-c", &program]));
    session.read_until("ready\r\n");
    drop(session.keyboard);
    session.program.wait().unwrap();
    let heard = until(&file, |file| fs::read_to_string(file).ok().filter(|text| !text.is_empty()));
    assert_eq!(heard, "SIGHUP");
}

#[test]
fn progress_clears_the_line_it_takes() {
    let bench = Bench::new().with("progress=auto");
    let agent = example("agent");
    let script = format!("printf '45%%|####'; {} hello epochs=2", agent.display());
    let mut session = Session::start(&mut bench.command(&["sh", "-c", &script]));
    let before = session.read_until("\r\x1b[Kcaulk: epoch 1: 700 MB in use, 4 more epochs to tell\r\n");
    assert_eq!(before, "45%|####");
    assert_eq!(session.end(), Some(0));
}
