//! Arguments of `caulk check`, `caulk rule` and `caulk rules`.

use camino::Utf8PathBuf;
use caulk_core::Applicability;
use clap::{Args, ValueHint};

use super::format::{Format, ReportFormat};
use crate::check::spot::Spot;

const CHECK_HELP: &str = "\
Examples:
  caulk check                       the project in the working directory
  caulk check train.py              one file; callers and callees in other files are looked at all the same
  caulk check --fix                 apply fixes that cannot change what the program does
  caulk check --unsafe-fixes --diff look at all other fixes
  caulk check --explain-silence train.py:84    why nothing is reported there
  caulk check --explain-silence lib/bank.py:9 src    the same in a check of that folder
  caulk check --with 20261121-101500-train     what a run of `caulk run` saw comes first
  caulk check --output-format github    in continuous integration
  caulk check - --stdin-filename train.py < train.py    in an editor

What it finds are patterns: nobody has seen them leak. `caulk run -- python train.py` watches the program itself.

Adopting it:
  # caulk: ignore[rule] reason      at the end of a line: silences one finding
  # caulk: ignore-file[rule] reason silences a file
  caulk check --write-baseline caulk-baseline.json      remember what is there; report only what is new
  caulk check --baseline caulk-baseline.json

  [tool.caulk] in pyproject.toml:
    select = [\"default\", \"peak\"]     rules or groups of rules: `caulk rules` lists them
    ignore = [\"unbounded-history\"]
    exclude = [\"vendor/\"]            as in .gitignore
    severity = { reference-cycle = \"info\" }
    per-file-ignores = { \"tests/*\" = [\"all\"] }
    allow-unread = true              files that are not looked at are all right

Exit code:
  0  nothing found, or advice only
  1  findings that are more than advice; with --diff: there is something to fix
  2  wrong arguments or settings; a file was not looked at as a whole (it is no plain file, cannot be read, is longer
     than 2 MB, or nested too deep; its syntax or encoding is wrong), whatever was found in others; a fix could not be
     written. --allow-unread, or allow-unread = true in pyproject.toml, takes files that were not looked at for granted";

const RULE_HELP: &str = "\
Examples:
  caulk rule graph-kept-in-container    what it finds, why memory grows, what to do
  caulk rules                           all rules";

const SERVER_HELP: &str = "\
Point the editor's language client at `caulk server` for Python files; for example in Neovim:
  vim.lsp.start({ name = \"caulk\", cmd = { \"caulk\", \"server\" }, root_dir = vim.fs.root(0, \"pyproject.toml\") })

Messages of more than 64 MB are read past, and the server ends with its input.
It shows findings as you type, unsaved files included, explains a rule under the pointer, and offers its fixes.";

/// Find code that keeps memory alive for longer than it is needed
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// Files and folders to report on, `-` for standard input
    #[arg(default_value = ".", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<Utf8PathBuf>,

    /// Format of the findings
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", alias = "output-format")]
    pub(crate) format: ReportFormat,

    /// Show hints, too: findings of which a part is only assumed. JSON always has them
    #[arg(long)]
    pub(crate) info: bool,

    /// Count findings by rule instead of listing them
    #[arg(long)]
    pub(crate) statistics: bool,

    /// Say nothing but the findings
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Say why a check of PATH does not report a line; for a notebook `FILE:CELL:LINE`
    #[arg(long, value_name = "FILE:LINE", conflicts_with_all = ["statistics", "format"])]
    pub(crate) explain_silence: Option<Spot>,

    /// Rank findings by what a recorded run saw: a folder, a name, or a part of a name
    #[arg(long, value_name = "RUN")]
    pub(crate) with: Option<String>,

    /// Go on, and check again whenever a file changes
    #[arg(long, conflicts_with_all = ["explain_silence", "fix", "unsafe_fixes", "diff", "write_baseline"])]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) rules: RuleArgs,

    #[command(flatten)]
    pub(crate) files: FileArgs,

    #[command(flatten)]
    pub(crate) fixes: FixArgs,

    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
}

/// Whether to change files.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Fixes")]
pub(crate) struct FixArgs {
    /// Apply fixes that cannot change what the program does
    #[arg(long)]
    pub(crate) fix: bool,

    /// Apply also fixes that may change it: look at them with --diff first
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,

    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) diff: bool,
}

impl FixArgs {
    /// Which fixes to apply; `None` where no file is to be changed, nor a change to be shown.
    pub(crate) fn most(self) -> Option<Applicability> {
        match (self.unsafe_fixes, self.fix || self.diff) {
            (true, _) => Some(Applicability::Unsafe),
            (false, true) => Some(Applicability::Safe),
            (false, false) => None,
        }
    }
}

/// Findings that are known already.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Baseline")]
pub(crate) struct BaselineArgs {
    /// Report only what this file does not know
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<Utf8PathBuf>,

    /// Write all findings to this file, and report none
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "baseline")]
    pub(crate) write_baseline: Option<Utf8PathBuf>,
}

/// Which rules are on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Rules")]
pub(crate) struct RuleArgs {
    /// Rules or groups to use instead of the default and of those in pyproject.toml
    #[arg(long, value_delimiter = ',', value_name = "RULE")]
    pub(crate) select: Vec<String>,

    /// Rules or groups to use in addition
    #[arg(long, value_delimiter = ',', value_name = "RULE")]
    pub(crate) extend_select: Vec<String>,

    /// Rules or groups not to use
    #[arg(long, value_delimiter = ',', value_name = "RULE")]
    pub(crate) ignore: Vec<String>,

    /// Do not read pyproject.toml
    #[arg(long)]
    pub(crate) isolated: bool,
}

/// Which files are looked at.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileArgs {
    /// Files and folders to leave out, as .gitignore writes them; in addition to those in pyproject.toml
    #[arg(long, value_delimiter = ',', value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,

    /// Leave out what is excluded even where it is named, as pre-commit does
    #[arg(long)]
    pub(crate) force_exclude: bool,

    /// Do not fail because a file was not looked at
    #[arg(long)]
    pub(crate) allow_unread: bool,

    /// Look at everything anew, and keep nothing in `.caulk/cache`
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// Name of the file that comes from standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) stdin_filename: Option<Utf8PathBuf>,
}

/// Explain a rule, or a class of leaks that only `caulk run` finds
#[derive(Debug, Args)]
#[command(after_help = RULE_HELP)]
pub(crate) struct RulePageArgs {
    /// Name of the rule
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Format of the page
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output_format: Format,
}

/// List the rules
#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Format of the list
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output_format: Format,
}

/// Serve an editor: the Language Server Protocol on standard input and output
#[derive(Debug, Args)]
#[command(after_help = SERVER_HELP)]
pub(crate) struct ServerArgs {}
