//! `caulk selftest`: its arguments.

use camino::Utf8PathBuf;
use clap::{Args, ValueHint};

use super::format::Format;

const HELP: &str = "\
Examples:
  caulk selftest                              with the `python` of your environment
  caulk selftest --python /envs/a/bin/python
  caulk selftest --format json --output bug/  for a report of what does not work

A tiny training that leaks and its clean twin are run under `caulk run`, each with and without the heap sampler, and it is \
looked at what caulk made of them. With torch it takes half a minute or so, most of which is spent importing it.

Exit code: 1 where something does not work, else 0; 125 failed.";

/// Run a tiny leak and its clean twin here, and say what works
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SelftestArgs {
    /// Interpreter to test with [default: python, else python3, as the shell finds it]
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<Utf8PathBuf>,

    /// Keep the recordings in this folder
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<Utf8PathBuf>,

    /// Format of the answer
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
