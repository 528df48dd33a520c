//! `caulk heal`: find leaks, try the edits in a copy of the project, and prove which of them help.

use anyhow::{Context, anyhow, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::NoteCode;
use caulk_report::Report;
use jiff::Zoned;

use crate::cli::{HealArgs, HealFormat};
use crate::heal::{self, Document, Healed, Outcome, RunPlace, Shadow};
use crate::places::Places;
use crate::printer::{self, Printer};
use crate::{assemble, exit, files, target};

/// Name of the patch in the folder of a heal.
const PATCH: &str = "heal.patch";

/// Heals a program; the result is the exit code to end with.
///
/// # Errors
/// If the command cannot be run in a copy, or the result cannot be written.
pub(crate) fn run(args: &HealArgs, printer: Printer) -> anyhow::Result<i32> {
    for path in args.output.iter().chain(&args.html) {
        files::check(path)?;
    }
    caulk_supervise::note_signals().context("failed to wait for signals")?;
    let directory = target::directory();
    let directory = Utf8PathBuf::from_path_buf(directory)
        .map_err(|path| anyhow!("`{}` is no name in UTF-8", path.display()))?;
    let directory = directory.canonicalize_utf8().with_context(|| format!("failed to find `{directory}`"))?;
    let recorded = args.from.as_deref().map(|name| recorded(name, printer)).transpose()?;
    let base = base(&directory)?;
    let (folder, shadow) = if args.resume {
        // Which folder it is follows from the sources.
        let sources = Shadow::read(&directory, &RunPlace::Project)?;
        let folder = heal::find(&base, &heal::key(args, &directory, &sources.texts()))?;
        (folder.clone(), shadow(args, &directory, &folder)?)
    } else {
        let folder = make_folder(&base, &target::name(&args.command))?;
        let shadow = shadow(args, &directory, &folder)?;
        let sources = Shadow::read(&directory, &RunPlace::Project)?;
        heal::begin(&folder, heal::key(args, &directory, &sources.texts()))?;
        (folder, shadow)
    };
    let Healed { mut document, texts, end } = heal::heal(args, &shadow, &folder, recorded, printer);
    document.folder = short(&folder, &directory);
    document.patch = heal::diff(&shadow, &texts);
    let wanted = args.apply && matches!(end, Ok(None)) && !document.patch.is_empty();
    let applied = wanted.then(|| heal::apply(&shadow, &texts)).transpose();
    document.applied = matches!(applied, Ok(Some(())));
    let written = write(&folder, &document);
    // On a full disk the reason counts, not that it cannot be written down.
    let signal = end?;
    written?;
    applied.context("the edits were proven, but not applied")?;
    if let Some(path) = heal::changed(&shadow, &texts).filter(|_| !document.applied) {
        printer.warn(&format!("`{path}` was changed during the runs; the patch may not fit"));
    }
    deliver(args, &document)?;
    Ok(signal.unwrap_or_else(|| code(document.outcome)))
}

/// Writes the result into the folder of the heal.
fn write(folder: &Utf8Path, document: &Document) -> anyhow::Result<()> {
    if !document.patch.is_empty() {
        files::write(&folder.join(PATCH), &document.patch)?;
    }
    files::write(&folder.join("heal.json"), document.json()?)?;
    Ok(files::write(&folder.join("heal.md"), heal::markdown(document))?)
}

fn code(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::NothingToHeal | Outcome::Healed => exit::SUCCESS,
        Outcome::GrowthLeft => exit::FOUND,
        Outcome::Undecided => exit::UNDECIDED,
        Outcome::CommandFailed | Outcome::NotComparable => exit::COMMAND_FAILED,
        Outcome::Interrupted => exit::INTERRUPTED,
        Outcome::Failed => exit::FAILED,
    }
}

fn deliver(args: &HealArgs, document: &Document) -> anyhow::Result<()> {
    let written = match args.format {
        HealFormat::Text => heal::text(document),
        HealFormat::Json => document.json()?,
        HealFormat::Markdown => heal::markdown(document),
    };
    if let Some(path) = &args.html {
        files::write(path, heal::html(document))?;
    }
    match &args.output {
        Some(path) => files::write(path, written)?,
        None => printer::data(&written).context("failed to write to standard output")?,
    }
    Ok(())
}

/// The report on a run that was recorded before.
fn recorded(name: &str, printer: Printer) -> anyhow::Result<Report> {
    let places = Places::here();
    places.warn(printer);
    let report = assemble::report(&places.resolve(name)?)?;
    match report.notes.iter().find(|note| note.code == NoteCode::SourceChanged) {
        Some(note) => bail!("run `{name}`: {}\nhint: heal without --from", note.text),
        None => Ok(report),
    }
}

/// The project, and where it runs.
fn shadow(args: &HealArgs, directory: &Utf8Path, folder: &Utf8Path) -> anyhow::Result<Shadow> {
    let place =
        if args.in_place { RunPlace::Project } else { RunPlace::choose(&Shadow::root(directory), folder)? };
    Shadow::read(directory, &place)
}

/// The folder of all heals.
fn base(directory: &Utf8Path) -> anyhow::Result<Utf8PathBuf> {
    let home = Places::here().home;
    caulk_record::refuse_foreign(&home)?;
    Ok(directory.join(home).join("heal"))
}

/// Makes a new folder for this heal, which only its user can read.
fn make_folder(base: &Utf8Path, name: &str) -> anyhow::Result<Utf8PathBuf> {
    let name = caulk_record::run_name(name, &Zoned::now());
    heal::claim(base, &name).with_context(|| format!("failed to make `{name}` in `{base}`"))
}

/// The folder as a person here would type it.
fn short(folder: &Utf8Path, directory: &Utf8Path) -> String {
    folder.strip_prefix(directory).unwrap_or(folder).to_string()
}
