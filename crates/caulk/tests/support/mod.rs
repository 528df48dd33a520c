//! The real binary in a folder of its own, seeing no Python package: what holds without an agent holds everywhere.

pub(crate) mod terminal;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(&path, text).expect("a writable folder");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// `caulk` with these arguments, ready to start in this folder.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caulk"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("CAULK_HOME", self.path("home")).env("CAULK_PACKAGE", "/nowhere");
        for variable in ["CLICOLOR_FORCE", "CLICOLOR", "NO_COLOR"] {
            command.env_remove(variable);
        }
        command
    }

    /// Says who may do what with something in this folder, as `chmod` does.
    pub(crate) fn allow(&self, name: &str, mode: u32) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).expect("a folder of ours");
    }

    /// The same as somebody whom the system may refuse something: root is refused nothing.
    pub(crate) fn as_nobody<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        use std::os::unix::process::CommandExt;
        const NOBODY: u32 = 65534;
        let mut command = self.command(arguments);
        if rustix::process::geteuid().is_root() {
            self.allow("", 0o777);
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    pub(crate) fn caulk<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ended {
        Ended::from(self.command(arguments).output().expect("the binary starts"))
    }

    /// Folders of the recorded runs, oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let mut runs: Vec<_> =
            entries(&self.path("home/runs")).into_iter().filter(|path| path.is_dir()).collect();
        runs.sort();
        runs
    }
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("a readable folder").path()).collect()
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "standard error lacks {text:?}: {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(self.out.contains(text), "standard output lacks {text:?}: {self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// How a command ended, watched from outside: it may neither hang nor grow.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) ended: Ended,
    /// The most memory that it held at a time, in bytes.
    pub(crate) most: u64,
}

impl Watched {
    /// Runs a command to its end; one that has not ended after a minute, or takes more than `room` bytes of memory, is
    /// killed, and the test fails.
    #[track_caller]
    pub(crate) fn run(command: &mut Command, room: u64) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        let id = rustix::process::Pid::from_child(&child);
        let reader = std::thread::spawn(move || child.wait_with_output().expect("an end"));
        let (mut most, start) = (0, std::time::Instant::now());
        while !reader.is_finished() {
            most = most.max(high_water(&status).unwrap_or_default());
            if most > room || start.elapsed().as_secs() > 60 {
                // It has not been waited for, so that nobody else can have its number.
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
                panic!("{command:?} after {:?}: {} MB", start.elapsed(), most >> 20);
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Self { ended: Ended::from(reader.join().expect("an end")), most }
    }
}

/// The most memory that a process held so far, by the kernel's account.
pub(crate) fn high_water(status: &Path) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilo| kilo << 10)
}
