//! The `caulk` command: reads arguments, calls the crates that do the work, prints.

mod alarms;
mod assemble;
mod brief;
mod cells;
mod check;
mod cli;
mod commands;
mod course;
mod doctor;
mod exit;
mod files;
mod heal;
mod lives;
mod places;
mod plan;
mod printer;
mod recorder;
#[cfg(test)]
mod recordings;
mod selftest;
mod server;
mod settings;
mod sources;
mod summary;
mod target;
mod top;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use crate::cli::{Cli, Command};
use crate::printer::Printer;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    caulk_supervise::outlive_file_limit();
    let cli = parse();
    let printer = Printer::new(match &cli.command {
        Command::Run(args) => args.quiet,
        Command::Heal(args) => args.quiet,
        _ => false,
    });
    let result = match &cli.command {
        Command::Run(args) => commands::run::run(args, printer),
        Command::Report(args) => commands::report::run(args, printer),
        Command::Runs(args) => commands::runs::run(args, printer),
        Command::Top(args) => commands::top::run(args),
        Command::Heal(args) => commands::heal::run(args, printer),
        Command::Check(args) => commands::check::run(args),
        Command::Rule(args) => commands::rules::page(args),
        Command::Rules(args) => commands::rules::list(args),
        Command::Server(_) => commands::server::run(),
        Command::Clean(args) => commands::clean::run(args, printer),
        Command::Clips(args) => commands::clips::run(args),
        Command::Completions(args) => commands::help::completions(args),
        Command::Diff(args) => commands::diff::run(args, printer),
        Command::Doctor(args) => commands::doctor::run(args, printer),
        Command::Man(args) => commands::help::man(args, printer),
        Command::Plan(args) => commands::plan::run(args, printer),
        Command::Selftest(args) => commands::selftest::run(args, printer),
        Command::Verify(args) => commands::verify::run(args, printer),
    };
    let code = result.unwrap_or_else(|error| {
        printer.error(&error);
        exit::code(&cli.command, &error)
    });
    std::process::exit(code);
}

/// The arguments. An unknown option of `caulk run` is no part of the command to run: a tip to make it one would mislead.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        let runs = std::env::args_os().nth(1).is_some_and(|word| word == "run");
        if runs && let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
            tips.retain(|tip| !tip.to_string().contains("as a value"));
            if !tips.is_empty() {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
            }
        }
        error.exit()
    })
}
