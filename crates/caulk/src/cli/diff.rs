//! Options of `caulk diff`.

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum, ValueHint};

use crate::settings::Slope;

const HELP: &str = "\
Examples:
  caulk diff before after                     two runs by name, or by a part of a name that only one run has
  caulk diff runs/main runs/branch            two folders of repeats: median and interval of each side
  caulk diff early.pickle late.pickle         two snapshots of GPU memory by `torch.cuda.memory._dump_snapshot`
  caulk diff before after --fail-on 5MB/epoch --format markdown --output diff.md    in CI

A change counts if the intervals of both sides do not touch. Growth has an interval in one run; peaks and times have one \
from three runs on. Else the table shows ~.

Exit code:
  0    compared
  1    with --fail-on: memory grows faster in B by more than that, beyond doubt
  2    wrong arguments
  3    the runs cannot be compared: another program, unit or version of caulk
  125  caulk itself failed";

/// Compare two recorded runs, two folders of repeats, or two snapshots of GPU memory
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DiffArgs {
    /// Run, folder of runs, or snapshot, before
    #[arg(value_name = "A")]
    pub(crate) a: String,

    /// Run, folder of runs, or snapshot, after
    #[arg(value_name = "B")]
    pub(crate) b: String,

    /// Exit with 1 if memory grows faster in B by more than this: 5MB/epoch, 100KB/step
    #[arg(long, value_name = "RATE")]
    pub(crate) fail_on: Option<Slope>,

    /// Format of the table
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DiffFormat,

    /// Write the comparison as a page for a browser to this file, and print its name
    ///
    /// One file that loads nothing from anywhere, as that of `caulk report --html`: both sides of every quantity as a picture,
    /// and memory over time. It contains names, and no source.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["format", "output"])]
    pub(crate) html: Option<Utf8PathBuf>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Utf8PathBuf>,
}

/// How to print the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// A comment on a change
    Markdown,
}
