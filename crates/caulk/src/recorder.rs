//! From the supervisor into the recording. A recording that cannot be written costs one warning, never the training.

mod store;

use camino::Utf8Path;
use caulk_core::wire::NoteCode;
use caulk_core::{AgentEvent, GpuSample, Limits, Note, ProcessRecord, RunInfo, Sample, SystemSample, Target};
use caulk_record::WriteError;
use caulk_supervise::{Outcome, RunStart, Sink};

use crate::alarms::{Alarms, Thresholds};
use crate::printer::Printer;
use crate::settings::Budget;
use store::Store;

pub(crate) use store::Recorded;

/// Writes what the supervisor sees.
pub(crate) struct Recorder {
    store: Store,
    info: RunInfo,
    printer: Printer,
    budget: Option<Budget>,
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
    /// Begins a recording in a folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn create(
        folder: &Utf8Path,
        target: Target,
        budget: Option<Budget>,
        alarms: Option<Thresholds>,
        printer: Printer,
    ) -> Result<Self, WriteError> {
        let info = info(folder.file_name().unwrap_or("run"), target);
        let store = Store::create(folder, &info)?;
        Ok(Self::of(store, info, budget, alarms, printer))
    }

    /// Begins a recording in memory, for the report at the end; `reason` says why there is no other.
    pub(crate) fn in_memory(
        id: &str,
        target: Target,
        budget: Option<Budget>,
        alarms: Option<Thresholds>,
        printer: Printer,
        reason: &str,
    ) -> Self {
        let mut info = info(id, target);
        let text = format!("there is no recording of this run ({reason}): this report is all that stays");
        info.notes.push(Note::new(NoteCode::RecordsLost, text));
        Self::of(Store::Memory(Box::default()), info, budget, alarms, printer)
    }

    fn of(
        store: Store,
        info: RunInfo,
        budget: Option<Budget>,
        alarms: Option<Thresholds>,
        printer: Printer,
    ) -> Self {
        let alarms = Alarms::new(alarms);
        Self { store, info, printer, budget, unsaid: Vec::new(), alarms, acts_left: MOST_ACTS }
    }

    /// Name of the run.
    pub(crate) fn id(&self) -> &str {
        &self.info.id
    }

    /// Where it is, if it is not in memory alone.
    pub(crate) fn folder(&self) -> Option<&Utf8Path> {
        match &self.store {
            Store::Folder { folder, .. } => Some(folder),
            Store::Memory(_) => None,
        }
    }

    /// Removes the recording of a command that never started.
    pub(crate) fn discard(self) {
        self.store.discard();
    }

    /// Completes the recording.
    pub(crate) fn finish(mut self, outcome: &Outcome) -> Recorded {
        self.info.death = Some(outcome.death.clone());
        self.info.end_ns = Some(outcome.end_ns);
        self.info.left = outcome.left.clone();
        self.info.complete = true;
        let (recorded, result) = self.store.finish(&self.info);
        if let Err(error) = result {
            self.printer.warn_of(&error.into(), None);
        }
        recorded
    }

    fn head(&mut self) {
        let result = self.store.update_info(&self.info);
        self.heed(result);
    }

    /// Says at once what cannot wait for the report, which repeats it.
    fn alarm(&mut self, alarms: &[String]) {
        for text in alarms {
            self.printer.warn(text);
            self.info.notes.push(Note::new(NoteCode::Alarm, format!("alarm: {text}")));
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

fn info(id: &str, target: Target) -> RunInfo {
    RunInfo {
        schema: caulk_record::SCHEMA,
        caulk: env!("CARGO_PKG_VERSION").into(),
        id: id.into(),
        target,
        started: jiff::Zoned::now()
            .round(jiff::Unit::Second)
            .map_or_else(|_| String::new(), |now| now.to_string()),
        supervisor_pid: std::process::id(),
        ..RunInfo::default()
    }
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
        self.store.sample(sample);
    }

    fn system(&mut self, sample: &SystemSample) {
        self.store.system(sample);
    }

    fn gpu(&mut self, sample: &GpuSample) {
        self.store.gpu(sample);
        let alarms = self.alarms.gpu(sample);
        self.alarm(&alarms);
    }

    fn process(&mut self, record: &ProcessRecord) {
        self.store.process(record);
    }

    fn event(&mut self, event: &AgentEvent) {
        self.store.event(event);
        let alarms = self.alarms.event(event);
        self.alarm(&alarms);
    }

    fn tick(&mut self, now_ns: u64) {
        let alarms = self.alarms.tick(now_ns);
        self.alarm(&alarms);
        let result = self.store.flush();
        self.heed(result);
        if now_ns >= self.info.start_ns + LONG_NS {
            self.unsaid.drain(..).for_each(|note| self.printer.note(&note));
        }
    }

    fn note(&mut self, note: &Note) {
        self.info.notes.push(note.clone());
        self.unsaid.push(note.text.clone());
        self.head();
    }

    fn act(&mut self, text: &str) {
        self.printer.guard(text);
        if self.acts_left > 0 {
            self.acts_left -= 1;
            self.info.notes.push(Note::new(NoteCode::Guard, format!("guard: {text}")));
            self.head();
        }
    }
}
