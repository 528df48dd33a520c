//! A session of a process that works for another: a worker of a data loader or a pool.
//!
//! It keeps time by the process it works for, pays out of what all its workers share, and tells what it copies of what
//! it has inherited.

use std::time::Duration;

use caulk_wire::Unit;

use super::Session;
use super::cut::Cut;
use super::trend::Trend;
use crate::board;
use crate::census::Census;
use crate::heap::Heap;
use crate::in_use::Reading;
use crate::opened;
use crate::sharing::Shares;

/// What the first reading of a worker is taken to cost, and how many boundaries those of a single epoch see.
const FIRST_READING: Duration = Duration::from_millis(5);
const STAYS: u32 = 2;
/// Tensors that a forked process may hold on to.
const MOST_SHARED: usize = 4096;

impl Session {
    /// Tells those that work for this process where it is; one of those shares its credit with the others, until it makes
    /// steps of its own.
    pub(super) fn join_the_board(&mut self, cut: Cut) {
        if cut.of != 0 {
            self.budget.share(board::entry_of(cut.of), self.stays());
            return;
        }
        if self.budget.keep() {
            self.track_anew(Unit::Seconds);
            self.trends = [Trend::default(); 3];
            self.opened = opened::Watch::default();
        }
        if cut.unit != Unit::Seconds
            && cut.last.is_none()
            && let Some(entry) = board::own_entry()
        {
            entry.tell(cut.unit, cut.index, cut.steps);
        }
    }

    /// Tells whether this worker has something to be looked into: of several, one that has spends the credit of all.
    pub(super) fn claim_credit(&mut self) {
        let rises = self.trends.iter().any(Trend::rises) || self.copied.is_due(self.shares.as_ref());
        self.budget.set_rises(rises);
    }

    /// A worker is read from its first boundary on; where others before it have used up what that may cost all, only once
    /// it has stayed for longer than an epoch.
    pub(super) fn is_passed_over(&mut self) -> bool {
        let passed_over =
            self.seq == 0 && !self.stays() && !self.budget.affords(FIRST_READING, Duration::ZERO);
        self.passed_over += u32::from(passed_over);
        passed_over
    }

    /// Has this worker lived for longer than an epoch?
    fn stays(&self) -> bool {
        self.seq + self.passed_over >= STAYS
    }

    /// What a forked process that works for another still shares, where the boundary is worth a reading.
    pub(super) fn shares(&mut self, cut: Cut, reading: Reading) -> Shares {
        let wanted = cut.of != 0 && cut.with_census;
        let reserve = self.reserve(cut.unit);
        let meter = self.shares.as_mut().filter(|_| wanted);
        meter.and_then(|meter| meter.read(reading.rss, reserve, &self.budget)).unwrap_or_default()
    }

    /// Looks for what a forked process copies by reading it, once that shows.
    pub(super) fn look_for_copied(&mut self, heap: &mut Heap<'_>, seq: u32) {
        let Self { budget, copied_price, suspects, channel, copied, shares, .. } = self;
        if copied.is_due(shares.as_ref()) {
            copied_price.pay(budget, || {
                if let Some(found) = copied.search(heap) {
                    copied.explain(heap, found, suspects.number(), seq, channel);
                }
            });
        }
    }

    /// To hold on to very many objects of a process that this one was forked from would copy them.
    pub(super) fn shares_many(&self, census: &Census) -> bool {
        self.shares.is_some() && census.tensors.len() > MOST_SHARED
    }
}
