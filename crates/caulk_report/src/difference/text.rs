//! For a terminal.

use caulk_diff::{Difference, Trend};

use super::{change, label, measured, sentence};
use crate::TextOptions;
use crate::page::{Page, Tone};

/// One block for each row: what it is, both sides, the change.
pub fn difference_text(difference: &Difference, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    page.rule("caulk diff");
    page.prose((Tone::Quiet, "A  "), Tone::Plain, &difference.a.join(", "));
    page.prose((Tone::Quiet, "B  "), Tone::Plain, &difference.b.join(", "));
    page.gap();
    page.prose((Tone::Plain, ""), Tone::Strong, &sentence(difference));
    page.gap();
    for row in &difference.rows {
        let tone = match row.trend {
            Trend::Higher => Tone::Bad,
            Trend::Lower => Tone::Good,
            Trend::Same | Trend::Unclear => Tone::Quiet,
        };
        page.line(&[(tone, &format!("{:>12}  ", change(row))), (Tone::Strong, &label(row))]);
        let sides = format!("{} -> {}", measured(row.a, &row.unit), measured(row.b, &row.unit));
        page.prose((Tone::Plain, "              "), Tone::Plain, &sides);
    }
    if difference.rows.iter().any(|row| row.trend == Trend::Unclear) {
        page.gap();
        page.prose(
            (Tone::Plain, ""),
            Tone::Quiet,
            "~ the intervals touch, or one side has none: three or more runs on each side give one",
        );
    }
    page.finish()
}
