//! The result as a description for a pull request.

use std::fmt::Write as _;

use caulk_core::{Bytes, written_out};

use super::document::{Document, RunRow};
use super::text::{ONE_RUN, headline};

/// Levels of a small picture, one character each.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Most characters of a picture.
const WIDEST: usize = 40;

/// The result as Markdown.
pub(crate) fn markdown(document: &Document) -> String {
    let mut page = format!("## caulk heal: {}\n\n", plain(&headline(document)));
    if let Some(reason) = &document.reason {
        let _ = writeln!(page, "{}\n", plain(reason));
    }
    if let Some((before, after)) = document.before_and_after() {
        let top = before.in_use.iter().chain(&after.in_use).max().copied().unwrap_or_default();
        let low = before.in_use.iter().chain(&after.in_use).min().copied().unwrap_or_default();
        page.push_str("| | growth | peak | memory in use at each boundary |\n|---|---|---|---|\n");
        row(&mut page, "before", before, low, top);
        row(&mut page, "after", after, low, top);
        page.push('\n');
    }
    for (verdict, title) in
        [("proven", "Changed"), ("unproven", "Harmless, not proven"), ("refused", "Refused")]
    {
        let edits: Vec<_> = document.edits.iter().filter(|edit| edit.verdict == verdict).collect();
        if edits.is_empty() {
            continue;
        }
        let _ = writeln!(page, "### {title}\n");
        for edit in edits {
            let reason =
                edit.reason.as_ref().map_or_else(String::new, |reason| format!(" — {}", plain(reason)));
            let place = format!("{}:{}", edit.file, edit.line);
            let _ = writeln!(
                page,
                "- `{}` ({}): {}{reason}",
                code(&place),
                edit.class.as_str(),
                plain(&edit.description)
            );
        }
        page.push('\n');
    }
    if let Some(compared) = &document.compared {
        let (lines, numbers) = (compared.lines, compared.numbers);
        let _ = writeln!(
            page,
            "Proof: the output with the edits is identical in {lines} lines with {numbers} numbers. \
             Limit: {ONE_RUN}.\n"
        );
    }
    for left in &document.left {
        let place = format!("{}:{}", left.file, left.line);
        let _ = writeln!(page, "- left: `{}` {}", code(&place), plain(&left.message));
    }
    if !document.patch.is_empty() {
        let fence = "`".repeat(longest_run(&document.patch).max(2) + 1);
        let _ = writeln!(page, "{fence}diff\n{}{fence}", document.patch);
    }
    page
}

fn row(page: &mut String, name: &str, run: &RunRow, low: u64, top: u64) {
    let peak = run.peak_bytes.map_or_else(String::new, |peak| Bytes(peak).to_string());
    let _ =
        writeln!(page, "| {name} | {} | {peak} | {} |", plain(&run.brief), sparkline(&run.in_use, low, top));
}

/// Readings as one line of characters; of many, the last of each stretch.
fn sparkline(readings: &[u64], low: u64, top: u64) -> String {
    let each = readings.len().div_ceil(WIDEST).max(1);
    let level = |reading: u64| {
        let share = (reading - low) as f64 / (top - low).max(1) as f64;
        BARS[((share * 8.0) as usize).min(7)]
    };
    readings.chunks(each).filter_map(|stretch| stretch.last()).map(|reading| level(*reading)).collect()
}

/// Text that is no markup.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in written_out(text).chars() {
        if matches!(c, '\\' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '@') {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

/// Text between backticks.
fn code(text: &str) -> String {
    written_out(text).replace('`', "'")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_rises_and_level_memory_does_not() {
        assert_eq!(sparkline(&[0, 4, 8], 0, 8), "▁▅█");
        assert_eq!(sparkline(&[4, 4], 4, 4), "▁▁");
        assert_eq!(sparkline(&(0..80).collect::<Vec<_>>(), 0, 79).chars().count(), 40);
    }

    #[test]
    fn names_are_no_markup() {
        assert_eq!(plain("a|b <c> @d"), "a\\|b \\<c\\> \\@d");
        assert_eq!(longest_run("a ``` b `"), 3);
    }
}
