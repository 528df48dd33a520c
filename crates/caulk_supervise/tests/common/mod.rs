//! Runs the example programs `supervise` and `agent`, which cargo builds with the tests.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Prints the names of signals as they arrive, until a line comes in.
pub const NAME_SIGNALS: &str = "\
import os, select, signal, sys
# A signal that comes right before the wait ends it all the same; `input()` would wait on, and name it afterwards.
came, comes = os.pipe()
os.set_blocking(comes, False)
signal.set_wakeup_fd(comes)
for name in ('SIGTERM', 'SIGHUP', 'SIGINT', 'SIGUSR1', 'SIGUSR2'):
    signal.signal(getattr(signal, name), lambda number, frame: print(signal.Signals(number).name, flush=True))
print('ready', flush=True)
while 0 not in select.select([0, came], [], [])[0]:
    os.read(came, 100)
sys.exit(3)
";

/// An example program of this crate.
pub fn example(name: &str) -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().parent().unwrap().join("examples").join(name)
}

/// A folder for one run: the log, an empty Python package, a runtime directory.
pub struct Bench {
    pub folder: Rc<TempDir>,
    settings: Vec<String>,
}

/// A run that has been started.
pub struct Run {
    /// Lives as long as the run needs it.
    _folder: Rc<TempDir>,
    pub child: Child,
    log: PathBuf,
    pub runtime: PathBuf,
}

/// A run that has ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub log: String,
}

impl Bench {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("caulk/_inject")).unwrap();
        fs::create_dir_all(folder.path().join("runtime")).unwrap();
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let settings = vec![format!("package={}", path("caulk")), format!("runtime={}", path("runtime"))];
        Self { folder: Rc::new(folder), settings }
    }

    pub fn with(mut self, setting: &str) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// The command line of the supervisor for this command.
    pub fn command(&self, command: &[impl AsRef<OsStr>]) -> Command {
        let mut supervise = Command::new(example("supervise"));
        supervise.arg(self.folder.path().join("log")).args(&self.settings).arg("--").args(command);
        supervise.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        supervise
    }

    pub fn start(&self, command: &[impl AsRef<OsStr>]) -> Run {
        self.start_as(&mut self.command(command))
    }

    pub fn start_as(&self, command: &mut Command) -> Run {
        let (log, runtime) = (self.folder.path().join("log"), self.folder.path().join("runtime"));
        Run { _folder: Rc::clone(&self.folder), child: command.spawn().unwrap(), log, runtime }
    }

    /// Runs a shell script to its end.
    pub fn shell(&self, script: &str) -> Ended {
        self.start(&["sh", "-c", script]).end()
    }
}

impl Run {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until something is so; the bound is there to end a test that hangs.
    pub fn until<T>(&self, what: impl FnMut(&Self) -> Option<T>) -> T {
        until(self, what)
    }

    /// Reads standard output up to the first occurrence of a text.
    pub fn read_until(&mut self, text: &str) -> String {
        let stdout = self.child.stdout.as_mut().unwrap();
        let mut all = Vec::new();
        let mut byte = [0];
        while !all.ends_with(text.as_bytes()) {
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "ended after {}", String::from_utf8_lossy(&all));
            all.push(byte[0]);
        }
        String::from_utf8(all).unwrap()
    }

    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    /// Waits for the end with standard input open.
    pub fn until_end(mut self) -> Ended {
        let stdin = self.child.stdin.take();
        let ended = self.end();
        drop(stdin);
        ended
    }

    /// Closes standard input and waits for the end.
    pub fn end(self) -> Ended {
        let Self { child, log, _folder, .. } = self;
        let output = child.wait_with_output().unwrap();
        Ended {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            log: fs::read_to_string(log).unwrap_or_default(),
        }
    }
}

impl Ended {
    /// Rests of the lines of the log that begin with this.
    pub fn lines(&self, start: &str) -> Vec<&str> {
        self.log.lines().filter_map(|line| line.strip_prefix(start)).collect()
    }

    pub fn outcome(&self) -> &str {
        self.lines("outcome ").last().copied().unwrap_or_default()
    }
}

/// Sends a signal; a negative number names a process group.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: takes numbers alone.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "{}", std::io::Error::last_os_error());
}

pub fn until<C: ?Sized, T>(context: &C, mut what: impl FnMut(&C) -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_mins(2);
    loop {
        if let Some(found) = what(context) {
            return found;
        }
        assert!(Instant::now() < patience, "waited in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}
