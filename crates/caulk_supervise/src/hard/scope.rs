//! A scope of systemd: a control group that the manager makes, of the system for root, of the session for others.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that systemd is waited for, and between two looks.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

const PROGRAM: &str = "systemd-run";

/// Which manager makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    System,
    User,
}

impl Manager {
    /// The one that makes scopes for the calling user, tried with a command that does nothing.
    pub(super) fn find(bytes: u64) -> Result<Self, String> {
        let manager = if rustix::process::geteuid().is_root() { Self::System } else { Self::User };
        let words = manager.words(bytes, &["true".into()]);
        let mut command = Command::new(PROGRAM);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{PROGRAM} is not installed"),
            _ => format!("{PROGRAM} cannot be started: {error}"),
        })?;
        match wait(child) {
            Some((status, _)) if status.success() => Ok(manager),
            Some((_, complaint)) => {
                let first = complaint.lines().map(str::trim).find(|line| !line.is_empty());
                Err(format!("systemd makes no scope: {}", first.unwrap_or("it does not say why")))
            }
            None => Err("systemd does not answer".into()),
        }
    }

    /// `systemd-run` becomes the command once the scope is there: it stays the same process.
    pub(super) fn words(self, bytes: u64, command: &[OsString]) -> Vec<OsString> {
        let user = (self == Self::User).then(|| OsString::from("--user"));
        let limit = format!("--property=MemoryMax={bytes}");
        let options = ["--scope", "--quiet", "--collect", &limit, "--"].map(OsString::from);
        let program = [OsString::from(PROGRAM)].into_iter();
        program.chain(user).chain(options).chain(command.iter().cloned()).collect()
    }
}

/// How it ended and what it complained of; `None` where it had to be killed.
fn wait(mut child: Child) -> Option<(ExitStatus, String)> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            let mut complaint = String::new();
            let _ = child.stderr.take()?.read_to_string(&mut complaint);
            return Some((status, complaint));
        }
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(LOOK);
    }
}
