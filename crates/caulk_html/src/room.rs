//! How much of everything a page has room for.

/// Longest page, in bytes.
pub const MOST_BYTES: usize = 400_000;

/// How many of each kind a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Series of the chart.
    pub(crate) series: usize,
    /// Buckets of each series, over all of them, in the finer level of detail.
    pub(crate) fine: usize,
    /// Findings in full.
    pub(crate) findings: usize,
    /// Further findings on one line each.
    pub(crate) listed: usize,
    /// Rows of a table.
    pub(crate) rows: usize,
    /// Frames of the flame graph.
    pub(crate) frames: usize,
    /// Notes.
    pub(crate) notes: usize,
    /// Characters of one text.
    pub(crate) text: usize,
}

impl Room {
    /// For most runs.
    const WHOLE: Self = Self {
        series: 20,
        fine: 16_000,
        findings: 12,
        listed: 40,
        rows: 150,
        frames: 450,
        notes: 40,
        text: 600,
    };

    /// Rooms to try, the largest first. The last one fits whatever is put into it.
    pub(crate) fn sizes() -> impl Iterator<Item = Self> {
        [100, 80, 65, 50, 35, 20, 10, 5].into_iter().map(|percent| {
            let part = |whole: usize, least: usize| (whole * percent / 100).max(least);
            let all = Self::WHOLE;
            Self {
                series: part(all.series, 20 * percent.min(35) / 35).max(4),
                fine: part(all.fine, 0),
                findings: part(all.findings, 2),
                listed: part(all.listed, 0),
                rows: part(all.rows, 4),
                frames: part(all.frames, 20),
                notes: part(all.notes, 2),
                text: part(all.text, 80),
            }
        })
    }
}
