//! Automation of this workspace: `cargo xtask --help`.

mod commands;
mod console;
mod environment;
mod findings;
mod layers;
mod package;
mod process;
mod python;
mod workspace;
mod zoo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{check, demo, develop, test, zoo as zoo_command};
use workspace::Workspace;

/// Automation of the caulk workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Develop(develop::DevelopArgs),
    Demo(demo::DemoArgs),
    Test(test::TestArgs),
    Check(check::CheckArgs),
    Zoo(zoo_command::ZooArgs),
}

fn main() -> ExitCode {
    let workspace = Workspace::here();
    let result = match Cli::parse().command {
        Task::Develop(args) => develop::run(&workspace, &args),
        Task::Demo(args) => demo::run(&workspace, &args),
        Task::Test(args) => test::run(&workspace, &args),
        Task::Check(args) => check::run(&workspace, &args),
        Task::Zoo(args) => zoo_command::run(&workspace, &args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::print_error(&error);
            ExitCode::FAILURE
        }
    }
}
