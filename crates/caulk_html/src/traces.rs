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
pub struct Trace {
    /// Name, with its rate.
    pub name: String,
    /// Readings at equal distances.
    pub readings: Vec<f64>,
}

/// The picture; nothing if no run has two readings.
pub(crate) fn traces(label: &str, all: &[Trace]) -> Markup {
    let drawn: Vec<&Trace> = all.iter().filter(|trace| trace.readings.len() > 1).take(CURVES).collect();
    let most = drawn.iter().flat_map(|trace| &trace.readings).copied().fold(1.0, f64::max);
    let longest = drawn.iter().map(|trace| trace.readings.len()).max().unwrap_or(0);
    let sizes = axis::sizes(most * 1.02, 4.0);
    let top = sizes.last().copied().unwrap_or(most);
    let height = |size: f64| percent(100.0 - 100.0 * size / top);
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
                                path class={ "curve leading c" (index) } d=(path(&trace.readings, longest, top)) {}
                            }
                        }
                    } }
                }
                figcaption { ul.legend { @for (index, trace) in drawn.iter().enumerate() { li {
                    svg.swatch width="26" height="10" aria-hidden="true" { line class={ "curve leading c" (index) } x1="0" x2="26" y1="5" y2="5" {} }
                    " " (words::prose(&trace.name, 160))
                } } } }
            }
        }
    }
}

fn path(readings: &[f64], longest: usize, top: f64) -> String {
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
        let _ = write!(path, "{sign}{x:.0} {:.0}", 1000.0 - 1000.0 * reading / top);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_ends_where_it_ends() {
        assert_eq!(path(&[0.0, 5.0], 3, 10.0), "M0 1000L1200 500");
        assert!(path(&vec![1.0; 10_000], 10_000, 1.0).matches('L').count() <= MOST + 1);
    }
}
