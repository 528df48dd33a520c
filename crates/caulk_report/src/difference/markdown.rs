//! For a pull request.

use std::fmt::Write as _;

use caulk_diff::Difference;

use super::{change, label, measured, sentence};
use crate::verification::cell;

/// A table of the rows.
pub fn difference_markdown(difference: &Difference) -> String {
    let names = |names: &[String]| names.iter().map(|name| cell(name)).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "## caulk diff\n\n{}\n\nA: {}  \nB: {}\n\n| | A | B | change |\n|---|---|---|---|\n",
        sentence(difference),
        names(&difference.a),
        names(&difference.b)
    );
    for row in &difference.rows {
        let [a, b] = [row.a, row.b].map(|side| measured(side, &row.unit));
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "| {} | {a} | {b} | {} |", cell(&label(row)), change(row));
    }
    text
}
