//! The armed trace for what grows: armed for the heaviest, taken down in time, told.

use std::time::Duration;

use caulk_wire::{ContainerKind, Note, NoteCode, TraceHit, TraceOutcome, TraceState};
use pyo3::prelude::*;

use super::Suspects;
use super::armed::Armed;
use crate::channel::Channel;
use crate::heap::Heap;
use crate::stopwatch::monotonic;
use crate::trace::{self, Limits, Watch};

/// Containers watched by one armed trace.
const WATCHED: usize = 8;
/// Times that a container is watched in vain before its line is left open.
const TRIES: u8 = 3;
/// Longest time that a trace is armed: a long epoch need not be traced to its end.
const LONGEST_TRACE: Duration = Duration::from_secs(30);

impl Suspects {
    /// Watches for the peak of an epoch in which memory has stood far above its level now.
    pub(crate) fn watch_peak(&mut self, py: Python<'_>, boundary: u32, in_use: u64, headroom: u64) {
        if self.armed.is_none() {
            self.peaks.arm(py, boundary, in_use, headroom);
        }
    }

    /// Tells of the peak since the boundary before.
    pub(crate) fn finish_peak(&mut self, py: Python<'_>, channel: &mut Channel) {
        self.peaks.finish(py, &mut self.next_id, channel);
    }

    /// Arms the trace for the heaviest whose line is not known yet; `sparing`: only for what grows and is known to weigh
    /// something.
    pub(crate) fn arm(&mut self, heap: &Heap<'_>, sparing: bool, channel: &mut Channel) {
        if self.armed.is_some() || self.refused >= TRIES {
            return;
        }
        let mut order: Vec<usize> = (0..self.items.len())
            .filter(|at| {
                let item = &self.items[*at];
                let there = item.address.is_some() || item.place.is_some();
                item.explained
                    && there
                    && item.has_grown()
                    && !(sparing && (item.is_light() || item.is_still() || item.is_unseen()))
                    && !item.hit
                    && item.tries < TRIES
                    && !item.name.is_empty()
                    && item.kind != ContainerKind::LruCache
            })
            .collect();
        order.sort_by_key(|at| std::cmp::Reverse((self.items[*at].by_user, self.items[*at].weight())));
        order.truncate(WATCHED);
        let watches: Vec<Watch> = order.iter().filter_map(|at| self.items[*at].watch(heap)).collect();
        if watches.is_empty() {
            return;
        }
        let ids: Vec<u32> = watches.iter().map(|watch| watch.id).collect();
        match trace::arm(heap.py, watches, &Limits::default()) {
            Ok(candidates) => {
                for at in order {
                    self.items[at].tries += 1;
                }
                self.armed = Some(Armed { ids, candidates: candidates as u32, since: monotonic() });
            }
            Err(reason) => {
                self.refused += 1;
                let state = TraceState {
                    ids,
                    state: TraceOutcome::Refused,
                    text: reason.clone(),
                    ..TraceState::default()
                };
                channel.send(&state.into());
                if self.refused == 1 {
                    let text = format!(
                        "which line makes it grow was not watched: {reason}. Lines are told from the source alone, and \
                         none of them is proved"
                    );
                    channel.send(&Note { code: NoteCode::TraceRefused, text }.into());
                }
            }
        }
    }

    /// Has the trace been armed for too long?
    pub(crate) fn trace_is_overdue(&self) -> bool {
        self.armed.as_ref().is_some_and(|armed| monotonic().saturating_sub(armed.since) > LONGEST_TRACE)
            || self.peaks.is_overdue()
    }

    /// Takes the trace down once every watched container was seen growing often enough.
    pub(crate) fn finish_trace_if_enough(&mut self, py: Python<'_>, channel: &mut Channel) {
        if self.armed.is_some() {
            let progress = trace::poll(py);
            if progress.enough || progress.stopped.is_some() || self.trace_is_overdue() {
                self.finish_trace(py, channel);
            }
        }
        if self.peaks.is_overdue() {
            self.finish_peak(py, channel);
        }
    }

    /// Takes the trace down and tells what it saw.
    pub(crate) fn finish_trace(&mut self, py: Python<'_>, channel: &mut Channel) {
        let Some(armed) = self.armed.take() else { return };
        let progress = trace::poll(py);
        let hits = trace::disarm(py);
        for item in self.items.iter_mut().filter(|item| armed.ids.contains(&item.id)) {
            item.hit = hits.iter().any(|hit| hit.id == item.id);
        }
        let (state, text) = match progress.stopped {
            Some(reason) => (TraceOutcome::Stopped, reason),
            None if progress.blind => {
                (TraceOutcome::Blind, "watched functions ran but no event was seen".to_owned())
            }
            None if hits.is_empty() => (TraceOutcome::Silent, String::new()),
            None => (TraceOutcome::Hit, String::new()),
        };
        channel.send(
            &TraceState {
                ids: armed.ids,
                state,
                text,
                candidates: armed.candidates,
                armed_ns: monotonic().saturating_sub(armed.since).as_nanos() as u64,
            }
            .into(),
        );
        for hit in hits {
            let hit: TraceHit = hit.into();
            channel.send(&hit.into());
        }
    }
}
