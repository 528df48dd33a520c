//! `caulk heal`: its arguments.

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum, ValueHint};

use crate::settings::Wait;

const HELP: &str = "\
Examples:
  caulk heal -- python train.py --epochs 6         find, edit, run again, prove; your files stay as they are
  caulk heal --epochs 5 -- python train.py         caulk ends every run after its 5th epoch
  caulk heal --apply -- python train.py            write the edits that were proven into your files
  caulk heal --resume --apply -- python train.py   the same with the runs of the last heal, if nothing was changed since
  caulk heal --same metrics.csv -- python fit.py   a file of the run must stay the same, too
  caulk heal --format markdown -- python train.py  a description for a pull request

What it does: run the command and report growth; run it again with an edit for each finding, and keep the edits that stop \
the growth and leave the output as it was. If edits do harm together, it tries halves of them. If an edit is refused, it tries \
another for the same finding: cut to the length that is read, emptied where a loop ends, a number instead of a tensor, no_grad, \
with, close, a place before the loop. It repeats this until nothing grows, or no edit is left. If the output differs, the unedited program runs once more, and numbers \
that differ by themselves are left out.

Each edit ends as
  proven    its growth is gone, or down by its share, and the output is identical
  unproven  harmless, but the run does not show that it helps
  refused   the output changed, the program failed, a gradient was cut, or memory grows as before

Every run takes place in a copy of the project, .caulk/heal/ID/out: an overlay if the system lets users mount one. Otherwise \
Python files, notebooks and small files are copied, and larger files are links. So the command should write its checkpoints below the project, by a relative path. Set a seed: without one, outputs \
cannot be compared. Give the training at least 6 epochs: with fewer, most programs are undecided.

.caulk/heal/ID has heal.patch, heal.md for a pull request, heal.json, and a recording of each run: `caulk report` shows it.

It ends with the reason if the command imports nothing of the project, changes a linked file in place, or if \
the disk is full. An edit in an installed package, or behind a link out of the project, is refused.

Exit code:
  0    nothing grows: healed, or nothing to heal
  1    something still grows
  3    undecided: too few epochs to judge, for example
  4    the unedited command fails, or its output differs from run to run
  2    wrong arguments   125  caulk itself failed   130  Ctrl-C: the patch has what was proven so far";

/// Find leaks, try the edits in a copy, and prove which of them help
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct HealArgs {
    /// Write the edits that were proven into the project's files
    ///
    /// The patch that was applied stays in the folder of the run: `patch -R -p1 < heal.patch` undoes it.
    #[arg(long)]
    pub(crate) apply: bool,

    /// End each run after N epochs (SIGTERM, and SIGKILL after 10 s) [default: the command's own end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: Option<u64>,

    /// End each run after this time, for example 90s, 5min or 1h
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<Wait>,

    /// Find leaks in a recorded run, too: a folder, a name, or a part of a name. If it shows none, nothing is run
    #[arg(long, value_name = "RUN")]
    pub(crate) from: Option<String>,

    /// Continue the latest heal of the same command with the same options and sources after its last completed run
    #[arg(long)]
    pub(crate) resume: bool,

    /// Run in the project's folder instead of a copy; edits are in its files during a run, and are taken back after it
    ///
    /// If caulk itself is killed (SIGKILL) during such a run, the edits stay in the files: commit or copy them before.
    #[arg(long)]
    pub(crate) in_place: bool,

    /// A file that the command writes and that must stay the same; can be given several times
    ///
    /// Of a notebook, the output of its cells is compared, and not when they ran.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) same: Vec<Utf8PathBuf>,

    /// Numbers that differ by less than this count as equal, relative to the larger one, or to 1
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    pub(crate) tolerance: f64,

    /// Format of the result
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: HealFormat,

    /// Write the result to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Utf8PathBuf>,

    /// Write the result also as a page for a browser to this file: growth before and after, edits with their proof, the patch
    ///
    /// One file that loads nothing from anywhere, as that of `caulk report --html`. It contains lines of your code.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<Utf8PathBuf>,

    /// Do not print progress
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// How to print the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HealFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// For a pull request
    Markdown,
}
