//! The worker `caulk-clip`, seen from outside: a process that is asked and answers, and may die of a broken video.

use std::io;
use std::process::Command;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::job::{Answer, Outcome, Request};

use crate::partner::Partner;

/// File name of the worker.
pub const WORKER: &str = "caulk-clip";

/// Why a worker gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It is not installed.
    #[error(
        "`{path}` is not there\nhint: caulk was built without FFmpeg; `cargo xtask develop` says what it lacks"
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
pub struct Worker(Partner);

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
        Partner::start(&mut command).map(Self).map_err(start)
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
        self.0.wait_for(timeout);
        self.exchange(request).map_err(|error| {
            let died = WorkerError::Died(self.0.end());
            timeout.filter(|_| error.kind() == io::ErrorKind::TimedOut).map_or(died, WorkerError::Late)
        })
    }

    fn exchange(&mut self, request: &Request) -> io::Result<(Answer, Vec<u8>)> {
        let answer: Answer = self.0.ask(request)?;
        let bytes = match &answer.outcome {
            Outcome::Pictures(pictures) => self.0.take(pictures.bytes)?,
            _ => Vec::new(),
        };
        Ok((answer, bytes))
    }
}
