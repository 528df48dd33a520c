//! Launches a command, watches its process tree and listens to the agents in it.
//!
//! [`run`] starts the command as the user's shell would (same standard streams, directory, process group and
//! session), tells a [`Sink`] what it sees until the command ends, and says how that was. It writes no file but the
//! socket, which it removes; what is kept of a run, and where, is the sink's affair.
//!
//! One thread, one poll loop, no helper threads: a supervisor killed at any point leaves the program unharmed.

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
mod package;
mod proc;
mod progress;
mod role;
mod sampler;
mod segments;
mod signals;
mod silence;
mod socket;
mod supervisor;
mod surroundings;
mod tree;
mod witness;

use std::ffi::OsString;
use std::time::Duration;

use camino::Utf8PathBuf;
use caulk_core::{AgentEvent, Death, GpuSample, Left, Limits, ProcessRecord, Sample, SystemSample};

pub use cgroup::room as cgroup_room;
pub use error::{EXIT_FAILED, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_SIGNAL_BASE, LaunchError};
pub use guard::Checkpoints;
pub use hard::{HardLimit, Means, NoHardLimit};
pub use held::Held;
pub use package::{PACKAGE_VARIABLE, find_package, find_sampler};

/// Whether lines on standard error say how the run is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Progress {
    /// At epochs where standard error is a terminal, at most one in 30 seconds.
    #[default]
    Auto,
    /// At every epoch, wherever standard error leads; one in 30 seconds in programs without epochs.
    Line,
    /// Never.
    None,
}

/// What to run and how to watch it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// The folder `caulk` of the Python package, with `_inject` in it; without it nothing is seen from inside.
    pub package: Option<Utf8PathBuf>,
    /// The heap sampler that is preloaded; `None` for no heap profile.
    pub sampler: Option<Utf8PathBuf>,
    /// Heap samples four times as often: lines are told apart at twice the precision.
    pub precise: bool,
    /// To be seen from outside alone is what the user asked for.
    pub outside_only: bool,
    /// Working directory of the command; `None` for that of the caller.
    pub directory: Option<Utf8PathBuf>,
    /// Lines on standard error.
    pub progress: Progress,
    /// Memory that the user grants, in bytes: a limit for forecasts, not enforced.
    pub budget: Option<u64>,
    /// Keeps the program below a budget.
    pub guard: Option<Guarding>,
    /// Settings for the agent, `key=value` joined by `;`; `package` is added.
    pub agent_settings: String,
    /// Time between two looks at the tree; longer where a look is expensive.
    pub period: Duration,
    /// Where the control groups are mounted.
    pub cgroup_root: Utf8PathBuf,
    /// Where to read what surrounds the run (`self/cgroup`, `meminfo`, `vmstat`); processes are read from `/proc`.
    pub proc_root: Utf8PathBuf,
    /// Folder for the socket's own folder; `None` for `$XDG_RUNTIME_DIR`, else `/tmp`.
    pub runtime_dir: Option<Utf8PathBuf>,
}

impl Options {
    /// The usual settings for this command.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            package: None,
            sampler: None,
            precise: false,
            outside_only: false,
            directory: None,
            progress: Progress::Auto,
            budget: None,
            guard: None,
            agent_settings: String::new(),
            period: Duration::from_millis(250),
            cgroup_root: "/sys/fs/cgroup".into(),
            proc_root: "/proc".into(),
            runtime_dir: None,
        }
    }
}

/// How the guard is to keep a program below its budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarding {
    /// Memory of the whole tree, in bytes.
    pub budget: u64,
    /// The budget again, enforced by the kernel.
    pub hard: Option<HardLimit>,
    /// Memory on GPUs.
    pub gpu_budget: Option<GpuBudget>,
    /// Where the program's checkpoints are.
    pub checkpoints: Checkpoints,
    /// A name for the run, the same in all lives: letters, digits, `-`, `_` and `.`.
    pub run: String,
    /// A later life: what holds for all of them has been said.
    pub later: bool,
    /// When the program may be ended, to be started again.
    pub restarts: Restarts,
    /// How long an answer is waited for, and then the end.
    pub grace: Duration,
}

/// Memory on GPUs that may be reserved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GpuBudget {
    /// So many bytes.
    Bytes(u64),
    /// A share of the devices that the program uses, 0 to 1.
    Share(f64),
}

impl GpuBudget {
    /// In bytes, of so many in all; `None` as long as that is not known.
    pub(crate) fn of(self, total: u64) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Share(_) if total == 0 => None,
            Self::Share(share) => Some((total as f64 * share) as u64),
        }
    }
}

/// When a program may be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restarts {
    /// Never.
    Never,
    /// Where there is a checkpoint.
    FromCheckpoint,
    /// Always: it finds by itself where it was.
    Always,
}

/// One life under the guard, over.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarded {
    /// How it ended.
    pub end: caulk_guard::End,
    /// It made a step.
    pub stepped: bool,
    /// Ends of epochs that it passed.
    pub epochs: u64,
    /// Where the checkpoints are, with those that were told in it.
    pub checkpoints: Checkpoints,
}

/// What is known when the command has been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStart {
    /// Process id of the command.
    pub root_pid: u32,
    /// `CLOCK_MONOTONIC` just before it was started, in nanoseconds.
    pub start_ns: u64,
    /// Limits in force.
    pub limits: Limits,
}

/// Takes what the supervisor sees. Called from its loop: what a call costs delays the next look.
pub trait Sink {
    /// The command has been started. First call, once.
    fn started(&mut self, start: &RunStart);
    /// Other limits hold from now on: the program has gone into another control group.
    fn limited(&mut self, limits: &Limits);
    /// One look at one process; the first may come before the process's record.
    fn sample(&mut self, sample: &Sample);
    /// One look at what surrounds the processes.
    fn system(&mut self, sample: &SystemSample);
    /// One look at a GPU, or at what a process has of it; only where torch uses one.
    fn gpu(&mut self, sample: &GpuSample);
    /// Something new about a process. Said again when it changes and when the process has ended: of several records
    /// with the same `pid` and `first_ns` the last one holds.
    fn process(&mut self, record: &ProcessRecord);
    /// A message of an agent.
    fn event(&mut self, event: &AgentEvent);
    /// Nothing more at this moment (`CLOCK_MONOTONIC`, in nanoseconds): time to flush. Comes once a second or more
    /// often.
    fn tick(&mut self, now_ns: u64);
    /// A line that the report should repeat: why something could not be looked at. Each is said once.
    fn note(&mut self, text: &str);
    /// The guard does something: to be said at once, and repeated by the report.
    fn act(&mut self, text: &str);
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How the command ended.
    pub death: Death,
    /// Exit code to end with: the command's own, or 128 and the signal's number.
    pub exit_code: i32,
    /// What the command left behind.
    pub left: Left,
    /// All that [`Sink::note`] was told.
    pub notes: Vec<String>,
    /// `CLOCK_MONOTONIC` when the command's end was seen, in nanoseconds.
    pub end_ns: u64,
    /// What the guard makes of it, where there is one.
    pub guarded: Option<Guarded>,
}

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
    supervisor::run(options, sink)
}
