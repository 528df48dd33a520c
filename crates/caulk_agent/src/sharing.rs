//! What of a forked process's memory is its own by now, and what it still shares with the one it was forked from.
//!
//! A fork shares every page until one side writes to it. Reading a Python object writes to it, because its reference
//! count changes: so private memory may rise although the process holds nothing new.

use std::time::Duration;

use crate::budget::Budget;
use crate::stopwatch::Stopwatch;

/// What a reading costs where none has been made: 19 ms for 742 MB resident.
const NANOSECONDS_PER_BYTE: f64 = 19e6 / 742e6;

/// One reading, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Written to, and mapped by this process alone.
    pub(crate) private: u64,
    /// Written to by somebody, and mapped by others as well.
    pub(crate) inherited: u64,
}

/// Reads them where the budget allows.
#[derive(Debug, Default)]
pub(crate) struct SharesMeter {
    cost: Option<Duration>,
    /// The first reading and the last.
    ends: Option<(Shares, Shares)>,
    readings: u32,
}

impl SharesMeter {
    /// The shares now; `None` where that is too dear, or the system does not tell.
    pub(crate) fn read(&mut self, resident: u64, reserve: Duration, budget: &Budget) -> Option<Shares> {
        let typical = Duration::from_nanos((resident as f64 * NANOSECONDS_PER_BYTE) as u64);
        if !budget.allows(self.cost.unwrap_or(typical), reserve) {
            return None;
        }
        let started = Stopwatch::start();
        let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
        self.cost = Some(started.work());
        let shares = parse(&text)?;
        self.ends = Some((self.ends.map_or(shares, |(first, _)| first), shares));
        self.readings += 1;
        Some(shares)
    }

    /// Bytes that have turned private since the first reading, over how many readings.
    pub(crate) fn copied(&self) -> (u64, u32) {
        let copied = self.ends.map_or(0, |(first, last)| first.inherited.saturating_sub(last.inherited));
        (copied, self.readings)
    }
}

fn parse(rollup: &str) -> Option<Shares> {
    let field = |name: &str| -> Option<u64> {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    };
    Some(Shares { private: field("Private_Dirty:")?, inherited: field("Shared_Dirty:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let text = "55e0-7ffd ---p 00000000 00:00 0  [rollup]\nRss:  900 kB\nShared_Clean: 7 kB\nShared_Dirty:  40 kB\n\
                    Private_Dirty:  600 kB\n";
        assert_eq!(parse(text), Some(Shares { private: 600 << 10, inherited: 40 << 10 }));
        assert_eq!(parse("Rss: 1 kB\n"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let mut meter = SharesMeter::default();
        let read = meter.read(0, Duration::ZERO, &Budget::default());
        assert!(read.is_some_and(|shares| shares.private > 0));
        assert_eq!(meter.copied().1, 1);
    }
}
