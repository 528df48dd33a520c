//! `caulk completions` and `caulk man`: both are made from the arguments themselves.

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::exit;
use crate::printer::{self, Printer};

/// Prints completions.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<i32> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "caulk", &mut text);
    printer::data(text).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

/// Writes `caulk.1`, `caulk-run.1` ...
///
/// # Errors
/// If a page cannot be written.
pub(crate) fn man(args: &ManArgs, printer: Printer) -> anyhow::Result<i32> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("failed to make `{folder}`"))?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).with_context(|| format!("failed to write to `{folder}`"))?;
    printer.say(&format!("wrote the manual pages to {folder}"));
    Ok(exit::SUCCESS)
}
