//! Medians of paired ratios. Pure arithmetic.

use std::time::Duration;

use crate::bench::usage::Usage;
use crate::columns;

/// One run of one contender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// What it used.
    pub(crate) usage: Usage,
    /// Bytes that it wrote.
    pub(crate) written: Option<u64>,
}

/// The runs of one contender, one per round; `None` where it failed or did not end in time.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// As the table shows it.
    pub(crate) name: &'static str,
    /// By round.
    pub(crate) rounds: Vec<Option<Sample>>,
}

/// Least, middle and greatest of some figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    /// Of at least one figure.
    pub(crate) fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (low, high) = (*figures.first()?, *figures.last()?);
        let (left, right) = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
        Some(Self { low, median: f64::midpoint(left, right), high })
    }

    /// The median.
    pub(crate) fn median(self) -> f64 {
        self.median
    }

    /// As the table shows ratios.
    pub(crate) fn ratio(self) -> String {
        format!("{:.3}x [{:.3}, {:.3}]", self.median, self.low, self.high)
    }
}

/// A figure of every round divided by (or less) the plain program's in the same round.
pub(crate) fn paired(
    plain: &Series,
    other: &Series,
    figure: fn(&Usage) -> f64,
    join: fn(f64, f64) -> f64,
) -> Option<Spread> {
    let rounds = plain.rounds.iter().zip(&other.rounds);
    let pairs = rounds
        .filter_map(|(base, with)| Some((figure(&base.as_ref()?.usage), figure(&with.as_ref()?.usage))));
    Spread::of(pairs.map(|(base, with)| join(with, base)).collect())
}

/// CPU time in seconds.
pub(crate) fn cpu(usage: &Usage) -> f64 {
    usage.cpu.as_secs_f64()
}

/// Wall time in seconds.
pub(crate) fn wall(usage: &Usage) -> f64 {
    usage.wall.as_secs_f64()
}

/// High-water mark of the largest process in MB.
pub(crate) fn peak(usage: &Usage) -> f64 {
    usage.peak_rss_bytes as f64 / 1e6
}

/// The most that all processes together had, in MB.
pub(crate) fn tree(usage: &Usage) -> f64 {
    usage.tree_rss_bytes as f64 / 1e6
}

/// Page faults, in thousands.
pub(crate) fn faults(usage: &Usage) -> f64 {
    usage.faults as f64 / 1e3
}

/// The table: medians, and least and greatest of the rounds in brackets. The first series is the plain one.
pub(crate) fn render(series: &[Series], limit: Duration) -> String {
    let Some((plain, others)) = series.split_first() else {
        return String::new();
    };
    let head = ["", "CPU time", "wall time", "peak RSS", "of all processes", "page faults", "written"]
        .map(String::from);
    let rows = std::iter::once(head).chain(std::iter::once(plain_row(plain)));
    let rows: Vec<_> = rows.chain(others.iter().map(|other| row(plain, other, limit))).collect();
    columns::align(&rows)
}

fn plain_row(plain: &Series) -> [String; 7] {
    let median = |figure: fn(&Usage) -> f64| {
        Spread::of(plain.rounds.iter().flatten().map(|sample| figure(&sample.usage)).collect())
            .map(Spread::median)
    };
    let show =
        |value: Option<f64>, unit| value.map_or_else(String::new, |value| format!("{value:.1} {unit}"));
    [
        plain.name.into(),
        show(median(cpu), "s"),
        show(median(wall), "s"),
        show(median(peak), "MB"),
        show(median(tree), "MB"),
        show(median(faults), "thousand"),
        String::new(),
    ]
}

fn row(plain: &Series, other: &Series, limit: Duration) -> [String; 7] {
    let ratio = |figure| paired(plain, other, figure, |with, base| with / base).map(Spread::ratio);
    let Some(cpu_ratio) = ratio(cpu) else {
        let text = format!("failed, or took over {} s", limit.as_secs());
        let mut cells = [const { String::new() }; 7];
        [cells[0], cells[1]] = [other.name.into(), text];
        return cells;
    };
    let added = paired(plain, other, peak, |with, base| with - base)
        .map(|spread| format!("{:+.1} MB", spread.median));
    let largest =
        paired(plain, other, peak, |with, base| with / base).map(|spread| format!("{:.3}x", spread.median));
    let of_all = paired(plain, other, tree, |with, base| with / base);
    let written =
        other.rounds.iter().flatten().filter_map(|sample| sample.written).map(|bytes| bytes as f64 / 1e6);
    let written = Spread::of(written.collect()).map(|spread| format!("{:.2} MB", spread.median));
    [
        other.name.into(),
        cpu_ratio,
        ratio(wall).unwrap_or_default(),
        [largest.unwrap_or_default(), added.unwrap_or_default()].join(" "),
        of_all.map(Spread::ratio).unwrap_or_default(),
        ratio(faults).unwrap_or_default(),
        written.unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &'static str, rounds: &[Option<(u64, u64)>]) -> Series {
        let sample = |(seconds, mb): (u64, u64)| Sample {
            usage: Usage {
                cpu: Duration::from_secs(seconds),
                wall: Duration::from_secs(2 * seconds),
                peak_rss_bytes: mb * 1_000_000,
                tree_rss_bytes: 2 * mb * 1_000_000,
                faults: 1000 * seconds,
            },
            written: Some(1_500_000),
        };
        Series { name, rounds: rounds.iter().map(|round| round.map(sample)).collect() }
    }

    #[test]
    fn ratios_are_paired_by_round() {
        let plain = series("no profiler", &[Some((10, 600)), Some((20, 600)), Some((40, 600))]);
        let other = series("other", &[Some((11, 610)), Some((24, 612)), Some((44, 611))]);
        let hung = series("hung", &[None, None, None]);
        let expected = "
             CPU time                  wall time              peak RSS         of all processes       page faults            written
no profiler  20.0 s                    40.0 s                 600.0 MB         1200.0 MB              20.0 thousand
other        1.100x [1.100, 1.200]     1.100x [1.100, 1.200]  1.018x +11.0 MB  1.018x [1.017, 1.020]  1.100x [1.100, 1.200]  1.50 MB
hung         failed, or took over 9 s";
        assert_eq!(format!("\n{}", render(&[plain, other, hung], Duration::from_secs(9))), expected);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).map(Spread::median), Some(2.5));
        assert_eq!(Spread::of(vec![]), None);
    }
}
