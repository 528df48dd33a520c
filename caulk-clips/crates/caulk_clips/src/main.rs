//! The command `caulk-clips`, which `caulk clips` runs: reads arguments, calls the crates that do the work, prints.

mod bar;
mod cli;
mod commands;
mod estimate;
mod exit;
mod printer;
mod same;
mod settings;
mod shape;

use clap::Parser;

use crate::cli::Cli;

fn main() {
    outlive_file_limit();
    let code = commands::run(&Cli::parse().action).unwrap_or_else(|error| {
        printer::error(&error);
        exit::FAILED
    });
    std::process::exit(code);
}

/// A limit on the size of files (`ulimit -f`) is an error of whatever is written, as a full disk is, and not the end.
fn outlive_file_limit() {
    // SAFETY: no handler is installed; other threads and children begin later.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
