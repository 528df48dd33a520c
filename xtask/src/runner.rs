//! How tests are run, Rust and Python.

use crate::environment::Environment;
use crate::process::Cmd;

/// At most one Python test per core, and at most four because of memory: each is a process that imports torch. An idle worker
/// takes over tests of others.
const AT_A_TIME: [&str; 6] = ["--numprocesses", "auto", "--maxprocesses", "4", "--dist", "worksteal"];

/// Words for Cargo that run the tests of a workspace with a profile: by nextest where that is installed.
pub(crate) fn runner(profile: &'static str) -> Vec<&'static str> {
    if Cmd::cargo().args(["nextest", "--version"]).works() {
        vec!["nextest", "run", "--no-fail-fast", "--cargo-profile", profile]
    } else {
        vec!["test", "--lib", "--bins", "--tests", "--profile", profile]
    }
}

/// A run of Python tests; `full`: also of those that take long.
pub(crate) fn pytest(environment: &Environment, full: bool) -> Cmd {
    let everything: &[&str] = if full { &["-m", ""] } else { &[] };
    with_programs(Cmd::new(environment.bin("python")), environment)
        .args(["-m", "pytest"])
        .args(AT_A_TIME)
        .args(everything.iter().copied())
}

/// What tests drive: this tree's command, and a Python that has torch.
pub(crate) fn with_programs(command: Cmd, environment: &Environment) -> Cmd {
    command.env("TEST_CAULK", environment.bin("caulk")).env("TEST_PYTHON", environment.bin("python"))
}
