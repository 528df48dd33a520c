//! Which boundaries a process is judged at, and how long one unit lasts.

use caulk_core::wire::{Boundary, Unit};
use caulk_core::{Growth, Series, VerdictUnit};
use caulk_growth::Point;

use crate::process::Process;

/// Boundaries of a unit from which it is preferred to a finer one.
const ENOUGH: usize = 3;

/// The unit of a process's series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) unit: Unit,
    /// Length of one unit in seconds and in optimizer steps, medians.
    pub(crate) seconds: Option<f64>,
    pub(crate) steps: Option<f64>,
    /// Units between two neighbouring boundaries, median.
    pub(crate) spacing: f64,
}

impl Scale {
    /// For what is not judged at boundaries.
    pub(crate) const BY_TIME: Self =
        Self { unit: Unit::Seconds, seconds: Some(1.0), steps: None, spacing: 1.0 };

    /// Epochs where they were told, else steps, else seconds.
    pub(crate) fn of(process: &Process<'_>) -> Option<Self> {
        Self::among(&process.boundaries)
    }

    /// The same, of several processes' boundaries in order.
    pub(crate) fn among(all: &[&Boundary]) -> Option<Self> {
        let of_unit = |unit: Unit| all.iter().copied().filter(move |boundary| boundary.unit == unit);
        let unit = [Unit::Epoch, Unit::Steps, Unit::Seconds]
            .into_iter()
            .find(|unit| of_unit(*unit).count() >= ENOUGH)
            .or_else(|| all.first().map(|boundary| boundary.unit))?;
        let boundaries: Vec<&Boundary> = of_unit(unit).collect();
        let per = |value: &dyn Fn(&Boundary) -> f64| {
            let rates = boundaries.windows(2).filter_map(|pair| {
                let distance = position(pair[1]) - position(pair[0]);
                (distance > 0.0).then(|| (value(pair[1]) - value(pair[0])) / distance)
            });
            median(rates.collect())
        };
        let spacing = boundaries.windows(2).map(|pair| position(pair[1]) - position(pair[0])).collect();
        Some(Self {
            unit,
            seconds: per(&|boundary| boundary.time_ns as f64 / 1e9),
            steps: per(&|boundary| boundary.steps as f64).filter(|steps| *steps > 0.0),
            spacing: median(spacing).unwrap_or(1.0).max(1.0),
        })
    }

    /// Growth of so many bytes per unit.
    pub(crate) fn growth(self, series: Series, per_unit: f64) -> Growth {
        Growth::of_bytes(self.verdict_unit(), series, per_unit, self.per_epoch(per_unit))
    }

    /// Does as much work lie between any two boundaries? By the second, it hangs on the machine.
    pub(crate) fn has_equal_phases(self) -> bool {
        self.unit != Unit::Seconds
    }

    /// The unit of its verdicts.
    pub(crate) fn verdict_unit(self) -> VerdictUnit {
        match self.unit {
            Unit::Epoch => VerdictUnit::Epoch,
            Unit::Steps => VerdictUnit::Steps,
            Unit::Seconds => VerdictUnit::Seconds,
        }
    }

    /// A rate per unit, as a rate per epoch where the unit is one.
    pub(crate) fn per_epoch(self, rate: f64) -> Option<f64> {
        (self.unit == Unit::Epoch).then_some(rate)
    }
}

/// Where a boundary lies on the axis of its unit.
pub(crate) fn position(boundary: &Boundary) -> f64 {
    boundary.index as f64
}

/// Where any boundary lies on the axis of a scale: by its time between the scale's own boundaries around it, beyond them
/// by the length of a unit. `None` where that length is not known.
pub(crate) fn interpolated(process: &Process<'_>, scale: Scale, boundary: &Boundary) -> Option<f64> {
    let own: Vec<&Boundary> = process.of_unit(scale.unit).collect();
    let after = own.partition_point(|other| other.time_ns <= boundary.time_ns);
    let since = |from: &Boundary| boundary.time_ns as f64 - from.time_ns as f64;
    if let (Some(before), Some(next)) = (after.checked_sub(1).map(|at| own[at]), own.get(after)) {
        let length = (next.time_ns - before.time_ns) as f64;
        return Some(position(before) + since(before) / length * (position(next) - position(before)));
    }
    let seconds = scale.seconds.filter(|seconds| *seconds > 0.0)?;
    let nearest = if after == 0 { own.first()? } else { own.last()? };
    Some(position(nearest) + since(nearest) / 1e9 / seconds)
}

/// A figure of every boundary of the scale's unit that has it.
pub(crate) fn points(
    process: &Process<'_>,
    scale: Scale,
    value: impl Fn(&Boundary) -> Option<f64>,
) -> Vec<Point> {
    process
        .of_unit(scale.unit)
        .filter_map(|boundary| Some(Point { at: position(boundary), value: value(boundary)? }))
        .collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}
