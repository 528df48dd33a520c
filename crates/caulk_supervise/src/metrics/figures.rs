//! The last samples of a run, as a monitoring system asks for them.

use std::collections::BTreeMap;

use caulk_core::wire::{Message, Unit};
use caulk_core::{AgentEvent, GpuSample, Limits, ProcessRecord, Sample, SystemSample};

use crate::RunStart;

/// The last sample of everything. Processes that have ended are not in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// Memory that the user grants, in bytes.
    pub(super) budget: Option<u64>,
    pub(super) limits: Limits,
    pub(super) system: Option<SystemSample>,
    /// By process id.
    pub(super) processes: BTreeMap<u32, Process>,
    /// By number.
    pub(super) devices: BTreeMap<u32, GpuSample>,
    /// What processes of the run have of devices: by device and process id.
    pub(super) parts: BTreeMap<(u32, u32), GpuSample>,
}

/// What is known of one process.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub(super) sample: Sample,
    pub(super) record: ProcessRecord,
    pub(super) inside: Inside,
}

/// What an agent has reported.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inside {
    /// Epochs that have ended.
    pub(super) epochs: u64,
    /// Steps of the optimizer.
    pub(super) steps: u64,
    /// Bytes of torch's allocator for GPUs: handed out, and taken from the devices.
    pub(super) torch_bytes: Option<[u64; 2]>,
}

impl Figures {
    /// A new life: of the one before nothing is left.
    pub(super) fn started(&mut self, start: &RunStart) {
        *self = Self { budget: self.budget, limits: start.limits, ..Self::default() };
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        self.processes.entry(sample.pid).or_default().sample = *sample;
    }

    /// Ends a look at all processes: those without a sample in it have ended.
    pub(super) fn system(&mut self, system: &SystemSample) {
        self.processes.retain(|_, process| process.sample.time_ns >= system.time_ns);
        self.system = Some(*system);
    }

    pub(super) fn gpu(&mut self, sample: &GpuSample) {
        if let Some(pid) = sample.pid {
            self.parts.insert((sample.device, pid), sample.clone());
            return;
        }
        // Parts come before their device.
        let (device, now) = (sample.device, sample.time_ns);
        self.parts.retain(|(of, _), part| *of != device || part.time_ns >= now);
        self.devices.insert(device, sample.clone());
    }

    pub(super) fn process(&mut self, record: &ProcessRecord) {
        // The record of an end comes after the last sample.
        if let Some(known) = self.processes.get_mut(&record.pid) {
            known.record = record.clone();
        }
    }

    pub(super) fn event(&mut self, event: &AgentEvent) {
        let Message::Boundary(boundary) = &event.message else { return };
        let Some(known) = self.processes.get_mut(&event.pid).filter(|_| boundary.of == 0) else { return };
        let inside = &mut known.inside;
        if boundary.unit == Unit::Epoch {
            // The boundary lies at the beginning of the epoch with this number, from 0.
            inside.epochs = boundary.index;
        }
        inside.steps = inside.steps.max(boundary.steps);
        let torch = [boundary.cuda_allocated_bytes, boundary.cuda_reserved_bytes];
        if torch != [0, 0] || inside.torch_bytes.is_some() {
            inside.torch_bytes = Some(torch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, time_ns: u64) -> Sample {
        Sample { pid, time_ns, rss_bytes: 5, ..Sample::default() }
    }

    #[test]
    fn what_has_ended_is_left_out() {
        let mut figures = Figures::default();
        figures.sample(&sample(1, 10));
        figures.sample(&sample(2, 10));
        figures.system(&SystemSample { time_ns: 10, ..SystemSample::default() });
        assert_eq!(figures.processes.len(), 2);
        figures.sample(&sample(1, 20));
        figures.system(&SystemSample { time_ns: 20, ..SystemSample::default() });
        figures.process(&ProcessRecord { pid: 2, ..ProcessRecord::default() });
        assert_eq!(figures.processes.keys().collect::<Vec<_>>(), [&1]);
    }

    #[test]
    fn parts_of_a_device_are_those_of_its_last_sample() {
        let mut figures = Figures::default();
        let gpu = |pid, time_ns| GpuSample { pid, time_ns, ..GpuSample::default() };
        for sample in [gpu(Some(1), 10), gpu(Some(2), 10), gpu(None, 10)] {
            figures.gpu(&sample);
        }
        assert_eq!(figures.parts.len(), 2);
        for sample in [gpu(Some(2), 20), gpu(None, 20)] {
            figures.gpu(&sample);
        }
        assert_eq!(figures.parts.keys().collect::<Vec<_>>(), [&(0, 2)]);
    }
}
