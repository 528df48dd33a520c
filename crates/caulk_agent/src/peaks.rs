//! Watches for the peak of an epoch: who was running, and which containers were full, when memory stood highest.

use std::time::Duration;

use caulk_wire::{ContainerKind, ContainerLen, Peak};
use pyo3::prelude::*;

use crate::channel::Channel;
use crate::stopwatch::monotonic;
use crate::{in_use, trace};

/// Bytes above the level at a boundary that make a peak worth a watch.
const PEAK: u64 = 64 << 20;
/// Epochs watched for their peak.
const WATCHES: u8 = 2;
/// A watch ends after this time, whether or not the epoch does.
const LONGEST: Duration = Duration::from_mins(1);

/// The watches of one process.
#[derive(Default)]
pub(crate) struct Peaks {
    watched: u8,
    armed: Option<Armed>,
}

struct Armed {
    boundary: u32,
    /// Bytes handed out by malloc when it was armed.
    level: u64,
    since: Duration,
}

impl Peaks {
    /// Arms a watch where memory has stood far above what is in use now, `headroom` bytes, once or twice in a run.
    pub(crate) fn arm(&mut self, py: Python<'_>, boundary: u32, in_use: u64, headroom: u64) {
        let worth = headroom > PEAK && headroom > in_use / 4 && self.watched < WATCHES;
        if !worth || self.armed.is_some() {
            return;
        }
        let level = in_use::malloc_now();
        if level > 0 && trace::arm_peak(py, level + PEAK / 2, in_use::malloc_now).is_ok() {
            self.watched += 1;
            self.armed = Some(Armed { boundary, level, since: monotonic() });
        }
    }

    /// Has the watch lasted too long?
    pub(crate) fn is_overdue(&self) -> bool {
        self.armed.as_ref().is_some_and(|armed| monotonic().saturating_sub(armed.since) > LONGEST)
    }

    /// Takes the watch down and tells what it saw; containers get numbers from `next_id` on.
    pub(crate) fn finish(&mut self, py: Python<'_>, next_id: &mut u32, channel: &mut Channel) {
        let Some(Armed { boundary, level, .. }) = self.armed.take() else { return };
        let Some(hit) = trace::disarm_peak(py) else { return };
        let mut ids = Vec::new();
        for mut full in hit.full {
            let id = *next_id;
            *next_id += 1;
            (full.holder.id, full.contents.id) = (id, id);
            (full.holder.boundary, full.contents.boundary) = (boundary, boundary);
            channel.send(&full.holder.into());
            channel.send(&full.contents.into());
            let kind =
                if full.type_name.contains("dict") { ContainerKind::Dict } else { ContainerKind::List };
            let (type_name, len) = (full.type_name, full.len);
            channel.send(&ContainerLen { boundary, id, kind, type_name, len, shallow_bytes: 0 }.into());
            ids.push(id);
        }
        let (file, line, function) = (hit.file, hit.line, hit.function);
        let peak =
            Peak { boundary, in_use_bytes: hit.bytes, baseline_bytes: level, file, line, function, ids };
        channel.send(&peak.into());
    }
}
