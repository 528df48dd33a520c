//! What grows beside the heap of Python: GPU memory, open files, threads, the records of torch's profiler.

use caulk_wire::{NoteCode, Unit};
use pyo3::prelude::*;

use super::Session;
use crate::cuda;
use crate::cuda_history::Recorded;
use crate::in_use::Reading;

impl Session {
    /// What grows that is no object: a GPU's memory, files and threads.
    pub(super) fn look_beside_the_heap(
        &mut self,
        py: Python<'_>,
        unit: Unit,
        reading: Reading,
        cuda: &cuda::Cuda,
        seq: u32,
    ) -> PyResult<()> {
        if self.cuda_history.is_due(unit, &cuda.sum) {
            let Self { cuda_price, budget, cuda_history, channel, .. } = self;
            match cuda_price.pay(budget, || cuda_history.proceed(py, seq, &cuda.sum)).transpose()?.flatten() {
                Some(Recorded::Made(made)) => channel.send(&made.into()),
                Some(Recorded::TooMany) => {
                    let text = "no lines are named for what stays on the GPU: it has too many blocks to search without a long \
                                pause";
                    self.note(NoteCode::GpuLines, text);
                }
                None => {}
            }
        }
        if let Some(opened) = self.opened.look(py, reading, &self.segments, seq) {
            self.channel.send(&opened.into());
        }
        Ok(())
    }

    /// What torch and the driver have of each GPU.
    pub(super) fn send_ledgers(
        &mut self,
        py: Python<'_>,
        cuda: &cuda::Cuda,
        unit: Unit,
        boundary: u32,
    ) -> PyResult<()> {
        let detailed = unit <= self.tracked;
        for device in &cuda.devices {
            let ledger = self.ledgers.at(py, boundary, device, detailed, &self.budget)?;
            self.channel.send(&ledger.into());
        }
        Ok(())
    }

    pub(super) fn look_at_the_profiler(&mut self, py: Python<'_>, unit: Unit) {
        let kept = "torch's profiler is on all the time: it keeps every event until it is stopped";
        // Torch tells of the thread that asks, and seconds pass on any.
        if unit == Unit::Seconds && self.tracked != Unit::Seconds {
            return;
        }
        match self.profiler.look(py, unit <= self.tracked) {
            Some(true) => self.note(NoteCode::ProfilerOn, kept),
            Some(false) => self.note(NoteCode::ProfilerOff, "torch's profiler is off again"),
            None => {}
        }
    }
}
