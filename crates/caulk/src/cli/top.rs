//! `caulk top`: its arguments.

use clap::Args;

use super::format::Format;
use crate::settings::Wait;

const HELP: &str = "\
Examples:
  caulk top                     every run of yours on this machine that goes on
  caulk top train               the one whose name has this in it
  caulk top --once              one look, for a log
  caulk top --format json       one look, for a program

It reads what `caulk run` records, and disturbs nothing. `q` or Ctrl-C ends it, and nothing else.";

/// Watch runs that go on: memory, speed, GPUs, heat, and the line that leaks
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct TopArgs {
    /// Only runs whose name has this in it
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Time between two looks: 2s, 1min
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) interval: Wait,

    /// One look instead of one after the other; the rule where standard output is no terminal
    #[arg(long)]
    pub(crate) once: bool,

    /// Format; JSON is one look
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
