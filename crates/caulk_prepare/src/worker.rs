//! The worker `caulk-clip`, seen from outside: a process that is asked and answers, and may die of a broken video.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_clip::job::{Answer, Outcome, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<Patient>,
}

impl Worker {
    /// Starts one that takes at most so many bytes of memory. It is in the caller's process group and dies with this thread.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(worker: &Utf8Path, memory: u64) -> Result<Self, WorkerError> {
        let start = |source| WorkerError::Start { path: worker.to_owned(), source };
        let megabytes = (memory / 1_000_000).to_string();
        let mut command = Command::new(worker);
        command.args([&megabytes, "bound"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(start)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| start(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { child, input: Some(input), output: BufReader::new(Patient { output, until: None }) })
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
        self.output.get_mut().until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.exchange(request).map_err(|error| {
            let died = self.died();
            timeout.filter(|_| error.kind() == io::ErrorKind::TimedOut).map_or(died, WorkerError::Late)
        })
    }

    fn exchange(&mut self, request: &Request) -> io::Result<(Answer, Vec<u8>)> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all((serde_json::to_string(request)? + "\n").as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Answer = serde_json::from_str(&line)?;
        let mut bytes = Vec::new();
        if let Outcome::Pictures(pictures) = &answer.outcome {
            (&mut self.output).take(pictures.bytes).read_to_end(&mut bytes)?;
        }
        Ok((answer, bytes))
    }

    fn died(&mut self) -> WorkerError {
        // It may be alive and talk nonsense.
        let _ = self.child.kill();
        WorkerError::Died(
            self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string()),
        )
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// What a worker says, waited for until some time.
#[derive(Debug)]
struct Patient {
    output: ChildStdout,
    until: Option<Instant>,
}

impl Patient {
    fn wait(&self) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Err(rustix::io::Errno::INTR) => {}
                other => return other.map(drop).map_err(io::Error::from),
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.output.read(buffer)
    }
}
