//! `caulk report`: explain a recorded run again.

use std::io::IsTerminal as _;

use anyhow::{Context, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_report::TextOptions;

use super::cuda_snapshot;
use crate::assemble::ByLine;
use crate::cli::{Format, ReportArgs, ReportFormat, RunFormat};
use crate::places::Places;
use crate::printer::{self, Printer};
use crate::{assemble, exit, files, lives};

/// The error of `--no-source` in a format that shows source.
const SHOWS_SOURCE: &str =
    "this format shows source\nhint: give `--html`, `--format json` or `--format markdown`";

/// Shows the report of one run.
///
/// # Errors
/// If there is no such run, its recording cannot be read, or the report cannot be written.
pub(crate) fn run(args: &ReportArgs, printer: Printer) -> anyhow::Result<i32> {
    let options = if args.output.is_some() { printer::file_options() } else { printer::data_options() };
    let options = TextOptions { full: args.full, ..options };
    if let Some(file) = &args.cuda_snapshot {
        let text = cuda_snapshot::report(file, args.format.of_figures()?, &options)?;
        return deliver(args, text.as_bytes());
    }
    let places = Places::here();
    places.warn(printer);
    let run = match &args.run {
        Some(run) => places.resolve(run)?,
        None => places.latest()?,
    };
    let name = run.file_name().unwrap_or("run");
    let folder = life(&run, args, printer)?;
    if let Some(file) = &args.flame {
        return flame(folder.as_ref().unwrap_or(&run), name, file);
    }
    if let Some(file) = &args.html {
        return html(&run, folder.as_deref(), args, printer, file);
    }
    let life = folder.as_deref().unwrap_or(&run);
    let content = if let Some(file) = &args.lines {
        by_line(
            life,
            Some(file.as_str()).filter(|file| !file.is_empty()),
            args.format.of_figures()?,
            &options,
        )?
        .into_bytes()
    } else if args.from.is_some() || args.to.is_some() {
        compared(life, args, &options)?.into_bytes()
    } else {
        match args.format {
            RunFormat::Report(format) => {
                whole(&run, folder.as_deref(), format, &options, args.no_source)?.into_bytes()
            }
            RunFormat::Pprof => profile(life, args.output.is_some())?,
        }
    };
    deliver(args, &content)
}

fn deliver(args: &ReportArgs, content: &[u8]) -> anyhow::Result<i32> {
    match &args.output {
        Some(path) => files::write(path, content)?,
        None => printer::data(content).context("failed to write to standard output")?,
    }
    Ok(exit::SUCCESS)
}

/// Folder of the one life to show; `None` for the report of them all.
fn life(run: &Utf8Path, args: &ReportArgs, printer: Printer) -> anyhow::Result<Option<Utf8PathBuf>> {
    if let Some(number) = args.life {
        return lives::wanted(run, number).map(Some);
    }
    let moments = args.from.is_some() || args.to.is_some();
    let profile = args.format == RunFormat::Pprof;
    let one = args.flame.is_some() || args.lines.is_some() || moments || profile;
    let count = lives::count(run);
    if !one || count == 1 {
        return Ok(None);
    }
    let number = assemble::judged_life(run)?;
    printer.note(&format!(
        "life {number} of {count}, by which the report judges memory; --life N shows another"
    ));
    Ok(Some(lives::folder(run, number)))
}

fn whole(
    run: &Utf8Path,
    life: Option<&Utf8Path>,
    format: ReportFormat,
    options: &TextOptions,
    no_source: bool,
) -> anyhow::Result<String> {
    let report = life.map_or_else(|| assemble::report(run), assemble::life)?;
    if no_source {
        return caulk_report::run_without_source(&report, format.into()).context(SHOWS_SOURCE);
    }
    Ok(caulk_report::run_in(&report, format.into(), options))
}

/// The heap by stack, as a profile.
fn profile(folder: &Utf8Path, into_file: bool) -> anyhow::Result<Vec<u8>> {
    ensure!(
        into_file || !std::io::stdout().is_terminal(),
        "a profile is binary, and standard output is a terminal\nhint: name a file: `--output heap.pb.gz`"
    );
    assemble::profile(folder)
}

/// What has changed between two moments.
fn compared(folder: &Utf8Path, args: &ReportArgs, options: &TextOptions) -> anyhow::Result<String> {
    let (comparisons, excerpts) = assemble::comparison(folder, args.from, args.to)?;
    Ok(match args.format.of_figures()? {
        Format::Text => caulk_report::comparison_text(&comparisons, &excerpts, options),
        Format::Json => caulk_report::comparison_json(&comparisons),
    })
}

/// Writes the picture and says where, for a browser to be given.
fn flame(folder: &Utf8Path, name: &str, file: &Utf8Path) -> anyhow::Result<i32> {
    let standard = Utf8PathBuf::from(format!("{name}.flame.html"));
    let file = if file.as_str().is_empty() { &standard } else { file };
    files::write(file, caulk_report::flame_html(&assemble::stacks(folder)?, name))?;
    printer::data(format!("{file}\n")).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

/// Writes the page and prints its name. Of several lives it draws the one by which the report judges memory.
fn html(
    run: &Utf8Path,
    life: Option<&Utf8Path>,
    args: &ReportArgs,
    printer: Printer,
    file: &Utf8Path,
) -> anyhow::Result<i32> {
    let standard = Utf8PathBuf::from(format!("{}.html", run.file_name().unwrap_or("run")));
    let file = if file.as_str().is_empty() { &standard } else { file };
    let page = match life {
        Some(life) => assemble::page(life, None, !args.no_source)?,
        None if lives::count(run) == 1 => assemble::page(run, None, !args.no_source)?,
        None => {
            let number = assemble::judged_life(run)?;
            printer.note(&format!(
                "the page draws life {number} of {}; --life N draws another",
                lives::count(run)
            ));
            assemble::page(&lives::folder(run, number), Some(assemble::report(run)?), !args.no_source)?
        }
    };
    files::write(file, page)?;
    printer::data(format!("{file}\n")).context("failed to write to standard output")?;
    Ok(exit::SUCCESS)
}

/// What each line holds of the heap; of one file, whose name may be given as it is seen from here.
fn by_line(
    folder: &Utf8Path,
    file: Option<&str>,
    format: Format,
    options: &TextOptions,
) -> anyhow::Result<String> {
    let ByLine { rows, totals, file, excerpts } = assemble::lines(folder, file)?;
    Ok(match format {
        Format::Text => caulk_report::lines_text(&rows, &totals, file.as_deref(), &excerpts, options),
        Format::Json => caulk_report::lines_json(&rows, &totals),
    })
}
