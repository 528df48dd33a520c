//! A sink that also keeps the last samples for requests.

use caulk_core::{AgentEvent, GpuSample, Limits, Note, ProcessRecord, Sample, SystemSample};

use super::exporter::Exporter;
use crate::{RunStart, Sink};

/// Passes everything on.
pub(crate) struct Tee<'a> {
    sink: &'a mut dyn Sink,
    exporter: Exporter,
}

impl<'a> Tee<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, exporter: Exporter, budget: Option<u64>) -> Self {
        exporter.figures().budget = budget;
        Self { sink, exporter }
    }
}

impl Sink for Tee<'_> {
    fn started(&mut self, start: &RunStart) {
        self.exporter.figures().started(start);
        self.sink.started(start);
    }

    fn limited(&mut self, limits: &Limits) {
        self.exporter.figures().limits = *limits;
        self.sink.limited(limits);
    }

    fn sample(&mut self, sample: &Sample) {
        self.exporter.figures().sample(sample);
        self.sink.sample(sample);
    }

    fn system(&mut self, sample: &SystemSample) {
        self.exporter.figures().system(sample);
        self.sink.system(sample);
    }

    fn gpu(&mut self, sample: &GpuSample) {
        self.exporter.figures().gpu(sample);
        self.sink.gpu(sample);
    }

    fn process(&mut self, record: &ProcessRecord) {
        self.exporter.figures().process(record);
        self.sink.process(record);
    }

    fn event(&mut self, event: &AgentEvent) {
        self.exporter.figures().event(event);
        self.sink.event(event);
    }

    fn tick(&mut self, now_ns: u64) {
        self.sink.tick(now_ns);
    }

    fn note(&mut self, note: &Note) {
        self.sink.note(note);
    }

    fn act(&mut self, text: &str) {
        self.sink.act(text);
    }
}
