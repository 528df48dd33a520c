//! The machine that runs go on: what presses on all of them.

use std::fs;

use caulk_core::Bytes;
use serde::Serialize;

use crate::alarms::Processors;
use crate::target;

/// One look at it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// Memory that programs can still have, in bytes.
    pub(crate) available_bytes: u64,
    /// All there is, in bytes.
    pub(crate) physical_bytes: u64,
    /// Tasks that ran or waited for a processor or a disk, on average over the last minute.
    pub(crate) load: f64,
    /// Of the hottest processor, in degrees; `None` where the kernel does not tell.
    pub(crate) celsius: Option<f64>,
}

impl Machine {
    /// Now.
    pub(crate) fn look() -> Self {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let kilobytes = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let heat = Processors::here().look(0).into_iter().map(|(_, celsius)| celsius);
        Self {
            available_bytes: kilobytes.unwrap_or(0) * 1024,
            physical_bytes: target::memory(),
            load: load.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
            celsius: heat.reduce(f64::max),
        }
    }

    /// `21.8 GB of 23.5 GB free, load 1.2, processor 61 °C`.
    pub(crate) fn text(&self) -> String {
        let heat = self.celsius.map_or_else(String::new, |celsius| format!(", processor {celsius:.0} °C"));
        let (available, physical) = (Bytes(self.available_bytes), Bytes(self.physical_bytes));
        format!("{available} of {physical} free, load {:.1}{heat}", self.load)
    }
}
