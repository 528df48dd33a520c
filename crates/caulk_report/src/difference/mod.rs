//! The result of `caulk diff`.

mod html;
mod json;
mod markdown;
mod text;

pub use html::difference_html;
pub use json::difference_json;
pub use markdown::difference_markdown;
pub use text::difference_text;

use caulk_core::Bytes;
use caulk_diff::{Difference, MedianOfRepeats, RowChange, Trend};

use crate::words;

/// What memory does on both sides, in one sentence.
fn sentence(difference: &Difference) -> String {
    let side = |states: &[&'static str]| {
        let mut states = states.to_vec();
        states.dedup();
        states.join(", ")
    };
    let (a, b) = (side(&difference.a_states), side(&difference.b_states));
    format!("A: {a}. B: {b}. {}", words::sentence_case(&growth_change(difference)))
}

/// What became of the growth.
fn growth_change(difference: &Difference) -> String {
    let growth = difference.rows.iter().find(|row| row.kind == "growth");
    match growth.map(|row| (row.trend, row)) {
        Some((Trend::Higher, row)) => format!("memory grows faster in B: {}", change(row)),
        Some((Trend::Lower, row)) => format!("memory grows less in B: {}", change(row)),
        Some((Trend::Same, _)) => "memory grows by the same".into(),
        Some((Trend::Unclear, _)) => "whether growth changed is not decided".into(),
        None => "growth was not measured".into(),
    }
}

fn amount(value: f64, unit: &str) -> String {
    if unit.starts_with("bytes") {
        if value < 0.0 { Bytes::signed(value) } else { Bytes(value.round() as u64).to_string() }
    } else if value < 1.0 {
        format!("{:.1} ms", value * 1e3)
    } else {
        format!("{value:.2} s")
    }
}

/// Median and interval of one side.
fn measured(measured: Option<MedianOfRepeats>, unit: &str) -> String {
    let Some(measured) = measured else { return "-".into() };
    let interval = measured.interval.filter(|[low, high]| low < high);
    let interval = interval.map_or_else(String::new, |[low, high]| {
        format!(" ({} to {})", amount(low, unit), amount(high, unit))
    });
    format!("{}{interval}", amount(measured.median, unit))
}

/// The change, or `~`.
fn change(row: &RowChange) -> String {
    match (row.change, row.trend) {
        (_, Trend::Unclear) | (None, _) => "~".into(),
        (_, Trend::Same) => "=".into(),
        (Some(change), _) => {
            let sign = if change < 0.0 { '-' } else { '+' };
            format!("{sign}{}", amount(change.abs(), &row.unit))
        }
    }
}

/// `growth, bytes per epoch`, `container train.seen`.
fn label(row: &RowChange) -> String {
    if row.name.is_empty() {
        format!("{}, {}", row.kind, row.unit)
    } else {
        format!("{} {}", row.kind, row.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextOptions;

    fn row(kind: &'static str, name: &str, unit: &str, sides: [f64; 2], trend: Trend) -> RowChange {
        let side =
            |median: f64| MedianOfRepeats { median, interval: Some([median * 0.9, median * 1.1]), runs: 3 };
        RowChange {
            kind,
            name: name.into(),
            unit: unit.into(),
            a: Some(side(sides[0])),
            b: Some(side(sides[1])),
            change: Some(sides[1] - sides[0]),
            interval: None,
            trend,
        }
    }

    fn sample() -> Difference {
        Difference {
            a: vec!["before".into()],
            b: vec!["after".into()],
            a_states: vec!["grows", "grows"],
            b_states: vec!["flat"],
            unit: "epoch",
            rows: vec![
                row("growth", "", "bytes per epoch", [4e6, 0.0], Trend::Lower),
                row("host peak", "", "bytes", [9e8, 8.9e8], Trend::Unclear),
                row("time per step", "", "seconds", [0.25, 0.25], Trend::Same),
                row("container", "train.<seen>|x", "bytes per epoch", [4e6, 0.0], Trend::Lower),
            ],
        }
    }

    #[test]
    fn a_table_for_people() {
        insta::assert_snapshot!(difference_text(
            &sample(),
            &TextOptions { color: false, width: 100, full: false }
        ));
        insta::assert_snapshot!(difference_markdown(&sample()));
        let page = difference_html(
            &sample(),
            vec![caulk_html::Curve { name: "A <b>".into(), readings: vec![1.0, 2.0] }],
        );
        for text in
            ["Memory grows less in B", "container train.&lt;seen&gt;|x", "A &lt;b&gt;", "3.43 MB to 4.20 MB"]
        {
            assert!(page.contains(text), "{text}");
        }
        assert!(difference_json(&sample()).contains("\"trend\": \"unclear\""));
    }
}
