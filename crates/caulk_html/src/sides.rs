//! Two sides of a comparison: each quantity as a median with its interval, both on one scale.

use maud::{Markup, html};

use crate::chart::percent;
use crate::input::Mood;
use crate::room::Room;
use crate::tables::left_out;
use crate::{frame, words};

/// One side of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SideFigure {
    /// Median.
    pub median: f64,
    /// Its interval, if it has one.
    pub interval: Option<[f64; 2]>,
    /// In words.
    pub text: String,
}

/// A quantity on both sides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SideRow {
    /// What it is.
    pub label: String,
    /// A and B; `None` if it was not measured there.
    pub sides: [Option<SideFigure>; 2],
    /// The change in words.
    pub change: String,
    /// How good or bad the change is.
    pub mood: Mood,
}

/// Scale of one row: from the least to the most of both sides, zero included.
struct Scale {
    low: f64,
    width: f64,
}

impl Scale {
    fn of(row: &SideRow) -> Self {
        let ends = |side: &SideFigure| {
            let [low, high] = side.interval.unwrap_or([side.median; 2]);
            [low, high, side.median]
        };
        let all = row.sides.iter().flatten().flat_map(ends).filter(|value| value.is_finite());
        let (low, high) =
            all.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Self { low, width: (high - low).max(f64::MIN_POSITIVE) }
    }

    /// A part of the width, with room for a mark at both ends.
    fn at(&self, value: f64) -> String {
        percent(4.0 + 92.0 * ((value - self.low) / self.width).clamp(0.0, 1.0))
    }
}

/// The table.
pub(crate) fn sides(names: &[String; 2], rows: &[SideRow], room: Room) -> Markup {
    html! {
        p.side-key {
            @for (class, letter, name) in [("c0", "A", &names[0]), ("c1", "B", &names[1])] {
                svg.swatch width="26" height="10" aria-hidden="true" { line.interval.(class) x1="0" x2="26" y1="5" y2="5" {} circle.median.(class) cx="13" cy="5" r="4" {} }
                " " (letter) ": " (words::plain(name, room.text)) "  "
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Table: both sides" { table {
            thead { tr { @for head in ["quantity", "picture", "A", "B", "change"] { th scope="col" { (head) } } } }
            tbody { @for row in rows.iter().take(room.rows) { tr {
                th scope="row" { (words::prose(&row.label, room.text)) }
                td { (picture(row)) }
                @for side in &row.sides { td { @if let Some(side) = side { (words::plain(&side.text, 120)) } @else { "–" } } }
                td { span.result.(frame::mood(row.mood)) {
                    span.sign aria-hidden="true" { (frame::sign(row.mood)) } " " (words::plain(&row.change, 80))
                } }
            } } }
        } }
        (left_out(rows.len(), room.rows, "rows"))
        p.caption { "A dot is the median of a side, and the line through it the interval. A thin line marks zero." }
    }
}

fn picture(row: &SideRow) -> Markup {
    let scale = Scale::of(row);
    let zero = scale.at(0.0);
    html! {
        svg.sides width="220" height="34" aria-hidden="true" {
            line.grid x1=(zero) x2=(zero) y1="0" y2="34" {}
            @for (index, side) in row.sides.iter().enumerate() {
                @if let Some(side) = side.as_ref().filter(|side| side.median.is_finite()) {
                    @let (class, y) = if index == 0 { ("c0", "10") } else { ("c1", "24") };
                    @if let Some([low, high]) = side.interval {
                        line.interval.(class) x1=(scale.at(low)) x2=(scale.at(high)) y1=(y) y2=(y) {}
                    }
                    circle.median.(class) cx=(scale.at(side.median)) cy=(y) r="4" {}
                }
            }
        }
    }
}
