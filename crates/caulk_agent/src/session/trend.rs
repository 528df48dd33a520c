//! Where a census is worth its cost: how memory has moved over the boundaries of one unit.

use std::time::Duration;

use caulk_wire::Unit;

use crate::stopwatch::{monotonic, ordinary};

/// Boundaries at which a census is always taken: something must be there to compare with.
const FIRST: u32 = 3;
/// Steps that take so many times as long as a census are looked at as epochs are.
const SLOW: u32 = 4;
/// Growth since the last census, in bytes, that makes the next one worth its cost.
const WORTH: u64 = 128 << 10;
/// Steps or seconds in a row at which memory must have risen before a census is taken there ...
const RISES: u32 = 2;
/// ... or so many of them, the lowest of which stands above the level at the last census by twice what is worth one:
/// what grows slowly rises by little from one to the next.
const BLOCK: u32 = 8;
/// Time between two censuses at steps or seconds, in times of what one costs.
const REST: u32 = 10;
/// ... but for the first few: three make a candidate, and two more a series.
const FIRST_LOOKS: u32 = 5;
/// An epoch without growth is looked at all the same once in so many.
const SELDOM: u32 = 4;

/// A census that costs more than this is taken at growing distances once it has been taken a few times ...
const DEAR: Duration = Duration::from_millis(60);
/// ... as is one of many that would make up more than one part in so many of the time since the last ...
const PART: u32 = 20;
const MANY: u32 = 8;
/// ... from the boundary of one to that of the next.
const DISTANCE: f64 = 1.5;

/// How memory has moved over the boundaries of one unit.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Trend {
    boundaries: u32,
    rises: u32,
    last: u64,
    /// Boundary at which it last rose, in a row or in a block.
    risen: Option<u32>,
    /// Lowest level of the block of boundaries that is being read.
    low: u64,
    /// Modules loaded at the last boundary.
    modules: usize,
    /// Level at the last census.
    looked: u64,
    since: u32,
    /// Boundary at which a dear census is due next.
    next: u32,
    /// When the last boundary and the last census were.
    at: Duration,
    looked_at: Duration,
    /// Censuses so far.
    looks: u32,
}

impl Trend {
    /// Takes in the next boundary; is a census worth its cost? `sparing`: only where memory rises and rises.
    pub(super) fn take(
        &mut self,
        unit: Unit,
        level: u64,
        cost: Duration,
        modules: usize,
        sparing: bool,
    ) -> bool {
        let now = monotonic();
        // A census at each of these would be a small part of the time between them.
        let slow = self.boundaries > 0 && ordinary(now.saturating_sub(self.at)) > cost * SLOW;
        self.at = now;
        self.boundaries += 1;
        self.since += 1;
        // What rose and falls tells most of all whether what grew is what was let go of.
        let turns = self.rises >= RISES && level + WORTH < self.last;
        self.rises = if level > self.last + (WORTH >> 2) && self.last > 0 { self.rises + 1 } else { 0 };
        self.last = level;
        let begins = self.boundaries % BLOCK == 1;
        self.low = if begins { level } else { self.low.min(level) };
        let creeps = self.boundaries.is_multiple_of(BLOCK) && self.low > self.looked + 2 * WORTH;
        let regular =
            self.boundaries <= FIRST || level > self.looked + WORTH || self.since >= SELDOM || turns;
        // Within an epoch much is made and freed again: only what rises and rises is looked into.
        let rising = self.rises >= RISES || creeps;
        if rising {
            self.risen = Some(self.boundaries);
        }
        let crowded =
            self.looks >= MANY && ordinary(now.saturating_sub(self.looked_at)) < cost.saturating_mul(PART);
        let spaced =
            !(cost > DEAR || crowded) || self.boundaries <= FIRST || self.boundaries >= self.next || turns;
        let worth = if !sparing && (unit == Unit::Epoch || slow) { regular && spaced } else { rising };
        // Finer boundaries must not use up what the epochs need.
        let rested = unit == Unit::Epoch
            || self.looks < FIRST_LOOKS
            || ordinary(now.saturating_sub(self.looked_at)) > cost * REST;
        // Imports make memory rise second by second.
        let imported = unit != Unit::Seconds || modules == self.modules;
        self.modules = modules;
        let worth = worth && imported;
        if worth && rested {
            self.looked = level;
            self.looked_at = now;
            self.looks += 1;
            self.since = 0;
            self.next = (f64::from(self.boundaries) * DISTANCE).ceil() as u32;
        }
        worth && rested
    }

    /// The census could not be paid for: it is due at the next boundary.
    pub(super) fn put_off(&mut self) {
        self.next = self.boundaries + 1;
    }

    /// Has memory risen lately, so that this is no warm-up or noise of some time ago?
    pub(super) fn rises(&self) -> bool {
        self.risen.is_some_and(|at| self.boundaries - at < BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Epochs with a census, of those of a program that grows by 1 MB in each.
    fn censuses(epochs: u32, cost: Duration) -> Vec<u32> {
        let mut trend = Trend::default();
        let mut take = |epoch: u32| trend.take(Unit::Epoch, u64::from(epoch) << 20, cost, 0, false);
        (1..=epochs).filter(|epoch| take(*epoch)).collect()
    }

    #[test]
    fn a_dear_census_is_taken_at_growing_distances() {
        assert_eq!(censuses(40, DEAR * 2), [1, 2, 3, 5, 8, 12, 18, 27]);
        // Epochs that pass in no time.
        assert_eq!(censuses(30, DEAR), [1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27]);
        assert_eq!(censuses(20, Duration::ZERO).len(), 20);
    }
}
