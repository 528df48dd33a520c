//! The command line.

mod alarms;
mod check;
mod clean;
mod diff;
mod doctor;
mod format;
mod guard;
mod heal;
mod help;
mod plan;
mod selftest;
mod top;
mod verify;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

pub(crate) use self::alarms::AlarmArgs;
pub(crate) use self::check::{CheckArgs, FileArgs, RuleArgs, RulePageArgs, RulesArgs, ServerArgs};
pub(crate) use self::clean::CleanArgs;
pub(crate) use self::diff::{DiffArgs, DiffFormat};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::format::{Format, ReportFormat, RunFormat};
pub(crate) use self::guard::GuardArgs;
pub(crate) use self::heal::{HealArgs, HealFormat};
pub(crate) use self::help::{CompletionsArgs, ManArgs};
pub(crate) use self::plan::{Before as PlanBefore, Optimizer, PlanArgs, Precision, Progress as PlanProgress};
pub(crate) use self::selftest::SelftestArgs;
pub(crate) use self::top::TopArgs;
pub(crate) use self::verify::VerifyArgs;
use crate::settings::{Boundary, Budget};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Start here:
  caulk run -- python train.py --epochs 10    watch a training
  caulk check                                 look at the source
  caulk verify --epochs 10 -- python train.py is it stable? a checklist, for CI

`run` changes no code and prints, when the training ends or dies: whether memory grows, by how much, when it runs out, \
the line that makes it grow, what keeps it alive, and what to change.";

const RUN_HELP: &str = "\
Examples:
  caulk run -- python train.py --epochs 10       report at the training's end or death
  caulk run -- torchrun --nproc-per-node 2 train.py
  caulk run -- ./train.sh                        any command; Python started below it is looked into
  caulk run --budget 50GB -- python train.py     forecast when 50 GB are reached
  caulk run --apply safe.yaml -- python train.py loaders no larger than `caulk plan` says
  caulk run --metrics 127.0.0.1:9464 -- python train.py      for Prometheus, while it runs
  caulk run --fail-on-leak --report-json leak.json -- pytest tests/train    in CI

Below a budget, whatever leaks:
  caulk run --guard --budget 12GB --checkpoint 'runs/*.pt' \\
    --resume-cmd 'python train.py --resume {checkpoint}' -- python train.py
Of the headroom between what the training needs once it is warm and the budget, --guard warns at 60%, asks for a \
cleanup (garbage, GPU cache, free pages) at 75%, for a checkpoint at 85%, and at 95% ends the program and starts it \
again. It asks through what the program gave to `caulk.on_checkpoint`, through the trainers of Lightning and \
Transformers, or by SIGUSR1 where the program handles it. It starts again after its own stop, an OOM kill, and an end \
by MemoryError or CUDA OOM; never after Ctrl-C, a signal from outside or another exception.

What the program reads and writes passes through unchanged; caulk's own lines go to standard error.

Exit code:
  the command's own (128 + number of the signal that ended it)
  3    with --fail-on-leak: a leak was found although the command succeeded
  2    wrong arguments
  125  caulk itself failed   126  command not executable   127  command not found

Environment:
  CAULK_HOME  folder for recordings instead of `.caulk` in the working directory

Where `.caulk` cannot be written, a recording goes to ~/.local/state/caulk or /tmp; where nothing can, the program is \
watched without one, and the report at its end is all that stays.";

const REPORT_HELP: &str = "\
Examples:
  caulk report                          the latest run
  caulk report 20261121-101500-train    a run by its name, or a part of it that only one run has
  caulk report .caulk/runs/20261121-101500-train --format json --output leak.json
  caulk report --lines=train.py         what each line of train.py holds, native memory included
  caulk report --flame heap.html        the same by stack, as a picture for a browser
  caulk report --html leak.html         everything on one page for a browser, to send or to keep
  caulk report --html leak.html --no-source   the same without a line of your code
  caulk report --format pprof -o heap.pb.gz   the heap by stack, for `go tool pprof heap.pb.gz`
  caulk report --from 2 --to 8          what has changed between the beginnings of two epochs

It also works on a run that is still going on, and on one whose supervisor was killed.";

/// Everything that can be said to `caulk`.
#[derive(Debug, Parser)]
#[command(name = "caulk", version, long_version = help::version(), about = "Find and explain memory leaks in Python and PyTorch training", styles = STYLES, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Report(ReportArgs),
    Runs(RunsArgs),
    Top(TopArgs),
    Check(CheckArgs),
    Heal(HealArgs),
    Rule(RulePageArgs),
    Rules(RulesArgs),
    Server(ServerArgs),
    Clean(CleanArgs),
    Clips(ClipsArgs),
    Completions(CompletionsArgs),
    Diff(DiffArgs),
    Doctor(DoctorArgs),
    Man(ManArgs),
    Plan(Box<PlanArgs>),
    Selftest(SelftestArgs),
    Verify(VerifyArgs),
}

/// Prepare clips of videos, with the package caulk-clips
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ClipsArgs {
    /// Arguments of `caulk-clips`; `caulk clips --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) words: Vec<OsString>,
}

/// Run a command, watch its memory, and name what leaks
#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// Folder for this run's recording [default: a new one in .caulk/runs]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<Utf8PathBuf>,

    /// Write the report to this file instead of standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<Utf8PathBuf>,

    /// Write every finding in full, with its flow and its evidence
    #[arg(long)]
    pub(crate) full: bool,

    /// Format of the report that --report writes; with `pprof`, the heap profile is written and the report shown
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        alias = "output-format",
        requires = "report"
    )]
    pub(crate) format: RunFormat,

    /// Write the report as JSON to this file, however the command ends
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) report_json: Option<Utf8PathBuf>,

    /// Exit with 3 where a leak is found and the command succeeded
    #[arg(long)]
    pub(crate) fail_on_leak: bool,

    /// Say on standard error how the run is doing
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) progress: Progress,

    /// Memory you grant: 50GB, 800MB, or a share of what there is, 80%; used for the forecast, and by --guard
    #[arg(long, value_name = "SIZE")]
    pub(crate) budget: Option<Budget>,

    /// Judge memory every N-seconds or N-steps instead of at epochs
    #[arg(long, value_name = "N-UNIT")]
    pub(crate) boundary: Option<Boundary>,

    /// Look at the processes from outside only: no line, no container, the least intrusion
    #[arg(long)]
    pub(crate) no_agent: bool,

    /// Do not sample the heap: no lines are named for memory that native code allocates
    #[arg(long)]
    pub(crate) no_heap: bool,

    /// Sample the heap four times as often: half the error of a line's figures, at up to four times the cost
    #[arg(long, conflicts_with_all = ["no_heap", "no_agent"])]
    pub(crate) precise: bool,

    /// At the 4th, 8th, 16th ... epoch, have malloc give back what it can, and say how much that was
    #[arg(long)]
    pub(crate) trim: bool,

    /// Make the program's `DataLoader`s no larger than a plan says (`caulk plan --output PLAN`)
    #[arg(long, value_name = "PLAN", value_hint = ValueHint::FilePath, conflicts_with = "no_agent")]
    pub(crate) apply: Option<Utf8PathBuf>,

    /// With --apply: change loaders with samplers of their own, over iterable data sets and in ranks, too
    #[arg(long, requires = "apply")]
    pub(crate) apply_everywhere: bool,

    /// Print neither report nor notes on standard error; warnings and errors stay
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Serve the last samples for Prometheus at this address, while the command runs: 127.0.0.1:9464, port 0 for a free one
    ///
    /// `http://ADDRESS/metrics` has memory of each process, of all together and of GPUs, limits, epochs and steps, in the text
    /// format of Prometheus. Names are those of OpenTelemetry: `process_memory_usage_bytes`, `hw_gpu_memory_usage_bytes`.
    /// Others begin with `caulk_`. A request is answered from the supervisor's last sample and does not reach the program. If the
    /// port is in use, the command is not started.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Let --metrics take an address that other machines can reach: anybody who reaches it can read the figures
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_public: bool,

    #[command(flatten)]
    pub(crate) alarms: AlarmArgs,

    #[command(flatten)]
    pub(crate) guard: GuardArgs,

    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// The usual settings for a command.
    pub(crate) fn of(command: &[OsString]) -> Self {
        let words = ["caulk", "run", "--"].map(OsString::from).into_iter().chain(command.iter().cloned());
        match Cli::parse_from(words).command {
            Command::Run(args) => args,
            other => unreachable!("`run` was read as {other:?}"),
        }
    }
}

/// When to print lines on how the run is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// At epochs if standard error is a terminal, at most one line in 30 seconds
    #[default]
    Auto,
    /// At every epoch, also into files and pipes; where there are no epochs, one line in 30 seconds
    Line,
    /// Never
    None,
}

impl From<Progress> for caulk_supervise::Progress {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Auto => Self::Auto,
            Progress::Line => Self::Line,
            Progress::None => Self::None,
        }
    }
}

/// Show the report of a recorded run again
#[derive(Debug, Args)]
#[command(after_help = REPORT_HELP)]
pub(crate) struct ReportArgs {
    /// Run to show: a folder, a name, or a part of a name [default: the latest]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Report on a snapshot of GPU memory instead: a file that `torch.cuda.memory._dump_snapshot` wrote
    ///
    /// Live bytes by line, by pool and in gaps, the largest blocks, and settings of the allocator that would help, predicted
    /// from the recorded history. The file is read as data; nothing in it is run. `caulk diff A.pickle B.pickle` compares two.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["run", "lines", "from", "to", "flame", "html", "no_source", "life", "full"])]
    pub(crate) cuda_snapshot: Option<Utf8PathBuf>,

    /// Show what each source line has allocated and not given back: of FILE, or of the lines that hold most
    ///
    /// What threads without Python code allocate (torch's, those of a pool) is charged to the line that has set them to work;
    /// of several backward passes that torch's own threads run at the same time, to the one begun last.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", value_hint = ValueHint::FilePath)]
    pub(crate) lines: Option<String>,

    /// Compare two moments: from the beginning of epoch N [default: the first]
    ///
    /// An epoch begins with its first optimizer step, or where `caulk.epoch()` is called the Nth time. Where a program has no
    /// epochs, it is the end of step N, or second N.
    #[arg(long, value_name = "N", conflicts_with_all = ["lines", "flame"])]
    pub(crate) from: Option<u64>,

    /// ... to the beginning of epoch N [default: the last]
    #[arg(long, value_name = "N", conflicts_with_all = ["lines", "flame"])]
    pub(crate) to: Option<u64>,

    /// Write a flame graph of the heap, a page for a browser, to FILE [default: RUN.flame.html]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["lines", "format", "output"])]
    pub(crate) flame: Option<Utf8PathBuf>,

    /// Write the whole report as a page for a browser to FILE [default: RUN.html]
    ///
    /// One file of at most 400 KB that loads nothing from anywhere: memory over time, the forecast, every finding with its
    /// holder and its fix, the heap by stack and by line, the census, all processes. A file that exists is replaced at once.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["lines", "flame", "from", "to", "format", "output", "full"])]
    pub(crate) html: Option<Utf8PathBuf>,

    /// Leave source lines and edits out: with --html, and of the formats json, markdown and pprof
    ///
    /// Names of files, functions and variables stay, also in the words that describe a change. A profile has no source anyway.
    #[arg(long, conflicts_with_all = ["lines", "flame", "from", "to"])]
    pub(crate) no_source: bool,

    /// Of a run that the guard has started again, show life N alone [default: all lives; with --lines, --flame, --from and
    /// --to the one by which the report judges memory]
    #[arg(long, value_name = "N")]
    pub(crate) life: Option<usize>,

    /// Write every finding in full, with its flow and its evidence
    ///
    /// Without it, the first finding takes at most 20 lines, the second 12, and ten more a line each; JSON has all.
    #[arg(long, conflicts_with_all = ["lines", "flame", "from", "to"])]
    pub(crate) full: bool,

    /// Format of the report; --lines, --from and --to have `text` and `json` alone
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", alias = "output-format")]
    pub(crate) format: RunFormat,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<Utf8PathBuf>,
}

/// List the recorded runs, newest first
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Format of the list
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Time between two looks at the process tree.
pub(crate) const PERIOD: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], command: &[&str]) {
        let cli = Cli::try_parse_from([&["caulk", "run"], arguments].concat()).expect("valid arguments");
        let Command::Run(args) = cli.command else { panic!("not `run`: {arguments:?}") };
        assert_eq!(args.command, command);
    }

    #[test]
    fn the_command_keeps_its_own_options() {
        check(
            &["python", "train.py", "--quiet", "-o", "x", "--", "y"],
            &["python", "train.py", "--quiet", "-o", "x", "--", "y"],
        );
        check(&["--quiet", "--", "python", "--version"], &["python", "--version"]);
        check(&["--", "--odd-name"], &["--odd-name"]);
        check(&["python", "-c", "1"], &["python", "-c", "1"]);
    }

    #[test]
    fn options_that_do_not_exist_are_not_commands() {
        for arguments in
            [&["caulk", "run", "--bogus", "python"][..], &["caulk", "run"], &["caulk", "run", "--quiet"]]
        {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
