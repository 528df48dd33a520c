//! Readings of several runs in one picture: before and after.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::axis;
use crate::chart::percent;
use crate::words;

/// Width of the box that curves are drawn in; its height is 1000.
const WIDTH: f64 = 2400.0;
/// Most readings of a curve; of more, the last of each stretch is drawn.
const MOST: usize = 600;
/// Most curves.
const CURVES: usize = 4;

/// The readings of one run, in bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Name, with its rate.
    pub name: String,
    /// Readings at equal distances.
    pub readings: Vec<f64>,
}

/// The picture; nothing if no run has two readings.
pub(crate) fn traces(label: &str, all: &[Curve]) -> Markup {
    let drawn: Vec<&Curve> = all.iter().filter(|trace| trace.readings.len() > 1).take(CURVES).collect();
    let longest = drawn.iter().map(|trace| trace.readings.len()).max().unwrap_or(0);
    let sizes = sizes(drawn.iter().flat_map(|trace| &trace.readings).copied());
    let ends @ [low, top] = [sizes.first(), sizes.last()].map(|end| end.copied().unwrap_or(0.0));
    let height = |size: f64| percent(100.0 - 100.0 * (size - low) / (top - low));
    html! {
        @if !drawn.is_empty() {
            figure.trace {
                div.chart.forecast {
                    svg.y-axis aria-hidden="true" {
                        @for size in &sizes { text x="100%" y=(height(*size)) { (words::bytes(*size)) } }
                    }
                    div.canvas { svg.plot role="img" aria-label=(words::plain(label, 240)) {
                        @for size in &sizes {
                            @let at = height(*size);
                            line.grid x1="0" x2="100%" y1=(at) y2=(at) {}
                        }
                        svg width="100%" height="100%" viewBox={ "0 0 " (WIDTH) " 1000" } preserveAspectRatio="none" {
                            @for (index, trace) in drawn.iter().enumerate() {
                                path class={ "curve leading c" (index) } d=(path(&trace.readings, longest, ends)) {}
                            }
                        }
                    } }
                }
                figcaption { ul.legend { @for (index, trace) in drawn.iter().enumerate() { li {
                    svg.swatch width="26" height="10" aria-hidden="true" { line class={ "curve leading c" (index) } x1="0" x2="26" y1="5" y2="5" {} }
                    " " (words::prose(&trace.name, 160))
                } } }
                @if low > 0.0 { p.caption { "The axis begins at " (words::bytes(low)) "." } } }
            }
        }
    }
}

/// Marks of the axis. Growth of a part of what is there shows if the axis does not begin at zero.
fn sizes(readings: impl Iterator<Item = f64>) -> Vec<f64> {
    let (least, most) = readings
        .fold((f64::INFINITY, 1.0_f64), |(least, most), reading| (least.min(reading), most.max(reading)));
    if least < most / 2.0 || !least.is_finite() {
        return axis::sizes(most * 1.02, 4.0);
    }
    // Noise of a level course stays small.
    let (span, middle) = ((most - least).max(0.05 * most), f64::midpoint(least, most));
    let (least, most) = (middle - span / 2.0, middle + span / 2.0);
    let marks = axis::sizes(span, 4.0);
    let step = marks.get(1).copied().unwrap_or(span);
    let first = (least / step).floor();
    let count = ((most * 1.002 / step).ceil() - first).max(1.0) as usize;
    (0..=count).map(|index| (first + index as f64) * step).collect()
}

fn path(readings: &[f64], longest: usize, [low, top]: [f64; 2]) -> String {
    let each = readings.len().div_ceil(MOST).max(1);
    let mut path = String::new();
    for (index, reading) in readings.iter().enumerate() {
        let is_last = index + 1 == readings.len();
        if !index.is_multiple_of(each) && !is_last {
            continue;
        }
        let x = WIDTH * index as f64 / (longest - 1).max(1) as f64;
        let sign = if path.is_empty() { 'M' } else { 'L' };
        // Writing to a `String` does not fail.
        let _ = write!(path, "{sign}{x:.0} {:.0}", 1000.0 - 1000.0 * (reading - low) / (top - low));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_near_what_is_drawn() {
        let megabytes = |readings: &[u32]| -> Vec<f64> {
            let megabyte = f64::from(1 << 20);
            let marks = sizes(readings.iter().map(|reading| f64::from(*reading) * megabyte));
            marks.into_iter().map(|mark| mark / megabyte).collect()
        };
        assert_eq!(megabytes(&[230, 248]), [230.0, 235.0, 240.0, 245.0, 250.0]);
        assert_eq!(megabytes(&[10, 90]), [0.0, 50.0, 100.0]);
        assert_eq!(megabytes(&[200, 200]), [195.0, 200.0, 205.0, 210.0]);
    }

    #[test]
    fn a_short_run_ends_where_it_ends() {
        assert_eq!(path(&[10.0, 15.0], 3, [10.0, 20.0]), "M0 1000L1200 500");
        assert!(path(&vec![1.0; 10_000], 10_000, [0.0, 1.0]).matches('L').count() <= MOST + 1);
    }
}
