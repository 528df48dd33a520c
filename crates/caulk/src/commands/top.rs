//! `caulk top`: runs that go on, looked at again and again.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use camino::Utf8PathBuf;
use caulk_record::HomeError;
use serde_json::json;

use crate::cli::{Format, TopArgs};
use crate::top::{Machine, Running, View, listen, running, text};
use crate::{exit, printer};

/// Looking takes one part in so many of a core at most.
const SHARE: u32 = 20;

/// Shows them until the user ends it; once where nobody watches.
///
/// # Errors
/// If they cannot be shown, or the only ones that go on cannot be read.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<i32> {
    let goes_on = io::stdout().is_terminal() && !args.once && args.format == Format::Text;
    // The terminal is given back when this returns, also if it cannot be written to.
    let keys = if goes_on { listen() } else { None };
    let help = if keys.is_some() { "q quits" } else { "" };
    if goes_on {
        printer::clear()?;
    }
    loop {
        let began = Instant::now();
        let Found { runs, closed } = found(args);
        let machine = Machine::look();
        let page = match args.format {
            Format::Text => text(&machine, &runs, &closed, printer::data_options().width, help),
            Format::Json => json(&machine, &runs, &closed),
        };
        if !goes_on && runs.is_empty() {
            refuse(&closed)?;
        }
        let shown = if goes_on { printer::redraw(&page) } else { printer::data(&page) };
        shown.context("failed to write to standard output")?;
        if !goes_on {
            return Ok(exit::SUCCESS);
        }
        thread::sleep(args.interval.0.max(began.elapsed() * SHARE).max(Duration::from_millis(100)));
    }
}

/// Runs that go on, and folders of such in which nobody may read.
struct Found {
    runs: Vec<View>,
    closed: Vec<Utf8PathBuf>,
}

fn found(args: &TopArgs) -> Found {
    let wanted = |name: &str| args.run.as_deref().is_none_or(|run| name.contains(run));
    let is_wanted = |folder: &Utf8PathBuf| folder.file_name().is_some_and(wanted);
    let Running { runs, closed } = running();
    // One that ends at this moment is not there any more.
    let runs = runs.into_iter().filter(is_wanted).filter_map(|folder| View::of(&folder).ok()).collect();
    Found { runs, closed: closed.into_iter().filter(is_wanted).collect() }
}

/// It is not said that no run goes on where one does.
fn refuse(closed: &[Utf8PathBuf]) -> Result<(), HomeError> {
    let Some(folder) = closed.first() else { return Ok(()) };
    let source = io::Error::from(io::ErrorKind::PermissionDenied);
    Err(HomeError::Unreadable { path: folder.clone(), source })
}

fn json(machine: &Machine, runs: &[View], closed: &[Utf8PathBuf]) -> String {
    let schema = caulk_report::SCHEMA;
    let document = json!({ "schema": schema, "machine": machine, "runs": runs, "unreadable": closed });
    format!("{document:#}\n")
}
