//! Launches a command, watches its process tree and listens to the agents in it.
//!
//! [`run`] starts the command as the user's shell would (same standard streams, directory, process group and
//! session), tells a [`Sink`] what it sees until the command ends, and says how that was. It writes no file but the
//! socket, which it removes; what is kept of a run, and where, is the sink's affair.
//!
//! One thread, one poll loop: a supervisor killed at any point leaves the program unharmed. Threads beside it ask the driver of
//! GPUs and answer requests for metrics; they touch no process of the program.

mod approach;
mod board;
mod cgroup;
mod clock;
mod death;
mod error;
mod farewell;
mod gpus;
mod guard;
mod hard;
mod heaps;
mod held;
mod launch;
mod metrics;
mod noted;
mod options;
mod overlay;
mod package;
mod proc;
mod process;
mod progress;
mod role;
mod sampler;
mod segments;
mod signals;
mod signs;
mod silence;
mod sink;
mod socket;
mod stop;
mod supervisor;
mod surroundings;
mod tree;
mod witness;

use std::time::Duration;

pub use cgroup::room as cgroup_room;
pub use error::{EXIT_FAILED, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_SIGNAL_BASE, LaunchError};
pub use guard::Checkpoints;
pub use hard::{HardLimit, Means, NoHardLimit};
pub use held::HeldSignals;
pub use metrics::{BoundAddress, Exporter};
pub use noted::{note_signals, noted_signal};
pub use options::{GpuBudget, Guarding, Options, Progress, Restarts, Streams};
pub use overlay::Overlay;
pub use package::{PACKAGE_VARIABLE, find_package, find_sampler};
pub use sink::{Cut, Guarded, Outcome, RunStart, Sink};

/// Waits; false where somebody has sent a signal to end meanwhile. The calling thread must be the only one that handles
/// signals.
///
/// # Errors
/// What the system says where it lets nobody wait for signals.
pub fn pause(length: Duration) -> std::io::Result<bool> {
    signals::pause(length)
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) an error as on a full disk, not the end of the
/// caller. Call it first; what [`run`] starts finds the signal as the caller has found it.
pub fn outlive_file_limit() {
    signals::outlive_file_limit();
}

/// From now on the calling thread handles no signals: for all threads of a process but the one that calls [`run`].
///
/// # Errors
/// The error of the system.
pub fn leave_signals() -> std::io::Result<()> {
    signals::change_mask(libc::SIG_BLOCK, &signals::all()).map(drop)
}

/// Lets another command find the signals as the caller has found them.
pub fn as_found(command: &mut std::process::Command) {
    signals::as_found(command);
}

/// Runs the command to its end.
///
/// Signals that a person or a program sends to the caller are passed on to the command, once; those of the terminal
/// it has already. While this runs the calling thread must be the only one that handles signals.
///
/// # Errors
/// [`LaunchError`] if the command could not be started. Whatever fails later is a note: the command goes on.
pub fn run(options: &Options, sink: &mut dyn Sink) -> Result<Outcome, LaunchError> {
    match &options.metrics {
        Some(exporter) => {
            let mut tee = metrics::Tee::new(sink, exporter.clone(), options.budget);
            supervisor::run(options, &mut tee)
        }
        None => supervisor::run(options, sink),
    }
}
