//! Where a run is recorded: in the folder that the user wants it in, in the first of the usual places that takes it, or
//! where none does, in memory. A training is not refused for want of room.

use std::ffi::OsString;
use std::fs;
use std::io;

use anyhow::anyhow;
use camino::Utf8Path;
use caulk_core::Target;
use caulk_record::WriteError;
use jiff::Zoned;

use crate::alarms::Thresholds;
use crate::cli::RunArgs;
use crate::places::{self, Places};
use crate::printer::Printer;
use crate::recorder::Recorder;
use crate::{files, lives, target};

/// Said where there is no recording.
const IN_MEMORY: &str = "this run is watched without a recording; its report comes at its end";

const GONE: &str = "the working directory was removed";

/// What all recordings of a run have in common.
struct Run<'a> {
    args: &'a RunArgs,
    target: Target,
    printer: Printer,
}

/// Begins the recording of a run.
///
/// # Errors
/// If the folder that the user has chosen takes none for another reason than want of room.
pub(crate) fn begin(args: &RunArgs, printer: Printer) -> Result<Recorder, WriteError> {
    let run = Run { args, target: target::describe(&args.command), printer };
    let id = caulk_record::run_name(&target::name(&args.command), &Zoned::now());
    if let Some(folder) = &args.output {
        return run.create(folder).or_else(|error| {
            if is_excused(&error, folder) { Ok(run.in_memory(&id, error)) } else { Err(error) }
        });
    }
    let places = Places::here();
    let home = &places.home;
    let refusal = match run.create_in(home) {
        Ok(recorder) => return Ok(recorder),
        Err(error) if places.chosen && !is_excused(&error, home) => return Err(error),
        Err(error) => error,
    };
    for home in &places.spare {
        if let Ok(recorder) = run.create_in(home) {
            let place = recorder.folder().map_or_else(String::new, ToString::to_string);
            run.warn(refusal, format!("this run is recorded in `{place}`"));
            return Ok(recorder);
        }
    }
    Ok(run.in_memory(&id, refusal))
}

/// Begins the recording of a later life of a run, below that of the first one if there is such.
pub(crate) fn begin_life(
    args: &RunArgs,
    command: &[OsString],
    first: Option<&Utf8Path>,
    id: &str,
    number: usize,
    printer: Printer,
) -> Recorder {
    let run = Run { args, target: target::describe(command), printer };
    match first.map(|first| run.create(&lives::folder(first, number))) {
        Some(Ok(recorder)) => recorder,
        Some(Err(error)) => run.in_memory(id, error),
        None => run.held(id, "as of its first life"),
    }
}

impl Run<'_> {
    fn create(&self, folder: &Utf8Path) -> Result<Recorder, WriteError> {
        let alarms = Thresholds::of(&self.args.alarms);
        Recorder::create(folder, self.target.clone(), self.args.budget, alarms, self.printer)
    }

    /// A new folder in a home folder. One that takes no file is of no use to anybody.
    fn create_in(&self, home: &Utf8Path) -> Result<Recorder, WriteError> {
        let folder = caulk_record::new_run_folder(home, &target::name(&self.args.command), &Zoned::now())?;
        let room =
            places::room(&folder).map_err(|source| WriteError::Create { path: folder.clone(), source });
        room.and_then(|()| self.create(&folder)).inspect_err(|_| drop(fs::remove_dir_all(&folder)))
    }

    fn in_memory(&self, id: &str, refusal: WriteError) -> Recorder {
        let reason = match io_error(&refusal) {
            _ if self.is_lost() => GONE.to_owned(),
            Some(source) => source.to_string(),
            None => refusal.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        self.warn(refusal, IN_MEMORY.to_owned());
        self.held(id, &reason)
    }

    fn held(&self, id: &str, reason: &str) -> Recorder {
        let alarms = Thresholds::of(&self.args.alarms);
        Recorder::in_memory(id, self.target.clone(), self.args.budget, alarms, self.printer, reason)
    }

    fn warn(&self, refusal: WriteError, what: String) {
        let cause = if self.is_lost() { anyhow!(GONE) } else { refusal.into() };
        self.printer.warn_of(&cause.context(what), None);
    }

    /// The usual place is gone with the working directory.
    fn is_lost(&self) -> bool {
        self.args.output.is_none() && target::is_gone()
    }
}

/// What nobody can help who starts a training: no room, or a folder below a working directory that was removed.
fn is_excused(error: &WriteError, folder: &Utf8Path) -> bool {
    io_error(error).is_some_and(files::is_full) || folder.is_relative() && target::is_gone()
}

fn io_error(error: &WriteError) -> Option<&io::Error> {
    if let WriteError::Create { source, .. } = error { Some(source) } else { None }
}
