//! `caulk doctor`: its arguments.

use camino::Utf8PathBuf;
use clap::{Args, ValueHint};

use super::format::Format;

const HELP: &str = "\
Examples:
  caulk doctor                              this machine, and the `python` of your environment
  caulk doctor --python /envs/a/bin/python
  caulk doctor --job 4711                   what SLURM's accounting says of a job's memory
  caulk doctor --logs logs/ slurm-4711.out  messages of memory that ran out

Exit code: 1 where there is a problem (a job or a log that ran out of memory is one), else 0; 125 failed.";

/// Check before a training: memory, limits, shared memory, disks, GPU, torch
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    /// Interpreter whose torch is asked [default: python, else python3, as the shell finds it]
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<Utf8PathBuf>,

    /// Ask SLURM's accounting (`sacct`) about this job instead
    #[arg(long, value_name = "ID", conflicts_with = "logs")]
    pub(crate) job: Option<String>,

    /// Look for messages of memory that ran out in these files and folders instead
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub(crate) logs: Vec<Utf8PathBuf>,

    /// Format of the answer
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
