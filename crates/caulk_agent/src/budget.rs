//! What the agent may cost: a start credit, then a share of the process's own CPU time, as on an ordinary machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::board::Entry;
use crate::stopwatch::{Stopwatch, monotonic, ordinary, process_time};

/// CPU time that a process may spend before the share applies. This and all that follows is as on an ordinary machine.
///
/// Leaks are found early or late in a run at the same cost; early, the answer is there before the memory is gone.
const CREDIT: Duration = Duration::from_millis(750);
/// A third of it, left for what matters more: by censuses at steps and seconds for the epochs, by what weighs next to
/// nothing for what may be a leak.
pub(crate) const RESERVE: Duration = Duration::from_millis(250);
/// Share of the process's CPU time beyond the credit.
const SHARE: f64 = 0.005;
/// The same for a worker whose siblings have another one that is looked into: enough to read its memory.
const READINGS: Duration = Duration::from_millis(50);
/// The same for all such workers of a process together: loaders that are made anew per epoch have no end of them. Some fifty
/// readings of a process with torch, which tell early on how private memory changes from one worker to the next.
const ALL_READINGS: Duration = Duration::from_millis(150);
/// Longest pause at one boundary that is knowingly taken.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Time spent in the agent on this process's behalf.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Budget {
    /// As on an ordinary machine.
    spent: Duration,
    /// Left for later by all that is done at this boundary.
    held: Duration,
    /// Part of this boundary's cost that is no matter of the credit.
    exempt: Duration,
    /// As on this one.
    taken: Duration,
    longest: Duration,
    /// Since the boundary that is being worked at began.
    begun: Option<Stopwatch>,
    /// When the first one did, on the wall.
    first: Option<Duration>,
    /// Share of the process's CPU time up to the last boundary, and that time: at the pace that the machine had then.
    earned: Duration,
    seen: Duration,
    /// Where the process is found that this one works for: all that do have one credit together.
    shared: Option<Entry>,
    /// May that credit be this one's to spend, and has its own memory risen lately?
    stays: bool,
    rises: bool,
    /// Part of `spent` that was paid from that credit.
    lent: Duration,
}

impl Budget {
    /// May work of about this length be done now, and leave `reserve` for later?
    pub(crate) fn allows(&self, predicted: Duration, reserve: Duration) -> bool {
        self.fits(predicted) && self.affords(predicted, reserve)
    }

    /// Is that a pause that may be knowingly taken at this boundary?
    pub(crate) fn fits(&self, predicted: Duration) -> bool {
        self.now() + predicted <= self.longest_pause()
    }

    /// The same, however long the pause is already.
    pub(crate) fn affords(&self, predicted: Duration, reserve: Duration) -> bool {
        // For the same later: a program that never has what both are left for would be told nothing in time.
        let left = reserve.max(self.held);
        self.spent + self.now() + predicted + left <= self.credit() + self.earned
    }

    /// While one worker pauses, its siblings and the batches that wait keep the training going.
    fn longest_pause(&self) -> Duration {
        if self.shared.is_some() { 2 * LONGEST_PAUSE } else { LONGEST_PAUSE }
    }

    /// What may be spent before the share applies: of several workers, one has the credit of all.
    fn credit(&self) -> Duration {
        let Some(entry) = self.shared else { return CREDIT };
        let of_others =
            |spent: &AtomicU64, own| Duration::from_nanos(spent.load(Ordering::Relaxed)).saturating_sub(own);
        if self.spends(entry) {
            CREDIT.saturating_sub(of_others(entry.spent(), self.lent))
        } else {
            let left =
                ALL_READINGS.saturating_sub(of_others(entry.read(), self.spent.saturating_sub(self.lent)));
            // What it spent while the credit was its own is no matter of its readings.
            self.lent + READINGS.min(left)
        }
    }

    /// Is this the worker that spends the credit of all?
    fn spends(&self, entry: Entry) -> bool {
        self.stays && entry.spends(self.rises)
    }

    /// From now on the credit is that of all who work for this process; one that `stays` may be the one to spend it.
    pub(crate) fn share(&mut self, entry: Option<Entry>, stays: bool) {
        self.shared = self.shared.or(entry);
        self.stays = stays;
    }

    /// From now on the credit is its own again; returns whether it was not.
    pub(crate) fn keep(&mut self) -> bool {
        let Some(entry) = self.shared.take() else { return false };
        entry.give_back();
        true
    }

    /// Has the memory of this process risen lately? Then the credit that it shares is rather its own to spend.
    pub(crate) fn set_rises(&mut self, rises: bool) {
        self.rises = rises;
    }

    /// What this boundary has cost so far.
    fn now(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, Stopwatch::work).saturating_sub(self.exempt)
    }

    /// So much of this boundary's cost is no matter of the credit: it has a bound of its own.
    pub(crate) fn exempt(&mut self, cost: Duration) {
        self.exempt += cost;
    }

    /// Work at a boundary begins.
    pub(crate) fn begin(&mut self) {
        self.begun = Some(Stopwatch::start());
        let first = *self.first.get_or_insert_with(monotonic);
        // A pause stops the thread that trains: many busy threads do not make it cheaper.
        let seen = process_time().min(monotonic().saturating_sub(first));
        self.earned += ordinary(seen.saturating_sub(self.seen)).mul_f64(SHARE);
        self.seen = seen;
    }

    /// All that is done at this boundary leaves so much for later.
    pub(crate) fn hold(&mut self, reserve: Duration) {
        self.held = reserve;
    }

    /// Work at a boundary is done.
    pub(crate) fn spend(&mut self) {
        let worked = self.now();
        let Some(begun) = self.begun.take() else { return };
        let taken = begun.elapsed();
        self.exempt = Duration::ZERO;
        self.spent += worked;
        self.taken += taken;
        if let Some(entry) = self.shared {
            let lent = self.spends(entry);
            self.lent += if lent { worked } else { Duration::ZERO };
            let spent = if lent { entry.spent() } else { entry.read() };
            spent.fetch_add(worked.as_nanos() as u64, Ordering::Relaxed);
        }
        self.longest = self.longest.max(taken);
    }

    /// CPU time that the agent took.
    pub(crate) fn taken(&self) -> Duration {
        self.taken
    }

    /// The longest pause.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }
}

/// What a kind of work is taken to cost: what it did cost lately.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price(Duration);

impl Price {
    /// `first`: what it is taken to cost before it has been done.
    pub(crate) const fn new(first: Duration) -> Self {
        Self(first)
    }

    /// What the work is taken to cost.
    pub(crate) fn expected(self) -> Duration {
        self.0
    }

    /// Does the work where the budget allows it.
    pub(crate) fn pay<R>(&mut self, budget: &Budget, work: impl FnOnce() -> R) -> Option<R> {
        if !budget.allows(self.0, Duration::ZERO) {
            // What was dear once is tried again in the end.
            self.0 = self.0 * 7 / 8;
            return None;
        }
        Some(self.measure(work))
    }

    /// Does the work that a long pause was made for.
    pub(crate) fn pay_at_last<R>(&mut self, budget: &Budget, work: impl FnOnce() -> R) -> Option<R> {
        budget.affords(self.0, Duration::ZERO).then(|| self.measure(work))
    }

    fn measure<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let started = Stopwatch::start();
        let result = work();
        self.0 = started.work().max(self.0 * 3 / 4);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_leave_for_later_is_left_once() {
        let mut budget = Budget::default();
        budget.hold(RESERVE);
        let third = CREDIT / 3;
        assert!(budget.affords(2 * third, Duration::ZERO) && budget.affords(2 * third, RESERVE));
        assert!(!budget.affords(2 * third + third / 2, Duration::ZERO));
        budget.hold(Duration::ZERO);
        assert!(budget.affords(CREDIT, Duration::ZERO) && !budget.affords(CREDIT, RESERVE));
    }

    #[test]
    fn what_was_too_dear_is_tried_again_in_the_end() {
        let mut budget = Budget::default();
        budget.begin();
        let mut price = Price::new(LONGEST_PAUSE * 2);
        assert_eq!(price.pay(&budget, || ()), None);
        assert!((0..20).any(|_| price.pay(&budget, || ()).is_some()));
    }
}
