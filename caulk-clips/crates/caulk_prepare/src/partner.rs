//! Another process that is told a line of JSON and answers with one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A process between two questions.
#[derive(Debug)]
pub(crate) struct Partner {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<Patient>,
}

impl Partner {
    /// Starts it, in the caller's process group.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, input: Some(input), output: BufReader::new(Patient { output, until: None }) })
    }

    /// How long answers are waited for from now on.
    pub(crate) fn wait_for(&mut self, timeout: Option<Duration>) {
        self.output.get_mut().until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize) -> io::Result<T> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // One that has ended may have said why before.
        let told = input.write_all((serde_json::to_string(request)? + "\n").as_bytes());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            told?;
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// The bytes behind an answer.
    pub(crate) fn take(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.output).take(count).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Ends it at once, and says how it ended if it had before.
    pub(crate) fn end(&mut self) -> String {
        // It may be alive and talk nonsense.
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Partner {
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
