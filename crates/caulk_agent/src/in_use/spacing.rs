//! Which boundaries an allocator is asked at that takes long to answer: many free blocks make `mallinfo2` dear.
//!
//! Ends of epochs decide whether memory grows: the first of them and then those at growing distances are read whatever one
//! reading costs, up to a bound. Steps get what is left, and nothing while epochs pass within seconds.

use std::time::Duration;

use caulk_wire::Unit;

/// Boundaries of one unit that are all read.
const FIRST: u32 = 6;
/// From one boundary that is read to the next: the newest reading is never older than a fifth of the run.
const GROWTH: f64 = 1.25;
/// CPU time that readings may cost which must not be left out ...
const CREDIT: Duration = Duration::from_secs(1);
/// ... or this share of the process's CPU time, whichever is more.
const SHARE: f64 = 0.02;
/// The newest reading is not to be older than one part in so many of the run.
const FRESH: u32 = 5;
/// ... once the run is so long.
const YOUNG: Duration = Duration::from_secs(2);
/// Epochs that pass faster make readings at steps worthless.
const SHORT_EPOCH: Duration = Duration::from_secs(10);

/// What a dear reading at a boundary would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Its cost is no matter of the agent's other work.
    Must,
    /// It is made where the budget allows it.
    May,
    /// It is left out.
    No,
}

/// Time at a boundary: since the machine started, and CPU time of the process as on an ordinary machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
}

/// The boundaries of one unit.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    seen: u32,
    /// The next one to be read, once the first are.
    next: u32,
}

/// What has been read so far, and what must be next.
#[derive(Debug, Default)]
pub(super) struct Spacing {
    rows: [Row; Unit::ALL.len()],
    /// CPU time of readings that had to be made.
    spent: Duration,
    begun: Option<Duration>,
    last: Option<Duration>,
    epoch: Option<Duration>,
    epoch_length: Option<Duration>,
}

impl Row {
    fn is_due(self) -> bool {
        self.seen <= FIRST || self.seen >= self.next
    }
}

impl Spacing {
    /// The next boundary is here; what would a reading at this `cost` be?
    pub(super) fn pass(&mut self, unit: Unit, now: Now, cost: Duration) -> Due {
        let begun = *self.begun.get_or_insert(now.wall);
        let row = &mut self.rows[unit as usize];
        row.seen += 1;
        let is_due = row.is_due();
        if unit == Unit::Epoch {
            self.epoch_length = self.epoch.map(|before| now.wall.saturating_sub(before));
            self.epoch = Some(now.wall);
        }
        let age = now.wall.saturating_sub(begun);
        let unread = now.wall.saturating_sub(self.last.unwrap_or(begun));
        let is_stale = age > YOUNG && unread * FRESH > age;
        let is_paid = self.spent + cost <= CREDIT.max(now.cpu.mul_f64(SHARE));
        let is_short = |length: Duration| length < SHORT_EPOCH;
        let since = self.epoch.map(|epoch| now.wall.saturating_sub(epoch));
        let beside =
            unit != Unit::Epoch && self.epoch_length.is_some_and(is_short) && since.is_some_and(is_short);
        match (unit, is_due) {
            _ if beside => Due::No,
            (Unit::Epoch, true) if is_paid => Due::Must,
            _ if is_stale && is_paid => Due::Must,
            (Unit::Epoch, _) | (_, true) => Due::May,
            _ => Due::No,
        }
    }

    /// The boundary was read.
    pub(super) fn read(&mut self, unit: Unit, due: Due, now: Now, cost: Duration) {
        let row = &mut self.rows[unit as usize];
        row.next = (f64::from(row.seen) * GROWTH).ceil() as u32;
        self.last = Some(now.wall);
        if due == Due::Must {
            self.spent += cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Duration = Duration::from_millis(40);

    /// Runs a program whose boundaries come so many seconds apart; the boundaries that had to be read, and those that might.
    fn run(unit: Unit, boundaries: u32, seconds: f64) -> (Vec<u32>, Vec<u32>) {
        let (mut spacing, mut must, mut may) = (Spacing::default(), Vec::new(), Vec::new());
        for boundary in 1..=boundaries {
            let now = at(f64::from(boundary) * seconds);
            match spacing.pass(unit, now, COST) {
                Due::Must => {
                    spacing.read(unit, Due::Must, now, COST);
                    must.push(boundary);
                }
                Due::May => may.push(boundary),
                Due::No => {}
            }
        }
        (must, may)
    }

    fn at(seconds: f64) -> Now {
        let time = Duration::from_secs_f64(seconds);
        Now { wall: time, cpu: time }
    }

    #[test]
    fn the_first_ends_of_epochs_are_read_and_then_those_at_growing_distances() {
        let (must, _) = run(Unit::Epoch, 30, 1.0);
        assert_eq!(must, [1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 28]);
    }

    #[test]
    fn the_newest_reading_is_no_older_than_a_fifth_of_the_run() {
        for (unit, seconds) in [(Unit::Epoch, 20.0), (Unit::Steps, 0.5), (Unit::Seconds, 1.0)] {
            let (must, _) = run(unit, 2000, seconds);
            let last = f64::from(must.last().copied().unwrap_or(0));
            assert!(last >= 0.79 * 2000.0, "{unit:?} {must:?}");
        }
    }

    #[test]
    fn what_has_cost_enough_waits_until_it_is_a_small_share_again() {
        let (must, _) = run(Unit::Epoch, 3000, 0.01);
        let spent = COST * must.len() as u32;
        assert!(spent <= CREDIT && spent > CREDIT / 2, "{must:?}");
    }

    #[test]
    fn steps_get_nothing_while_epochs_pass_within_seconds() {
        let mut spacing = Spacing::default();
        let mut read = Vec::new();
        for second in 1..40 {
            let now = at(f64::from(second));
            if second % 4 == 0 {
                assert_ne!(spacing.pass(Unit::Epoch, now, Duration::ZERO), Due::No);
                spacing.read(Unit::Epoch, Due::Must, now, Duration::ZERO);
            } else if spacing.pass(Unit::Steps, now, COST) != Due::No {
                read.push(second);
            }
        }
        assert!(read.iter().all(|second| *second < 8), "{read:?}: before the first epoch has ended");
    }
}
