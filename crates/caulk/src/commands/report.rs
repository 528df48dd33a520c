//! `caulk report`: explain a recorded run again.

use anyhow::Context;

use crate::cli::{Format, ReportArgs};
use crate::places::Places;
use crate::printer;
use crate::{assemble, exit, files};

/// Shows the report of one run.
///
/// # Errors
/// If there is no such run, its recording cannot be read, or the report cannot be written.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<i32> {
    let places = Places::here();
    let folder = match &args.run {
        Some(run) => places.resolve(run)?,
        None => places.latest()?,
    };
    let report = assemble::report(&folder)?;
    let options = if args.output.is_some() { printer::file_options() } else { printer::data_options() };
    let text = match args.format {
        Format::Text => caulk_report::text(&report, &options),
        Format::Json => caulk_report::json(&report),
    };
    match &args.output {
        Some(path) => files::write(path, &text)?,
        None => printer::data(&text).context("failed to write to standard output")?,
    }
    Ok(exit::SUCCESS)
}
