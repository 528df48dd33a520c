//! What to run, and how to watch and guard it.

use std::ffi::OsString;
use std::time::Duration;

use camino::Utf8PathBuf;

use crate::guard::Checkpoints;
use crate::hard::HardLimit;
use crate::metrics::Exporter;
use crate::overlay::Overlay;

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
    /// The command sees its folder with its own files on top; [`Self::directory`] lies in it.
    pub overlay: Option<Overlay>,
    /// Variables for the command besides those of the caller.
    pub environment: Vec<(OsString, OsString)>,
    /// Files for the command's output; its input is then empty. `None` for the caller's own streams.
    pub streams: Option<Streams>,
    /// Lines on standard error.
    pub progress: Progress,
    /// Memory that the user grants, in bytes: a limit for forecasts, not enforced.
    pub budget: Option<u64>,
    /// Serves the last samples over HTTP.
    pub metrics: Option<Exporter>,
    /// Ends the program after so many whole epochs of the training process.
    pub epochs: Option<u64>,
    /// Ends the program after this time.
    pub time_limit: Option<Duration>,
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
            overlay: None,
            environment: Vec::new(),
            streams: None,
            progress: Progress::Auto,
            budget: None,
            metrics: None,
            epochs: None,
            time_limit: None,
            guard: None,
            agent_settings: String::new(),
            period: Duration::from_millis(250),
            cgroup_root: "/sys/fs/cgroup".into(),
            proc_root: "/proc".into(),
            runtime_dir: None,
        }
    }
}

/// Files that take the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streams {
    /// Standard output.
    pub output: Utf8PathBuf,
    /// Standard error.
    pub error: Utf8PathBuf,
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
