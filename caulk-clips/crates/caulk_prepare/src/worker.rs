//! The worker `caulk-clip`, seen from outside: a process that is asked and answers, and may die of a broken video.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::job::{Answer, Outcome, Request};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::partner::Partner;

/// File name of the worker.
pub const WORKER: &str = "caulk-clip";

/// Why a worker gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It is not installed.
    #[error(
        "`{path}` is not there\nhint: install caulk-clips as a whole; in caulk's source tree, `cargo xtask develop --clips`"
    )]
    Missing {
        /// Where it should be.
        path: Utf8PathBuf,
    },
    /// It cannot be started.
    #[error("failed to start `{path}`")]
    Start {
        /// The worker.
        path: Utf8PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It ended in the middle of a video.
    #[error("the decoder died ({0})")]
    Died(String),
    /// It was ended, as it took too long.
    #[error("not done after {} s", .0.as_secs())]
    Late(Duration),
    /// The video is no file of this machine, and no copy could be made of it.
    #[error("cannot be fetched: {0}")]
    Fetch(String),
    /// What copies videos ended in the middle of one.
    #[error("what fetches videos died ({0})")]
    FetcherDied(String),
    /// No video can be copied that is no file of this machine.
    #[error("videos cannot be fetched by URL: {0}")]
    NoFetcher(String),
}

/// Finds the worker beside the executable `exe`, links followed or not.
///
/// # Errors
/// If it is not there.
pub fn find(exe: &Utf8Path) -> Result<Utf8PathBuf, WorkerError> {
    let beside = |exe: &Utf8Path| exe.with_file_name(WORKER);
    let real = exe.canonicalize_utf8().map(|real| beside(&real));
    let here = beside(exe);
    let mut places = [Some(here.clone()), real.ok()].into_iter().flatten();
    places.find(|place| place.is_file()).ok_or(WorkerError::Missing { path: here })
}

/// Version of the FFmpeg in a worker.
///
/// # Errors
/// If it cannot be started.
pub fn ffmpeg_version(worker: &Utf8Path) -> Result<String, WorkerError> {
    let start = |source| WorkerError::Start { path: worker.to_owned(), source };
    let output = Command::new(worker).arg("--version").output().map_err(start)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match text.rsplit_once(' ') {
        Some((_, version)) if output.status.success() => Ok(version.to_owned()),
        _ => Err(WorkerError::Died(output.status.to_string())),
    }
}

/// A running worker.
#[derive(Debug)]
pub struct Worker {
    partner: Partner,
    /// What it prints, which it does only as it dies.
    said: File,
}

impl Worker {
    /// Starts one that takes at most so many bytes of memory. It is in the caller's process group and dies with this thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(worker: &Utf8Path, memory: u64) -> Result<Self, WorkerError> {
        let megabytes = (memory / 1_000_000).to_string();
        let mut command = Command::new(worker);
        command.args([&megabytes, "bound"]);
        let start = |source| WorkerError::Start { path: worker.to_owned(), source };
        let said = memfd_create(WORKER, MemfdFlags::CLOEXEC).map_err(|error| start(error.into()))?;
        let said = File::from(said);
        command.stderr(said.try_clone().map_err(start)?);
        Ok(Self { partner: Partner::start(&mut command).map_err(start)?, said })
    }

    /// Asks, and waits for the answer with the bytes behind it, no longer than `timeout`.
    ///
    /// # Errors
    /// If the worker died or takes longer; it is of no use any more.
    pub fn ask(
        &mut self,
        request: &Request,
        timeout: Option<Duration>,
    ) -> Result<(Answer, Vec<u8>), WorkerError> {
        self.partner.wait_for(timeout);
        self.exchange(request).map_err(|error| {
            let ended = self.partner.end();
            let died = WorkerError::Died(ended + &last_words(&self.said));
            timeout.filter(|_| error.kind() == io::ErrorKind::TimedOut).map_or(died, WorkerError::Late)
        })
    }

    fn exchange(&mut self, request: &Request) -> io::Result<(Answer, Vec<u8>)> {
        let answer: Answer = self.partner.ask(request)?;
        let bytes = match &answer.outcome {
            Outcome::Pictures(pictures) => self.partner.take(pictures.bytes)?,
            _ => Vec::new(),
        };
        Ok((answer, bytes))
    }
}

/// Why a program ended, in its own words: the first lines of a panic, or of an allocation that failed.
fn last_words(said: &File) -> String {
    let mut bytes = [0; 500];
    let length = said.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(2);
    let words: Vec<&str> = lines.map(|line| line.trim().trim_end_matches(':')).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(": ")) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use caulk_clip::Selection;
    use caulk_clip::job::Decode;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    /// What is told of a worker that does this.
    fn ended(script: &str, timeout: Option<Duration>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let worker = Utf8PathBuf::try_from(folder.path().join(WORKER)).unwrap();
        std::fs::write(&worker, format!("#!/bin/sh\nread line\n{script}\n")).unwrap();
        std::fs::set_permissions(&worker, Permissions::from_mode(0o755)).unwrap();
        let request = Request::Decode(Decode {
            path: "a.mp4".into(),
            name: None,
            selection: Selection::Uniform,
            frames: 1,
            snap: 0,
            size: None,
            fit: caulk_clip::picture::Fit::Stretch,
            seed: 0,
            sequential: false,
            cache: None,
        });
        Worker::start(&worker, 1_000_000).unwrap().ask(&request, timeout).unwrap_err().to_string()
    }

    #[test]
    fn why_a_worker_died_is_told_in_its_own_words() {
        let panic =
            "printf 'thread main panicked at a.rs:1:2:\\nno such frame\\nnote: a backtrace\\n' >&2; exit 101";
        assert_eq!(
            ended(panic, None),
            "the decoder died (exit status: 101: thread main panicked at a.rs:1:2: no such frame)"
        );
        assert_eq!(ended("kill -9 $$", None), "the decoder died (signal: 9 (SIGKILL))");
    }

    #[test]
    fn a_worker_that_takes_too_long_is_ended() {
        let told = ended("exec sleep 60", Some(Duration::from_millis(50)));
        assert_eq!(told, "not done after 0 s");
    }
}
