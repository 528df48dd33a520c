//! A reading of the memory in use, and the figures of a boundary that follow from it.

use std::time::Duration;

use caulk_wire::{Boundary, NoteCode, Trim, Unit};
use pyo3::prelude::*;

use super::Session;
use super::cut::{Cut, Last};
use super::predicted::predicted_cost;
use crate::census::{self, CollectorPaused, Depth};
use crate::copied_files;
use crate::heap::Heap;
use crate::heap_profile::Sampler;
use crate::in_use::{self, Reading};
use crate::stopwatch::Stopwatch;

impl Session {
    /// A reading of the memory in use.
    pub(super) fn read(&mut self, py: Python<'_>, cut: Cut) -> Reading {
        let mut reading = self.meter.read(py, cut.unit, &mut self.budget);
        reading.fresh &= cut.last != Some(Last::AtExit);
        let own = self.sampler.map_or(0, Sampler::shared_bytes);
        reading.shm = reading.shm.saturating_sub(own);
        if self.meter.has_lost_sums() {
            let text = "what malloc has handed out is read less often from now on: something in the program allocates past \
                        the heap sampler and gives back through it, so that its own count does not tell";
            self.note(NoteCode::SumsLost, text);
        }
        reading
    }

    /// The mean size of small objects, once, before the first figures: a mean that changed later would look like growth.
    pub(super) fn measure_small_objects(&mut self, py: Python<'_>, reading: Reading) {
        if self.mean_small.is_none() {
            let _paused = CollectorPaused::new(py);
            let cost = predicted_cost(Depth::Changed, reading.small_blocks);
            let worth = self.budget.allows(cost, Duration::ZERO);
            self.mean_small = Some(if worth { census::mean_small_object(&mut Heap::new(py)) } else { 64.0 });
        }
    }

    /// Bytes in use on the heap.
    pub(super) fn level(&self, reading: Reading) -> u64 {
        reading.malloc.used + (reading.small_blocks as f64 * self.mean_small.unwrap_or(64.0)) as u64
    }

    pub(super) fn figures(&self, reading: Reading) -> Boundary {
        let small = reading.small_blocks as f64 * self.mean_small.unwrap_or(64.0);
        let arenas = self.sampler.filter(|_| self.counts_arenas).map(Sampler::arena_bytes);
        Boundary {
            malloc_bytes: if reading.fresh { reading.malloc.used } else { 0 },
            malloc_free_bytes: reading.malloc.free,
            malloc_heap_bytes: reading.malloc.heap,
            malloc_top_bytes: reading.malloc.top,
            small_blocks: reading.small_blocks,
            small_bytes: small as u64,
            arena_bytes: arenas.unwrap_or(0),
            mapped_bytes: arenas.map_or(0, |arenas| reading.mapped().saturating_sub(arenas)),
            shm_bytes: reading.shm,
            rss_bytes: reading.rss,
            file_bytes: reading.file,
            threads: reading.threads,
            fds: reading.fds,
            ..Boundary::default()
        }
    }

    /// Bytes of mapped files that the process has copies of. Their mappings are read at the ends of epochs and by time, and
    /// at steps at doubling distances.
    pub(super) fn copied_files(&mut self, cut: Cut) -> Option<u64> {
        if cut.unit == Unit::Steps && !self.seq.is_power_of_two() {
            return None;
        }
        self.copied_files_price.pay(&self.budget, || copied_files::bytes().ok()).flatten()
    }

    /// Lets malloc give back what it can, as the user has asked for, and tells what came of it.
    pub(super) fn trim(&mut self, boundary: u32) {
        let started = Stopwatch::start();
        if let Some((before_bytes, after_bytes)) = in_use::trim() {
            let cost_ns = started.elapsed().as_nanos() as u64;
            self.channel.send(&Trim { boundary, before_bytes, after_bytes, cost_ns }.into());
        }
    }
}
