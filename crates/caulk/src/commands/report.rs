//! `caulk report`: explain a recorded run again.

use anyhow::Context;
use camino::Utf8Path;
use caulk_report::TextOptions;

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
    let options = if args.output.is_some() { printer::file_options() } else { printer::data_options() };
    let text = match &args.lines {
        Some(file) => {
            by_line(&folder, Some(file.as_str()).filter(|file| !file.is_empty()), args.format, &options)?
        }
        None => whole(&folder, args.format, &options)?,
    };
    match &args.output {
        Some(path) => files::write(path, &text)?,
        None => printer::data(&text).context("failed to write to standard output")?,
    }
    Ok(exit::SUCCESS)
}

fn whole(folder: &Utf8Path, format: Format, options: &TextOptions) -> anyhow::Result<String> {
    let report = assemble::report(folder)?;
    Ok(match format {
        Format::Text => caulk_report::text(&report, options),
        Format::Json => caulk_report::json(&report),
    })
}

/// What each line holds of the heap; of one file, whose name may be given as it is seen from here.
fn by_line(
    folder: &Utf8Path,
    file: Option<&str>,
    format: Format,
    options: &TextOptions,
) -> anyhow::Result<String> {
    let (rows, file, excerpts) = assemble::lines(folder, file)?;
    Ok(match format {
        Format::Text => caulk_report::lines_text(&rows, file.as_deref(), &excerpts, options),
        Format::Json => caulk_report::lines_json(&rows),
    })
}
