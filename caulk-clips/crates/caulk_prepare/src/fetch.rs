//! Videos that are no files of this machine: a program in Python, seen from outside, copies them to a scratch folder by fsspec.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::Deserialize;

use crate::partner::Partner;
use crate::worker::WorkerError;

/// How videos are fetched.
#[derive(Debug, Clone)]
pub struct Fetching {
    /// The text of the program.
    pub program: &'static str,
    /// Interpreters, the first of which is there is used.
    pub pythons: Vec<Utf8PathBuf>,
    /// Folder for the copies.
    pub scratch: Utf8PathBuf,
    /// Bytes that one copy may take.
    pub limit: u64,
}

/// The program's answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// Where the copy lies.
    Path(String),
    /// Why there is none.
    Failed(String),
    /// Why there will be none of any other.
    Fatal(String),
}

/// The running program. A copy lasts until the next one.
#[derive(Debug)]
pub struct Fetcher(Partner);

impl Fetcher {
    /// Starts it.
    ///
    /// # Errors
    /// If there is no interpreter.
    pub fn start(how: &Fetching) -> Result<Self, WorkerError> {
        let mut refusal =
            "there is no Python\nhint: install caulk-clips into an environment that has fsspec".to_owned();
        for python in &how.pythons {
            let mut command = Command::new(python);
            // As text: no folder of caulk's own comes before other packages. What packages print is for nobody.
            command
                .args(["-c", how.program, how.scratch.as_str(), &how.limit.to_string()])
                .stderr(Stdio::null());
            match Partner::start(&mut command) {
                Ok(partner) => return Ok(Self(partner)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => refusal = format!("`{python}` cannot be started: {error}"),
            }
        }
        Err(WorkerError::NoFetcher(refusal))
    }

    /// Copies a video, and says where the copy lies.
    ///
    /// # Errors
    /// If it cannot be copied, or not within `timeout`. After anything but [`WorkerError::Fetch`] the program is of no use.
    pub fn fetch(&mut self, url: &str, timeout: Option<Duration>) -> Result<String, WorkerError> {
        self.0.wait_for(timeout);
        match self.0.ask(&url) {
            Ok(Answer::Path(path)) => Ok(path),
            Ok(Answer::Failed(why)) => Err(WorkerError::Fetch(why)),
            Ok(Answer::Fatal(why)) => Err(WorkerError::NoFetcher(why)),
            Err(error) => {
                let ended = self.0.end();
                let late = timeout.filter(|_| error.kind() == io::ErrorKind::TimedOut);
                Err(late.map_or_else(|| WorkerError::FetcherDied(ended), WorkerError::Late))
            }
        }
    }
}
