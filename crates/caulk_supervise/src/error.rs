//! Why a command does not start, and the exit codes for it (those of `env`, `nohup` and `timeout`).

use std::io;

use camino::Utf8PathBuf;

/// Exit code where caulk itself fails.
pub const EXIT_FAILED: i32 = 125;
/// Exit code where the command is found and cannot be executed.
pub const EXIT_NOT_EXECUTABLE: i32 = 126;
/// Exit code where the command is not found.
pub const EXIT_NOT_FOUND: i32 = 127;
/// Added to the number of the signal that ended the command.
pub const EXIT_SIGNAL_BASE: i32 = 128;

/// Why the command was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Nothing to run.
    #[error("no command given")]
    NoCommand,
    /// No such program.
    #[error("command `{command}` not found")]
    NotFound {
        /// As it was given.
        command: String,
        /// What the system said.
        source: io::Error,
        /// What to do.
        hint: Option<String>,
    },
    /// There is such a file, and the system does not execute it.
    #[error("command `{command}` cannot be executed")]
    NotExecutable {
        /// As it was given.
        command: String,
        /// What the system said.
        source: io::Error,
        /// What to do.
        hint: Option<String>,
    },
    /// The working directory cannot be entered.
    #[error("failed to enter directory `{path}`")]
    Directory {
        /// The directory.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a process, a descriptor or a signal mask.
    #[error("failed to {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl LaunchError {
    /// Exit code that a shell user expects for it.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => EXIT_NOT_FOUND,
            Self::NotExecutable { .. } => EXIT_NOT_EXECUTABLE,
            Self::NoCommand | Self::Directory { .. } | Self::System { .. } => EXIT_FAILED,
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NoCommand => {
                Some("hint: put the command after the options: `caulk run -- python train.py`")
            }
            Self::NotFound { hint, .. } | Self::NotExecutable { hint, .. } => hint.as_deref(),
            Self::Directory { .. } | Self::System { .. } => None,
        }
    }
}
