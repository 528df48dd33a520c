//! How fast memory grows beneath its ups and downs, and how long it can be left alone.
//!
//! A step takes memory and gives it back. What counts is the floor: the least that was in use in a stretch of time.

use std::collections::VecDeque;
use std::time::Duration;

use caulk_core::Bytes;

/// Readings that are remembered, in nanoseconds of time.
const WINDOW_NS: u64 = 20_000_000_000;

/// A rate over less than this means nothing, in nanoseconds.
const SHORTEST_NS: u64 = 1_000_000_000;

/// Longest and shortest time between two readings.
const LONGEST: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(5);

/// What does not grow may begin to: at so many bytes per second, one has to reckon with.
const SUDDEN: f64 = 256.0 * Bytes::MB as f64;

/// Readings within so many nanoseconds are one, of which the lowest counts.
const GRAIN_NS: u64 = 100_000_000;

/// What was in use lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth {
    /// Beginning of a grain of time and the least in use in it, in bytes.
    floors: VecDeque<(u64, u64)>,
    last: Option<(u64, u64)>,
    /// Fastest rise between two readings, in bytes per second; fades.
    fastest: f64,
}

impl Growth {
    pub(crate) fn read(&mut self, time_ns: u64, used: u64) {
        if let Some((before_ns, before)) = self.last {
            let seconds = time_ns.saturating_sub(before_ns) as f64 / 1e9;
            if seconds > 0.0 {
                let rate = used.saturating_sub(before) as f64 / seconds;
                // Half of what it was after seven seconds without another rise.
                self.fastest = rate.max(self.fastest * (-0.1 * seconds).exp());
            }
        }
        self.last = Some((time_ns, used));
        match self.floors.back_mut() {
            Some((begun_ns, floor)) if time_ns < *begun_ns + GRAIN_NS => *floor = used.min(*floor),
            _ => self.floors.push_back((time_ns, used)),
        }
        while self.floors.front().is_some_and(|(begun_ns, _)| begun_ns + WINDOW_NS < time_ns) {
            self.floors.pop_front();
        }
    }

    /// Growth of the floor, in bytes per second; 0 where it does not rise or too little was seen.
    pub(crate) fn rate(&self) -> f64 {
        let third = self.floors.len() / 3;
        if third == 0 {
            return 0.0;
        }
        let lowest =
            |from: usize| self.floors.iter().skip(from).take(third).min_by_key(|(_, floor)| *floor).copied();
        let (Some((early_ns, early)), Some((late_ns, late))) = (lowest(0), lowest(self.floors.len() - third))
        else {
            return 0.0;
        };
        let span_ns = late_ns.saturating_sub(early_ns);
        if span_ns < SHORTEST_NS {
            return 0.0;
        }
        late.saturating_sub(early) as f64 / (span_ns as f64 / 1e9)
    }

    /// Time until the next reading: at the fastest rise seen, a quarter of what is left would be gone.
    pub(crate) fn pause(&self, left: u64) -> Duration {
        let seconds = left as f64 / self.fastest.max(SUDDEN) / 4.0;
        Duration::from_secs_f64(seconds.clamp(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn of(values: impl IntoIterator<Item = u64>) -> Growth {
        let mut growth = Growth::default();
        for (index, used) in (0..).zip(values) {
            growth.read(index * SECOND / 4, used);
        }
        growth
    }

    #[test]
    fn the_floor_of_a_sawtooth_does_not_rise() {
        assert!(of((0..80).map(|n| 100 + n % 4 * 1000)).rate() < 1.0);
        // 100 bytes every quarter of a second beneath the same teeth.
        let rate = of((0..80).map(|n| n * 100 + n % 4 * 1000)).rate();
        assert!((350.0..450.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_moment_tells_no_rate() {
        assert!(of([1, 2, 3]).rate() < 1.0);
        assert!(of([]).rate() < 1.0);
        assert!(of((0..40).rev()).rate() < 1.0);
    }

    #[test]
    fn the_nearer_the_limit_the_sooner_the_next_reading() {
        let growing = of((0..20).map(|n| n * Bytes::GB));
        assert_eq!(growing.pause(1 << 40), LONGEST);
        assert_eq!(growing.pause(0), SHORTEST);
        // 4 GB per second and 800 MB left: a quarter of 0.2 seconds.
        assert_eq!(growing.pause(Bytes::GB * 4 / 5).as_millis(), 50);
        // As yet it does not grow.
        assert_eq!(of([5, 5]).pause(64 * Bytes::MB).as_micros(), 62_500);
    }
}
