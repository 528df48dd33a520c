//! `caulk report`: explain a recorded run again.

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
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
    if let Some(file) = &args.flame {
        return flame(&folder, file);
    }
    let options = if args.output.is_some() { printer::file_options() } else { printer::data_options() };
    let text = if let Some(file) = &args.lines {
        by_line(&folder, Some(file.as_str()).filter(|file| !file.is_empty()), args.format, &options)?
    } else if args.from.is_some() || args.to.is_some() {
        compared(&folder, args, &options)?
    } else {
        whole(&folder, args.format, &options)?
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

/// What has changed between two moments.
fn compared(folder: &Utf8Path, args: &ReportArgs, options: &TextOptions) -> anyhow::Result<String> {
    let (comparisons, excerpts) = assemble::comparison(folder, args.from, args.to)?;
    Ok(match args.format {
        Format::Text => caulk_report::comparison_text(&comparisons, &excerpts, options),
        Format::Json => caulk_report::comparison_json(&comparisons),
    })
}

/// Writes the picture and says where, for a browser to be given.
fn flame(folder: &Utf8Path, file: &Utf8Path) -> anyhow::Result<i32> {
    let name = folder.file_name().unwrap_or("run");
    let standard = Utf8PathBuf::from(format!("{name}.flame.html"));
    let file = if file.as_str().is_empty() { &standard } else { file };
    files::write(file, caulk_report::flame_html(&assemble::stacks(folder)?, name))?;
    printer::data(&format!("{file}\n")).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
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
