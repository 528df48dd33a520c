//! Options of `caulk run` that keep a program below its budget.

use clap::{Args, ValueHint};

use crate::settings::{Budget, Grace};

/// How to guard a program.
#[derive(Debug, Args)]
#[command(next_help_heading = "Guard")]
pub(crate) struct GuardArgs {
    /// Keep the program below --budget [default budget: 90% of what there is]: warn, ask it to clean up and to save its
    /// state, and where it can go on from a checkpoint end it and start it again
    #[arg(long)]
    pub(crate) guard: bool,

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
    pub(crate) grace: Grace,
}
