//! `caulk top`: runs that go on, looked at again and again.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;

use crate::cli::{Format, TopArgs};
use crate::top::{Machine, View, running, text};
use crate::{exit, printer};

/// Looking takes one part in so many of a core at most.
const SHARE: u32 = 20;

/// Shows them until the user ends it; once where nobody watches.
///
/// # Errors
/// If they cannot be shown.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<i32> {
    let goes_on = io::stdout().is_terminal() && !args.once && args.format == Format::Text;
    if goes_on {
        printer::clear()?;
    }
    loop {
        let began = Instant::now();
        let page = look(args);
        let shown = if goes_on { printer::redraw(&page) } else { printer::data(&page) };
        shown.context("failed to write to standard output")?;
        if !goes_on {
            return Ok(exit::SUCCESS);
        }
        thread::sleep(args.interval.0.max(began.elapsed() * SHARE).max(Duration::from_millis(100)));
    }
}

fn look(args: &TopArgs) -> String {
    let wanted = |name: &str| args.run.as_deref().is_none_or(|run| name.contains(run));
    let folders = running().into_iter().filter(|folder| folder.file_name().is_some_and(wanted));
    // One that ends at this moment is not there any more.
    let runs: Vec<View> = folders.filter_map(|folder| View::of(&folder).ok()).collect();
    let machine = Machine::look();
    match args.format {
        Format::Text => text(&machine, &runs, printer::data_options().width),
        Format::Json => {
            let document = json!({ "schema": caulk_report::SCHEMA, "machine": machine, "runs": runs });
            format!("{document:#}\n")
        }
    }
}
