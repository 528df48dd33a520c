//! Options of `caulk verify`.

use std::ffi::OsString;

use camino::Utf8PathBuf;
use clap::{Args, ValueHint};

use crate::settings::{Boundary, Budget};

const HELP: &str = "\
Examples:
  caulk verify --epochs 10 --budget 50GB -- python train.py   is it stable, and below 50 GB?
  caulk verify --junit verify.xml --markdown verify.md -- python train.py --epochs 6    in CI
  caulk verify --from train                                   check a run that `caulk run` has recorded
  caulk verify --print-checklist > checks.toml                edit it, then: --checklist checks.toml

Each check gives its figure, its limit and a result: pass, fail, n/a (the program has nothing that the check is about) or \
undecided (with what would decide it). Give the training at least 5 epochs: with fewer, most programs are undecided.

A program that is to stop after --epochs gets SIGTERM when the epochs are over, and SIGKILL 10 seconds later. Such an end \
counts as a good one.

Exit code:
  0    every required check passes or does not apply
  1    a required check fails
  2    wrong arguments or a wrong checklist
  3    a required check is undecided, and none fails
  4    the command failed, not for lack of memory
  125  caulk itself failed   126  command not executable   127  command not found   130  after Ctrl-C";

/// Run a command and check its memory against a checklist
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct VerifyArgs {
    /// End the command after N whole epochs [default: run it to its end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: Option<u64>,

    /// Memory that all processes together may take: 50GB, 800MB, or a share of what there is, 80%
    #[arg(long, value_name = "SIZE")]
    pub(crate) budget: Option<Budget>,

    /// Checks to make, with their limits, as TOML [default: all]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) checklist: Option<Utf8PathBuf>,

    /// Print the usual checklist as TOML
    #[arg(long, exclusive = true)]
    pub(crate) print_checklist: bool,

    /// Check a recorded run: a folder, a name, or a part of a name
    #[arg(long, value_name = "RUN", conflicts_with_all = ["command", "epochs", "boundary", "output"])]
    pub(crate) from: Option<String>,

    /// Write the result as JSON to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<Utf8PathBuf>,

    /// Write the result as XML for CI servers (junit) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<Utf8PathBuf>,

    /// Write the result as Markdown to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) markdown: Option<Utf8PathBuf>,

    /// Write the result as a page for a browser to this file: the checklist, and the findings of the run
    ///
    /// One file that loads nothing from anywhere, as that of `caulk report --html`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<Utf8PathBuf>,

    /// Leave source lines and edits out of the page; names of files, functions and variables stay
    #[arg(long, requires = "html")]
    pub(crate) no_source: bool,

    /// Folder for the recording [default: a new one in .caulk/runs]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<Utf8PathBuf>,

    /// Judge memory every N-seconds or N-steps instead of at epochs
    #[arg(long, value_name = "N-UNIT", conflicts_with = "epochs")]
    pub(crate) boundary: Option<Boundary>,

    /// Files or folders in which the program saves its state, as a pattern: 'runs/*/last.ckpt'
    #[arg(long, value_name = "GLOB", requires = "resume_cmd", conflicts_with = "from")]
    pub(crate) checkpoint: Option<String>,

    /// Also check that this command continues from the newest checkpoint, for an epoch; {checkpoint} stands for it. No shell
    /// sees it
    #[arg(long, value_name = "COMMAND", requires = "checkpoint", conflicts_with = "from", value_hint = ValueHint::CommandString)]
    pub(crate) resume_cmd: Option<String>,

    /// Command and its arguments
    #[arg(required_unless_present_any = ["from", "print_checklist"], trailing_var_arg = true, value_name = "COMMAND",
          value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}
