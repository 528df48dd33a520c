//! `cargo xtask test`: everything, Rust and Python.

use std::time::SystemTime;

use crate::browser;
use crate::clips;
use crate::commands::develop::{self, Interpreter};
use crate::commands::docs;
use crate::console::{self, OrHint};
use crate::environment::{Environment, Packages, Tools};
use crate::libpython;
use crate::libraries;
use crate::package::Build;
use crate::process::Cmd;
use crate::runner::{pytest, runner, with_programs};
use crate::slowest;
use crate::workspace::Workspace;

const MANGLED_MINUTES: &str = "15";
/// Seconds that eight threads allocate under the heap sampler.
const STRESS: (&str, &str) = ("CAULK_STRESS_SECONDS", "60");

/// Run all tests, Rust and Python
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    interpreter: Interpreter,
    /// Also the tests that need frameworks, or take minutes
    #[arg(long)]
    full: bool,
    /// The tests of caulk-clips instead
    #[arg(long)]
    clips: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &TestArgs) -> anyhow::Result<()> {
    let groups: &[_] =
        if args.full { &[Packages::Dev, Packages::Full, Packages::Real] } else { &[Packages::Dev] };
    let groups = if args.clips { &[groups, &[clips::PACKAGES]].concat() } else { groups };
    let environment = develop::prepare(workspace, &args.interpreter, groups, Build::Develop)?;
    if args.clips {
        let tools = Tools::prepare(workspace, args.interpreter.path())?;
        clips::install(workspace, &tools, &environment, Build::Develop)?;
        return clips::test(workspace, &environment, args.full);
    }
    rust(workspace, &environment, args.full)?;
    if args.full {
        mangled(workspace)?;
    }
    python(workspace, &environment, args.full)?;
    docs::build(workspace, &environment.bin("caulk"))
}

fn rust(workspace: &Workspace, environment: &Environment, full: bool) -> anyhow::Result<()> {
    console::step("Rust tests");
    libraries::prepare();
    let library = libpython::prepare()?;
    let cargo = || {
        let command = with_programs(Cmd::cargo().folder(workspace.root()), environment);
        let command = if full { command.env(STRESS.0, STRESS.1) } else { command };
        match &library {
            Some(folder) => command.env("LD_LIBRARY_PATH", folder),
            None => command,
        }
    };
    let began = SystemTime::now();
    // The profile of the command that the tests drive: most crates are compiled once.
    let profile = Build::Develop.profile();
    let tested = cargo().args(runner(profile)).args(["--workspace"]).run();
    slowest::print(workspace, began);
    tested.or_hint("Rust tests failed", "run one alone with `cargo test --package CRATE NAME`")?;
    cargo().args(["test", "--workspace", "--doc", "--quiet", "--profile", profile]).run().or_hint(
        "examples in the documentation failed",
        "run them alone with `cargo test --package CRATE --doc`",
    )
}

/// `caulk check`'s way through mangled programs: no panic, no hang.
fn mangled(workspace: &Workspace) -> anyhow::Result<()> {
    console::step(format!("mangled Python for {MANGLED_MINUTES} minutes"));
    Cmd::cargo()
        .args(["run", "--quiet", "--release", "--package", "caulk_rules", "--example", "mangle", "--"])
        .args([MANGLED_MINUTES, "0", "target/mangle"])
        // Its own sources, and whatever packages are there.
        .args(["python", "examples", "crates/caulk_python/tests/programs", "target/ecosystem"])
        .folder(workspace.root())
        .run()
        .or_hint(
            "a check does not bear mangled Python",
            "target/mangle/seed-N and target/mangle hold the projects",
        )
}

fn python(workspace: &Workspace, environment: &Environment, full: bool) -> anyhow::Result<()> {
    console::step("Python tests: real trainings under caulk");
    let slowest = format!("--durations={}", slowest::SHOWN);
    let tests = pytest(environment, full);
    let tests = match browser::axe(workspace) {
        Some(axe) => tests.env("TEST_AXE", axe),
        None => tests,
    };
    tests.args([slowest.as_str(), "python/tests"]).folder(workspace.root()).run().or_hint(
        "Python tests failed",
        "run one alone with `.venv/bin/python -m pytest python/tests -k NAME`",
    )
}
