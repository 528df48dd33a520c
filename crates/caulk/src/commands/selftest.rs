//! `caulk selftest`: what of caulk works on this machine.

use anyhow::{Context, bail};
use camino::Utf8Path;
use caulk_doctor::CheckState;
use serde_json::json;

use super::doctor::table;
use crate::cli::{Format, SelftestArgs};
use crate::printer::{self, Printer};
use crate::selftest::{Found, Place, Seen, TRIALS, checks, run as run_trial};
use crate::{doctor, exit};

/// Runs the trials and tells what they showed.
///
/// # Errors
/// If there is no package, no interpreter, or no place for the recordings.
pub(crate) fn run(args: &SelftestArgs, printer: Printer) -> anyhow::Result<i32> {
    let exe = std::env::current_exe().context("failed to find the command")?;
    let package = caulk_supervise::find_package(&exe).context(
        "the Python package of caulk is not found\nhint: install both together; `CAULK_PACKAGE` names its folder",
    )?;
    let python = match doctor::python(args.python.as_deref().map(Utf8Path::as_str)) {
        Ok(python) => python,
        Err(cause) => bail!("{cause}\nhint: name the interpreter of your environment with `--python`"),
    };
    let place = Place::prepare(&package, args.output.as_deref())?;
    let seen: Vec<Seen> = (1..)
        .zip(TRIALS)
        .map(|(number, trial)| {
            printer.say(&format!("caulk: run {number} of {}\n", TRIALS.len()));
            run_trial(trial, &python.executable, &place)
        })
        .collect();
    let found = Found {
        sampler: caulk_supervise::find_sampler(&package, &exe),
        package,
        machine: doctor::machine(),
        pressure: std::fs::read_to_string("/proc/pressure/memory").is_ok(),
        leaking: place.lines.clone(),
        python,
    };
    let checks = checks(&found, &seen);
    let works = checks.iter().all(|check| check.state != CheckState::Problem);
    let text = match args.format {
        Format::Json => format!("{:#}\n", json!({ "schema": 1, "works": works, "checks": checks })),
        Format::Text => {
            table(&checks) + if works { "caulk works here\n" } else { "not everything works here\n" }
        }
    };
    printer::data(&text).context("failed to write to standard output")?;
    Ok(if works { exit::SUCCESS } else { exit::FOUND })
}
