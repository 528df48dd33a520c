//! From the supervisor into the recording. A recording that cannot be written costs one warning, never the training.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::{AgentEvent, GpuSample, Limits, ProcessRecord, RunInfo, Sample, SystemSample, Target};
use caulk_record::{WriteError, Writer};
use caulk_supervise::{Outcome, RunStart, Sink};

use crate::alarms::{Alarms, Thresholds};
use crate::printer::Printer;
use crate::settings::Budget;

/// Writes what the supervisor sees.
pub(crate) struct Recorder {
    folder: Utf8PathBuf,
    writer: Writer,
    info: RunInfo,
    printer: Printer,
    budget: Option<Budget>,
    /// What lay in the folder before: it is not ours to remove.
    before: HashSet<OsString>,
    /// Notes that are not said yet.
    unsaid: Vec<String>,
    alarms: Alarms,
    /// Lines of the guard that the report may still repeat.
    acts_left: u32,
}

/// Lines of the guard that the report of one life repeats.
const MOST_ACTS: u32 = 20;

/// Of a run that takes longer, notes are said while it goes on: hours may be spent on what will not be seen. Of a shorter
/// one the report says them soon enough. In nanoseconds.
const LONG_NS: u64 = 10_000_000_000;

impl Recorder {
    /// Begins a recording.
    ///
    /// # Errors
    /// If it cannot be made: then the command is not started.
    pub(crate) fn create(
        folder: &Utf8Path,
        target: Target,
        budget: Option<Budget>,
        alarms: Option<Thresholds>,
        printer: Printer,
    ) -> Result<Self, WriteError> {
        let info = RunInfo {
            schema: caulk_record::SCHEMA,
            caulk: env!("CARGO_PKG_VERSION").into(),
            id: folder.file_name().unwrap_or("run").into(),
            target,
            started: jiff::Zoned::now()
                .round(jiff::Unit::Second)
                .map_or_else(|_| String::new(), |now| now.to_string()),
            supervisor_pid: std::process::id(),
            ..RunInfo::default()
        };
        let before = names(folder);
        let writer = Writer::create(folder, &info)?;
        Ok(Self {
            folder: folder.to_owned(),
            writer,
            info,
            printer,
            budget,
            before,
            unsaid: Vec::new(),
            alarms: Alarms::new(alarms),
            acts_left: MOST_ACTS,
        })
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Removes the recording of a command that never started.
    pub(crate) fn discard(self) {
        drop(self.writer);
        // What cannot be removed is an empty recording, which does no harm.
        for name in names(&self.folder).difference(&self.before) {
            let _ = fs::remove_file(self.folder.as_std_path().join(name));
        }
        if self.before.is_empty() {
            let _ = fs::remove_dir(&self.folder);
        }
    }

    /// Completes the recording and returns its folder.
    pub(crate) fn finish(mut self, outcome: &Outcome) -> Utf8PathBuf {
        self.info.death = Some(outcome.death.clone());
        self.info.end_ns = Some(outcome.end_ns);
        self.info.left = outcome.left.clone();
        self.info.complete = true;
        if let Err(error) = self.writer.finish(&self.info) {
            self.printer.warn_of(&error.into(), None);
        }
        self.folder
    }

    fn head(&mut self) {
        let result = self.writer.update_info(&self.info);
        self.heed(result);
    }

    /// Says at once what cannot wait for the report, which repeats it.
    fn alarm(&mut self, alarms: &[String]) {
        for text in alarms {
            self.printer.warn(text);
            self.info.notes.push(format!("alarm: {text}"));
        }
        if !alarms.is_empty() {
            self.head();
        }
    }

    /// Says what is not recorded; the writer says each failure once.
    fn heed(&self, result: Result<(), WriteError>) {
        if let Err(error) = result {
            self.printer.warn_of(&error.into(), Some("the training goes on undisturbed"));
        }
    }
}

fn names(folder: &Utf8Path) -> HashSet<OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

impl Sink for Recorder {
    fn started(&mut self, start: &RunStart) {
        self.info.root_pid = start.root_pid;
        self.info.start_ns = start.start_ns;
        self.info.limits = start.limits;
        let all = start.limits.physical_bytes.min(start.limits.cgroup_bytes.unwrap_or(u64::MAX));
        self.info.limits.budget_bytes = self.budget.map(|budget| budget.of(all));
        self.head();
    }

    fn limited(&mut self, limits: &Limits) {
        // A share was granted of what there was when the run began.
        self.info.limits = Limits { budget_bytes: self.info.limits.budget_bytes, ..*limits };
        self.head();
    }

    fn sample(&mut self, sample: &Sample) {
        self.writer.sample(sample);
    }

    fn system(&mut self, sample: &SystemSample) {
        self.writer.system(sample);
    }

    fn gpu(&mut self, sample: &GpuSample) {
        self.writer.gpu(sample);
        let alarms = self.alarms.gpu(sample);
        self.alarm(&alarms);
    }

    fn process(&mut self, record: &ProcessRecord) {
        self.writer.process(record);
    }

    fn event(&mut self, event: &AgentEvent) {
        self.writer.event(event);
        let alarms = self.alarms.event(event);
        self.alarm(&alarms);
    }

    fn tick(&mut self, now_ns: u64) {
        let alarms = self.alarms.tick(now_ns);
        self.alarm(&alarms);
        let result = self.writer.flush();
        self.heed(result);
        if now_ns >= self.info.start_ns + LONG_NS {
            self.unsaid.drain(..).for_each(|note| self.printer.note(&note));
        }
    }

    fn note(&mut self, text: &str) {
        self.info.notes.push(text.to_owned());
        self.unsaid.push(text.to_owned());
        self.head();
    }

    fn act(&mut self, text: &str) {
        self.printer.guard(text);
        if self.acts_left > 0 {
            self.acts_left -= 1;
            self.info.notes.push(format!("guard: {text}"));
            self.head();
        }
    }
}
