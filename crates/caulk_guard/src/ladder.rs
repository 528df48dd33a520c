//! The rungs: what is done when so much of the headroom is used.
//!
//! Headroom is what lies between the baseline, the memory that the training needs once it is warm, and the limit. A
//! large model that fills nine tenths of its budget from the first step on is no cause for alarm.

use std::collections::BTreeMap;

use crate::growth::Growth;
use crate::{GuardLimit, Room};

/// How far it has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Nothing to do.
    #[default]
    Calm,
    /// The user is told.
    Warn,
    /// The program is asked to give back what it does not need.
    Cleanup,
    /// The program is asked to save its state.
    Checkpoint,
    /// The program is stopped and started again.
    Restart,
    /// The limit is reached.
    Full,
}

/// Share of the headroom at which each rung begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ladder {
    /// See [`Rung::Warn`].
    pub warn: f64,
    /// See [`Rung::Cleanup`].
    pub cleanup: f64,
    /// See [`Rung::Checkpoint`].
    pub checkpoint: f64,
    /// See [`Rung::Restart`].
    pub restart: f64,
}

/// Tasks wait for memory for so much of the last ten seconds, in percent, before that counts; and urgently so.
const PRESSURE: f64 = 10.0;
const HIGH_PRESSURE: f64 = 40.0;

/// A forecast counts from this share of the headroom on, one that asks for an end from this.
const FORECAST_FROM: f64 = 0.5;
const END_FROM: f64 = 0.7;

impl Ladder {
    /// The usual one.
    pub const USUAL: Self = Self { warn: 0.6, cleanup: 0.75, checkpoint: 0.85, restart: 0.95 };
    /// Where the kernel kills everything in the control group at once, the supervisor included.
    pub const EARLY: Self = Self { warn: 0.5, cleanup: 0.6, checkpoint: 0.7, restart: 0.8 };

    fn rung(&self, share: f64) -> Rung {
        match share {
            share if share >= 1.0 => Rung::Full,
            share if share >= self.restart => Rung::Restart,
            share if share >= self.checkpoint => Rung::Checkpoint,
            share if share >= self.cleanup => Rung::Cleanup,
            share if share >= self.warn => Rung::Warn,
            _ => Rung::Calm,
        }
    }

    /// `warns at 60 % of the headroom, cleans up at 75 %, ...`; the rungs that this run can reach.
    pub fn text(&self, restarts: bool) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let end = if restarts { format!(", restarts at {}", percent(self.restart)) } else { String::new() };
        format!(
            "warns at {} of the headroom above the program's own baseline, cleans up at {}, asks for a checkpoint at {}{end}",
            percent(self.warn),
            percent(self.cleanup),
            percent(self.checkpoint)
        )
    }
}

/// Where memory stands against each limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heights {
    all: BTreeMap<GuardLimit, Height>,
}

#[derive(Debug, Clone, Default)]
struct Height {
    room: Option<Room>,
    growth: Growth,
    /// Least in use since the first step.
    baseline: Option<u64>,
}

/// The fullest room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fullest {
    pub(crate) room: Room,
    /// Part of the headroom that is used; of the whole limit as long as there is no baseline.
    pub(crate) share: f64,
    /// Bytes between the baseline and the limit.
    pub(crate) headroom: u64,
    /// Until it is full, in seconds, as it grows now.
    pub(crate) seconds: Option<f64>,
}

impl Heights {
    /// Takes in a reading; `warming` is true from the first step until the baseline holds.
    pub(crate) fn read(&mut self, time_ns: u64, rooms: &[Room], warming: bool) {
        for room in rooms {
            let height = self.all.entry(room.limit).or_default();
            height.growth.read(time_ns, room.used);
            if warming || height.room.is_some_and(|before| before.most != room.most) {
                height.baseline = Some(height.baseline.map_or(room.used, |least| least.min(room.used)));
            }
            height.room = Some(*room);
        }
    }

    /// Of what is read now; rooms without a baseline get the present level as theirs once `warm`.
    pub(crate) fn fullest(&mut self, warm: bool) -> Option<Fullest> {
        for height in self.all.values_mut().filter(|_| warm) {
            height.baseline = height.baseline.or(height.room.map(|room| room.used));
        }
        let all = self.all.values().filter_map(|height| height.stand(warm));
        all.max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Time until the next reading.
    pub(crate) fn pause(&self) -> std::time::Duration {
        let pauses = self.all.values().filter_map(|height| {
            let room = height.room?;
            Some(height.growth.pause(room.most.saturating_sub(room.used)))
        });
        pauses.min().unwrap_or(std::time::Duration::from_millis(250))
    }
}

impl Height {
    fn stand(&self, warm: bool) -> Option<Fullest> {
        let room = self.room?;
        let baseline = self.baseline.filter(|_| warm).unwrap_or(0).min(room.most);
        let headroom = room.most - baseline;
        let share = if room.is_full() {
            1.0
        } else {
            room.used.saturating_sub(baseline) as f64 / headroom.max(1) as f64
        };
        let rate = self.growth.rate();
        let seconds = (rate > 0.0).then(|| room.most.saturating_sub(room.used) as f64 / rate);
        Some(Fullest { room, share, headroom, seconds })
    }
}

impl Fullest {
    /// Not full in so many seconds, as it grows now.
    pub(crate) fn is_at_rest(&self, seconds: f64) -> bool {
        self.seconds.is_none_or(|left| left >= seconds)
    }

    /// The rung, by level, by forecast and by what the kernel says of tasks that wait for memory. `needed` is what a
    /// checkpoint takes, in seconds.
    pub(crate) fn rung(&self, ladder: &Ladder, needed: f64, pressure: Option<f64>) -> Rung {
        let by_level = ladder.rung(self.share);
        let soon = |factor: f64| self.seconds.is_some_and(|seconds| seconds <= needed * factor);
        let by_forecast = match self.share {
            share if share >= END_FROM && soon(1.0) => Rung::Restart,
            share if share >= FORECAST_FROM && soon(2.0) => Rung::Checkpoint,
            _ => Rung::Calm,
        };
        let by_pressure = match pressure {
            Some(percent) if percent >= HIGH_PRESSURE => Rung::Checkpoint,
            Some(percent) if percent >= PRESSURE => Rung::Cleanup,
            _ => Rung::Calm,
        };
        // Others on the machine may be what presses: where this program takes little, that is not its affair.
        let by_pressure = if by_level == Rung::Calm { Rung::Calm } else { by_pressure };
        by_level.max(by_forecast).max(by_pressure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(share: f64, seconds: Option<f64>, pressure: Option<f64>, expected: Rung) {
        let room = Room { limit: GuardLimit::Budget, used: 0, most: 1 };
        let fullest = Fullest { room, share, headroom: 1, seconds };
        assert_eq!(fullest.rung(&Ladder::USUAL, 5.0, pressure), expected, "{share} {seconds:?} {pressure:?}");
    }

    #[test]
    fn each_share_has_its_rung() {
        let all = [Rung::Calm, Rung::Warn, Rung::Cleanup, Rung::Checkpoint, Rung::Restart, Rung::Full];
        for (share, rung) in [0.0, 0.6, 0.75, 0.85, 0.95, 1.0].into_iter().zip(all) {
            check(share, None, None, rung);
        }
    }

    #[test]
    fn a_fast_rise_is_met_early() {
        check(0.4, Some(1.0), None, Rung::Calm);
        check(0.5, Some(9.0), None, Rung::Checkpoint);
        check(0.5, Some(11.0), None, Rung::Calm);
        check(0.7, Some(4.0), None, Rung::Restart);
        check(0.99, Some(900.0), None, Rung::Restart);
    }

    #[test]
    fn pressure_counts_where_this_program_takes_part_in_it() {
        check(0.1, None, Some(90.0), Rung::Calm);
        check(0.6, None, Some(5.0), Rung::Warn);
        check(0.6, None, Some(15.0), Rung::Cleanup);
        check(0.6, None, Some(50.0), Rung::Checkpoint);
    }

    #[test]
    fn what_the_training_needs_anyway_is_no_headroom() {
        let mut heights = Heights::default();
        let room = |used| [Room { limit: GuardLimit::Budget, used, most: 1000 }];
        heights.read(1, &room(950), true);
        heights.read(2, &room(900), true);
        heights.read(3, &room(930), false);
        let fullest = heights.fullest(true).map(|fullest| (fullest.headroom, fullest.share));
        assert_eq!(fullest, Some((100, 0.3)));
        // Before it is warm, the whole limit counts.
        assert_eq!(heights.fullest(false).map(|fullest| fullest.share), Some(0.93));
    }
}
