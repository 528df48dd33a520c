//! One run of the command in the copy of its project, recorded and judged.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context, bail};
use camino::{Utf8Path, Utf8PathBuf};
use caulk_check::Texts;
use caulk_heal::Output;
use caulk_report::Report;
use caulk_supervise::{Options, Progress, Streams};

use super::journal::{self, Kept};
use super::outputs;
use super::shadow::Shadow;
use crate::cli::{HealArgs, PERIOD};
use crate::commands::live::live;
use crate::printer::Printer;
use crate::recorder::Recorder;
use crate::{assemble, course, places, target};

/// A run that is over.
pub(super) struct Ran {
    pub(super) number: usize,
    pub(super) report: Report,
    /// Its standard output, up to the moment at which caulk ended it.
    output: String,
    /// caulk ended it.
    pub(super) cut: bool,
    /// It ended as it should.
    pub(super) succeeded: bool,
    /// Its standard error.
    pub(super) errors: String,
    /// The signal by which a person wants the end of all.
    pub(super) interrupted: Option<i32>,
    /// Memory in use at the boundaries of the training process, in bytes.
    pub(super) in_use: Vec<u64>,
    /// Files that are to stay the same; `None` if it made none.
    pub(super) files: Vec<Option<String>>,
}

/// Runs the command as often as needed.
pub(super) struct Runner<'a> {
    args: &'a HealArgs,
    shadow: &'a Shadow,
    folder: &'a Utf8Path,
    printer: Printer,
    runs: usize,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        args: &'a HealArgs,
        shadow: &'a Shadow,
        folder: &'a Utf8Path,
        printer: Printer,
    ) -> Self {
        Self { args, shadow, folder, printer, runs: 0 }
    }

    /// How many there were.
    pub(super) fn runs(&self) -> usize {
        self.runs
    }

    /// Runs the command with these sources, unless it did so before in the heal that is resumed.
    ///
    /// # Errors
    /// If the copy cannot be made, or the command cannot be started.
    pub(super) fn run(&mut self, texts: &Texts) -> anyhow::Result<Ran> {
        self.runs += 1;
        let number = self.runs;
        let sources = journal::digest(texts);
        // A recording is judged with the sources that ran.
        let _edited = self.shadow.make(texts)?;
        let (kept, interrupted) = match journal::kept(self.folder, number, &sources) {
            Some(kept) => (kept, None),
            None => self.record(number, sources)?,
        };
        let folder = self.folder.join(format!("run-{number}"));
        // A run that was ended at once may have left nothing to judge.
        let report = match assemble::report(&folder) {
            Err(_) if interrupted.is_some() => Report::default(),
            report => report.with_context(|| format!("run {number} cannot be judged"))?,
        };
        let read = |path: &Utf8Path| {
            fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        };
        let Streams { output, error } = self.streams(number);
        let mut output = read(&output);
        if let Some(length) = kept.output_bytes {
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(output.len());
            output.truncate(output.floor_char_boundary(length));
        }
        Ok(Ran {
            number,
            report,
            output,
            cut: kept.cut,
            succeeded: kept.succeeded,
            errors: read(&error),
            // A signal may have come while nothing ran.
            interrupted: interrupted.or_else(caulk_supervise::noted_signal),
            in_use: caulk_record::read(&folder)
                .map(|recording| course::in_use(&recording))
                .unwrap_or_default(),
            files: kept.files,
        })
    }

    /// Runs and records it; with the signal that ended all.
    fn record(&self, number: usize, sources: String) -> anyhow::Result<(Kept, Option<i32>)> {
        let folder = self.folder.join(format!("run-{number}"));
        // Left from a run that was interrupted.
        let _ = fs::remove_dir_all(&folder);
        let directory = self.shadow.working_directory();
        let words = self.shadow.words(&self.args.command);
        let mut about = target::describe(&words);
        about.directory.clone_from(&directory.to_string());
        places::room(self.folder).with_context(|| self.no_room())?;
        let recorder = Recorder::create(&folder, about, None, None, self.printer)?;
        let (recorded, outcome) = live(&self.options(words, directory, self.streams(number)), recorder)?;
        if recorded.folder().is_none() {
            bail!(self.no_room());
        }
        if let Some(file) = self.shadow.written_through() {
            bail!(
                "the run changed `{file}` in place: every further run would begin with what this one left\n\
                 hint: copy the project to another folder, and heal it there"
            );
        }
        let contents = |file: &Utf8PathBuf| {
            let bytes = fs::read(self.shadow.file(file)).ok()?;
            let notebook = file.extension() == Some("ipynb");
            let shown = notebook.then(|| outputs::of_notebook(&bytes)).flatten();
            Some(journal::digest(&shown.unwrap_or(bytes)))
        };
        let kept = Kept {
            sources,
            cut: outcome.cut.is_some(),
            output_bytes: outcome.cut.and_then(|cut| cut.output_bytes),
            succeeded: outcome.death.stopped || outcome.exit_code == 0,
            files: self.args.same.iter().map(contents).collect(),
        };
        if outcome.signalled.is_none() {
            journal::keep(self.folder, number, &kept)?;
        }
        Ok((kept, outcome.signalled))
    }

    fn no_room(&self) -> String {
        format!(
            "no room for the recording in `{}`\nhint: make room there, or set CAULK_HOME to another disk",
            self.folder
        )
    }

    /// Files for what a run prints.
    fn streams(&self, number: usize) -> Streams {
        let file = |kind: &str| self.folder.join(format!("run-{number}.{kind}"));
        Streams { output: file("out"), error: file("err") }
    }

    fn options(&self, words: Vec<OsString>, directory: Utf8PathBuf, streams: Streams) -> Options {
        let mut options = Options::new(words);
        let exe = std::env::current_exe().ok();
        options.package = exe.as_deref().and_then(caulk_supervise::find_package);
        options.sampler = options
            .package
            .as_deref()
            .zip(exe.as_deref())
            .and_then(|(package, exe)| caulk_supervise::find_sampler(package, exe));
        // What a program has printed before it is ended must be in the file.
        options.environment =
            vec![("PWD".into(), directory.as_str().into()), ("PYTHONUNBUFFERED".into(), "1".into())];
        options.directory = Some(directory);
        options.overlay = self.shadow.overlay().cloned();
        options.streams = Some(streams);
        options.progress = Progress::None;
        options.period = PERIOD;
        options.epochs = self.args.epochs;
        options.time_limit = self.args.time_limit.map(|limit| limit.0);
        options
    }
}

impl Ran {
    /// What it printed.
    pub(super) fn output(&self) -> Output<'_> {
        Output { text: &self.output, cut: self.cut }
    }

    /// How the command ended.
    pub(super) fn report_death(&self) -> String {
        let death = self.report.info.death.as_ref();
        death.map_or_else(|| "its end was not seen".into(), |death| format!("it {}", death.text))
    }

    /// The last line that it wrote to standard error: of a traceback, the exception.
    pub(super) fn last_error(&self) -> &str {
        self.errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim()
    }
}
