//! Levels of detail: many readings as a few equal spans of time, each with its lowest and its highest.

use crate::base64;

/// A span without a reading, in what the script reads.
const NONE: u16 = u16::MAX;

/// Lowest and highest reading of each span; `None` where there was none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Buckets(pub(crate) Vec<Option<[f64; 2]>>);

impl Buckets {
    /// Readings `(seconds, value)` in any order, in `count` spans from 0 to `end_s`.
    pub(crate) fn of(readings: impl Iterator<Item = (f64, f64)>, end_s: f64, count: usize) -> Self {
        let mut spans: Vec<Option<[f64; 2]>> = vec![None; count.max(1)];
        let last = spans.len() - 1;
        for (time_s, value) in readings {
            let at = if end_s > 0.0 { time_s / end_s * spans.len() as f64 } else { 0.0 };
            let span = &mut spans[(at.max(0.0) as usize).min(last)];
            let [low, high] = span.unwrap_or([value, value]);
            *span = Some([low.min(value), high.max(value)]);
        }
        Self(spans)
    }

    /// A coarser level of `count` spans. Each joins several.
    pub(crate) fn coarser(&self, count: usize) -> Self {
        let readings = self.0.iter().enumerate().flat_map(|(index, span)| {
            let time = index as f64 + 0.5;
            span.iter().flatten().map(move |value| (time, *value)).collect::<Vec<_>>()
        });
        Self::of(readings, self.0.len() as f64, count)
    }

    /// Highest of all.
    pub(crate) fn highest(&self) -> f64 {
        self.0.iter().flatten().map(|[_, high]| *high).fold(0.0, f64::max)
    }

    /// The last reading's span.
    pub(crate) fn last(&self) -> Option<f64> {
        self.0.iter().rev().flatten().next().map(|[_, high]| *high)
    }

    /// As an SVG path in a box of `width` x 1000 with 0 at the bottom and `most` at the top: one line through the readings, to
    /// and fro within a span. Spans without readings are bridged if few, for processes are sampled at growing distances.
    pub(crate) fn path(&self, most: f64, width: f64) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let scale = width / self.0.len() as f64;
        let y = |value: f64| (1000.0 - 1000.0 * value / most.max(1.0)).round() as i64;
        let mut last = None;
        for (index, span) in self.0.iter().enumerate() {
            let Some([low, high]) = *span else { continue };
            let x = ((index as f64 + 0.5) * scale).round();
            let (first, second) = match last {
                Some(before) if before > high => (high, low),
                _ => (low, high),
            };
            let command = if last.is_none() { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            _ = write!(out, "{command}{x} {}", y(first));
            if y(second) != y(first) {
                _ = write!(out, "V{}", y(second));
            }
            last = Some(second);
        }
        out
    }

    /// For the script: pairs of 16 bits, in parts of `most`; the highest number stands for no reading.
    pub(crate) fn encoded(&self, most: f64) -> String {
        let part =
            |value: f64| (value / most.max(1.0) * f64::from(NONE - 1)).clamp(0.0, f64::from(NONE - 1)) as u16;
        let pairs = self.0.iter().flat_map(|span| span.map_or([NONE; 2], |pair| pair.map(part)));
        base64::encode(&pairs.flat_map(u16::to_le_bytes).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peak_is_lost_on_any_level() {
        let readings = (0..1000).map(|time| (f64::from(time), if time == 700 { 90.0 } else { 10.0 }));
        let fine = Buckets::of(readings, 1000.0, 100);
        assert_eq!(fine.0[70], Some([10.0, 90.0]));
        let coarse = fine.coarser(10);
        assert_eq!(coarse.0[7], Some([10.0, 90.0]));
        assert_eq!((coarse.highest(), coarse.last()), (90.0, Some(10.0)));
    }

    #[test]
    fn a_path_goes_through_the_lowest_and_the_highest() {
        let buckets = Buckets(vec![Some([0.0, 0.0]), None, Some([50.0, 100.0])]);
        assert_eq!(buckets.path(100.0, 300.0), "M50 1000L250 500V0");
        assert_eq!(Buckets(vec![None; 3]).path(100.0, 300.0), "");
    }

    #[test]
    fn the_script_reads_two_bytes_each() {
        assert_eq!(
            Buckets(vec![None, Some([0.0, 1.0])]).encoded(1.0),
            base64::encode(&[255, 255, 255, 255, 0, 0, 254, 255])
        );
    }
}
