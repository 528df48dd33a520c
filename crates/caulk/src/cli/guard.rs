//! Options of `caulk run` that keep a program below its budget.

use caulk_supervise::Means;
use clap::{Args, ValueEnum, ValueHint};

use crate::settings::{Budget, Wait};

/// How to guard a program.
#[derive(Debug, Args)]
#[command(next_help_heading = "Guard")]
pub(crate) struct GuardArgs {
    /// Keep the program below --budget [default budget: 90% of what there is]: warn, ask it to clean up and to save its
    /// state, and where it can go on from a checkpoint end it and start it again
    #[arg(long)]
    pub(crate) guard: bool,

    /// Have the kernel enforce the budget, too: a leap beyond it ends the program, not the machine. Of these means the
    /// first that works here, or MEANS
    #[arg(long, value_name = "MEANS", requires = "guard", num_args = 0..=1, require_equals = true,
          default_missing_value = "any")]
    pub(crate) hard_limit: Option<HardLimitMeans>,

    /// GPU memory that torch may reserve, over all devices of the program: 20GB or 90%
    #[arg(long, value_name = "SIZE", requires = "guard")]
    pub(crate) gpu_budget: Option<Budget>,

    /// Command that goes on where the last one ended; {checkpoint} in it stands for the newest complete checkpoint. No
    /// shell sees it [default: the same command again, if --checkpoint is given]
    #[arg(long, value_name = "COMMAND", requires = "guard", value_hint = ValueHint::CommandString)]
    pub(crate) resume_cmd: Option<String>,

    /// Files or folders in which the program saves its state, as a pattern: 'runs/*/last.ckpt'. Those that are older than
    /// the run count only where the command names them
    #[arg(long, value_name = "GLOB", requires = "guard", value_hint = ValueHint::AnyPath)]
    pub(crate) checkpoint: Option<String>,

    /// Restarts in a row that bring neither a newer checkpoint nor, where none are known, the end of an epoch
    #[arg(long, value_name = "N", requires = "guard", default_value_t = 3)]
    pub(crate) max_restarts: u32,

    /// How long to wait for a cleanup, for a checkpoint, and for the program's end before it is killed: 30s, 5min
    #[arg(long, value_name = "TIME", requires = "guard", default_value = "60s")]
    pub(crate) grace: Wait,
}

/// By what the kernel enforces the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HardLimitMeans {
    /// The first of those below that works here
    Any,
    /// A control group of the program's own, version 2 or 1: the kernel kills it beyond the budget
    Cgroup,
    /// A scope that systemd makes: the same, where only systemd may make control groups
    Systemd,
    /// A limit on the data of each process (`ulimit -d`): it gets a `MemoryError` that it can catch
    Data,
}

impl HardLimitMeans {
    /// The one that is wanted, if it is a certain one.
    pub(crate) fn wanted(self) -> Option<Means> {
        match self {
            Self::Any => None,
            Self::Cgroup => Some(Means::Cgroup),
            Self::Systemd => Some(Means::Systemd),
            Self::Data => Some(Means::Data),
        }
    }
}
