//! A program on a terminal of its own, with somebody at the keys.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use rustix::time::Timespec;

/// A program that leads a session on it.
pub(crate) struct Session {
    keyboard: File,
    program: Child,
    /// The program's end of the terminal: it stays a terminal when the program has ended.
    screen: File,
}

impl Session {
    pub(crate) fn start(command: &mut Command) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("a terminal");
        unlockpt(&master).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let screen =
            File::options().read(true).write(true).open(name.to_str().expect("a name")).expect("its end");
        let copy = || OwnedFd::from(screen.try_clone().expect("a copy"));
        command.stdin(copy()).stdout(copy()).stderr(copy());
        let lead = || {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        };
        // SAFETY: the closure makes two system calls.
        unsafe { command.pre_exec(lead) };
        let program = command.spawn().expect("it starts");
        // The command holds copies of the terminal until it is dropped.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { keyboard: master.into(), program, screen }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a terminal");
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).expect("it goes on");
    }

    /// Reads up to the next occurrence of a text and returns what came before it. Whoever does not write it for a minute
    /// will not.
    pub(crate) fn read_until(&mut self, text: &str) -> String {
        let until = Instant::now() + Duration::from_mins(1);
        let pause = Timespec { tv_sec: 1, tv_nsec: 0 };
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(text.as_bytes()) {
            let waiting =
                poll(&mut [PollFd::new(&self.keyboard, PollFlags::IN)], Some(&pause)).expect("a terminal");
            assert!(Instant::now() < until, "no {text:?} in {}", String::from_utf8_lossy(&bytes));
            if waiting == 0 {
                continue;
            }
            let read = self.keyboard.read(&mut byte);
            assert!(matches!(read, Ok(1)), "ended after {}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        bytes.truncate(bytes.len() - text.len());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Does the terminal give whole lines and show what is typed?
    pub(crate) fn is_usual(&self) -> bool {
        let modes = tcgetattr(&self.screen).expect("a terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the end; what is shown meanwhile is lost.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.program.wait().expect("an end")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whoever has gone needs no signal.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
