//! Automation of this workspace: `cargo xtask --help`.

mod bench;
mod browser;
mod checker;
mod circles;
mod clips;
mod columns;
mod commands;
mod console;
mod debian;
mod dist;
mod ecosystem;
mod environment;
mod findings;
mod gpu;
mod homes;
mod layers;
mod libpython;
mod libraries;
mod licences;
mod matrix;
mod names;
mod package;
mod process;
mod programs;
mod prose;
mod python;
mod runner;
mod samples;
mod slowest;
mod tokens;
mod workspace;
mod zoo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use package::Build;
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
    Develop(commands::develop::DevelopArgs),
    Package(PackageArgs),
    Demo(commands::demo::DemoArgs),
    Test(commands::test::TestArgs),
    Check(commands::check::CheckArgs),
    Dist(commands::dist::DistArgs),
    Docs(commands::docs::DocsArgs),
    Zoo(commands::zoo::ZooArgs),
    Bench(commands::bench::BenchArgs),
    GpuCheck(commands::gpu_check::GpuCheckArgs),
    Ecosystem(commands::ecosystem::EcosystemArgs),
    Matrix(commands::matrix::MatrixArgs),
    NewRule(commands::new_rule::NewRuleArgs),
    Record(commands::record::RecordArgs),
    HealZoo(commands::heal_zoo::HealZooArgs),
    VerifyZoo(commands::verify_zoo::VerifyZooArgs),
    Metamorph(commands::metamorph::MetamorphArgs),
}

/// Build the parts of the wheel beside the agent, for the build of the wheel
#[derive(Debug, clap::Args)]
struct PackageArgs {
    /// For the wheel of caulk-clips: the worker with FFmpeg
    #[arg(long)]
    clips: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse().command, &Workspace::here()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::print_error(&error);
            if error.is::<gpu::NoGpu>() { ExitCode::from(gpu::NO_GPU) } else { ExitCode::FAILURE }
        }
    }
}

fn run(task: &Task, workspace: &Workspace) -> anyhow::Result<()> {
    match task {
        Task::Develop(args) => commands::develop::run(workspace, args),
        Task::Package(PackageArgs { clips: true }) => clips::place_data(workspace, Build::Release),
        Task::Package(PackageArgs { clips: false }) => package::place_data(workspace, Build::Release),
        Task::Demo(args) => commands::demo::run(workspace, args),
        Task::Test(args) => commands::test::run(workspace, args),
        Task::Check(args) => commands::check::run(workspace, args),
        Task::Dist(args) => commands::dist::run(workspace, args),
        Task::Docs(args) => commands::docs::run(workspace, args),
        Task::Zoo(args) => commands::zoo::run(workspace, args),
        Task::Bench(args) => commands::bench::run(workspace, args),
        Task::GpuCheck(args) => commands::gpu_check::run(workspace, args),
        Task::Ecosystem(args) => commands::ecosystem::run(workspace, args),
        Task::Matrix(args) => commands::matrix::run(workspace, args),
        Task::NewRule(args) => commands::new_rule::run(workspace, args),
        Task::Record(args) => commands::record::run(workspace, args),
        Task::HealZoo(args) => commands::heal_zoo::run(workspace, args),
        Task::VerifyZoo(args) => commands::verify_zoo::run(workspace, args),
        Task::Metamorph(args) => commands::metamorph::run(workspace, args),
    }
}
