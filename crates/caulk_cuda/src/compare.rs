//! Two snapshots compared: totals and lines that grew.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::snapshot::Snapshot;
use crate::usage::{PoolUse, Usage};

/// Lines that are kept.
const MOST: usize = 20;

/// A figure of two snapshots, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotRow {
    /// The total, or the line: `train.py:12 step`.
    pub name: String,
    /// In A.
    pub a: u64,
    /// In B.
    pub b: u64,
    /// B less A.
    pub change: i64,
}

/// What changed from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotDifference {
    /// Totals over all devices: `live`, `reserved`, `free`, `gaps`.
    pub totals: Vec<SnapshotRow>,
    /// Lines whose live bytes changed, largest change first.
    pub lines: Vec<SnapshotRow>,
    /// Number of all lines that changed.
    pub line_count: usize,
}

impl SnapshotDifference {
    /// Compares two snapshots.
    pub fn of(a: &Snapshot, b: &Snapshot) -> Self {
        let [a_uses, b_uses] = [Usage::of(a), Usage::of(b)];
        let total = |name: &str, of: fn(&PoolUse) -> u64| {
            let sum = |uses: &[Usage]| uses.iter().map(|usage| of(&usage.total)).sum();
            row(name.into(), sum(&a_uses), sum(&b_uses))
        };
        let totals = vec![
            total("live", |pool| pool.live),
            total("reserved", |pool| pool.reserved),
            total("free", |pool| pool.free),
            total("gaps", |pool| pool.gaps),
        ];
        let mut lines: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for line in Usage::all_lines(a) {
            lines.entry(line.name()).or_default().0 += line.bytes;
        }
        for line in Usage::all_lines(b) {
            lines.entry(line.name()).or_default().1 += line.bytes;
        }
        let rows = lines.into_iter().map(|(name, (a, b))| row(name, a, b));
        let mut lines: Vec<SnapshotRow> = rows.filter(|row| row.change != 0).collect();
        lines.sort_by_key(|row| std::cmp::Reverse(row.change.unsigned_abs()));
        Self { totals, line_count: lines.len(), lines: lines.into_iter().take(MOST).collect() }
    }
}

fn row(name: String, a: u64, b: u64) -> SnapshotRow {
    SnapshotRow { name, a, b, change: b as i64 - a as i64 }
}
