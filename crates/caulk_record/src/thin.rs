//! Which looks from outside go to the streams: the highest and the fullest of every two seconds and process.
//!
//! Four looks a second are for the last minutes before a death; over hours, growth shows as well in fewer, as long as
//! the peaks stay.

use std::collections::BTreeMap;

use crate::record::{Record, Row};

/// Length of a window, in nanoseconds.
pub const WINDOW_NS: u64 = 2_000_000_000;

/// The windows that are open, by process; `None` is the system.
#[derive(Debug, Default)]
pub(crate) struct Thin {
    open: BTreeMap<Option<u32>, Window>,
}

#[derive(Debug)]
struct Window {
    start_ns: u64,
    highest: Row,
    fullest: Row,
}

impl Thin {
    /// Takes a look; what closes by it goes to `out`. Other records go there at once.
    pub(crate) fn push(&mut self, row: Row, out: &mut impl FnMut(Row)) {
        let Some((key, ..)) = look(&row) else {
            return out(row);
        };
        let start_ns = row.record.time_ns() / WINDOW_NS * WINDOW_NS;
        match self.open.get_mut(&key) {
            Some(window) if window.start_ns == start_ns => window.add(row),
            _ => {
                let window = Window { start_ns, highest: row.clone(), fullest: row };
                if let Some(closed) = self.open.insert(key, window) {
                    closed.close(out);
                }
            }
        }
    }

    /// Closes the windows that ended before this time: those of processes that are gone, too.
    pub(crate) fn close(&mut self, now_ns: u64, out: &mut impl FnMut(Row)) {
        let ended = |window: &Window| now_ns >= window.start_ns.saturating_add(2 * WINDOW_NS);
        for (_, window) in self.open.extract_if(.., |_, window| ended(window)) {
            window.close(out);
        }
    }

    /// Number of the oldest row that is held.
    pub(crate) fn first_order(&self) -> Option<u64> {
        self.open.values().map(|window| window.highest.order.min(window.fullest.order)).min()
    }

    /// Processes looked at of late.
    pub(crate) fn processes(&self) -> usize {
        self.open.len()
    }
}

impl Window {
    fn add(&mut self, row: Row) {
        let measure = |row: &Row| look(row).map(|(_, level, fullness)| (level, fullness));
        let (new, highest, fullest) = (measure(&row), measure(&self.highest), measure(&self.fullest));
        if new.map(|(_, fullness)| fullness) >= fullest.map(|(_, fullness)| fullness) {
            self.fullest = row.clone();
        }
        if new.map(|(level, _)| level) > highest.map(|(level, _)| level) {
            self.highest = row;
        }
    }

    fn close(self, out: &mut impl FnMut(Row)) {
        let (first, second) = if self.highest.order <= self.fullest.order {
            (self.highest, self.fullest)
        } else {
            (self.fullest, self.highest)
        };
        if first.order != second.order {
            out(first);
        }
        out(second);
    }
}

/// Of a look: what it looked at, the level it saw, and how many things it took the time to read.
fn look(row: &Row) -> Option<(Option<u32>, u64, usize)> {
    match &row.record {
        Record::Sample(s) => {
            let sizes = [s.pss_bytes, s.private_dirty_bytes, s.swap_bytes, s.cpu_ns];
            let counts = [s.threads, s.fds];
            let fullness = sizes.iter().flatten().count() + counts.iter().flatten().count();
            Some((Some(s.pid), s.rss_bytes, fullness))
        }
        Record::System(s) => {
            let fullness = [s.cgroup_bytes, s.cgroup_cache_bytes].iter().flatten().count();
            Some((None, s.tree_rss_bytes, fullness))
        }
        Record::Process(_) | Record::Event(_) | Record::Gpu(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caulk_core::Sample;

    fn sample(order: u64, seconds: f64, rss_bytes: u64, pss_bytes: Option<u64>) -> Row {
        let time_ns = (seconds * 1e9) as u64;
        Row {
            order,
            record: Record::Sample(Sample { time_ns, pid: 7, rss_bytes, pss_bytes, ..Sample::default() }),
        }
    }

    fn check(rows: &[Row], kept: &[u64]) {
        let mut thin = Thin::default();
        let mut orders = Vec::new();
        for row in rows {
            thin.push(row.clone(), &mut |row| orders.push(row.order));
        }
        thin.close(u64::MAX, &mut |row| orders.push(row.order));
        assert_eq!(orders, kept);
        assert_eq!(thin.first_order(), None);
    }

    #[test]
    fn the_highest_and_the_fullest_of_a_window_stay() {
        let rows = [
            sample(0, 10.0, 5, None),
            sample(1, 10.5, 9, None),
            sample(2, 11.0, 6, Some(1)),
            sample(3, 11.9, 8, None),
            sample(4, 12.0, 7, None),
        ];
        check(&rows, &[1, 2, 4]);
        check(&rows[..1], &[0]);
        check(&[], &[]);
    }
}
