//! A heap profile beside the source: what each line has allocated and not given back.

use std::collections::BTreeMap;

use caulk_core::{Bytes, LineUse};

use crate::page::{Page, Tone};
use crate::text::TextOptions;
use crate::words::Per;
use crate::{Excerpts, SCHEMA};

/// Lines shown of all files together.
const MOST: usize = 24;

/// As a document for programs.
pub fn lines_json(rows: &[LineUse]) -> String {
    let document = serde_json::json!({ "schema": SCHEMA, "command": "report", "lines": rows });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// As text: all lines of one `file` with their source, or the lines that hold most of all files.
pub fn lines_text(
    rows: &[LineUse],
    file: Option<&str>,
    excerpts: &Excerpts,
    options: &TextOptions,
) -> String {
    let mut page = Page::new(options.color, options.width);
    if rows.is_empty() {
        page.line(&[(
            Tone::Plain,
            "No line of this run's heap is known: it was not sampled, or ended before its first boundary.",
        )]);
        return page.finish();
    }
    let unit = Per::of(rows[0].unit).name;
    page.line(&[(Tone::Quiet, &format!("{:>21}  {:>14}  {:>9}", "live", format!("per {unit}"), "peak"))]);
    match file {
        Some(file) => whole(&mut page, rows, file, excerpts),
        None => heaviest(&mut page, rows, excerpts),
    }
    page.gap();
    let note = "Bytes that were allocated at a line and not given back, estimated from samples (± one standard deviation), \
                at the last boundary; what a library allocates counts for the line that called it.";
    page.prose((Tone::Quiet, ""), Tone::Quiet, note);
    page.finish()
}

fn heaviest(page: &mut Page, rows: &[LineUse], excerpts: &Excerpts) {
    let mut files: BTreeMap<&str, Vec<&LineUse>> = BTreeMap::new();
    for row in rows.iter().take(MOST) {
        files.entry(&row.file).or_default().push(row);
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|a, b| total(&b.1).total_cmp(&total(&a.1)));
    for (file, mut rows) in files {
        page.gap();
        page.line(&[(Tone::Strong, file)]);
        rows.sort_by_key(|row| row.line);
        for row in rows {
            line(page, Some(row), row.line, excerpts.line(file, row.line).unwrap_or(""));
        }
    }
}

fn total(rows: &[&LineUse]) -> f64 {
    rows.iter().map(|row| row.bytes).sum()
}

/// Every line of the file that there is text for.
fn whole(page: &mut Page, rows: &[LineUse], file: &str, excerpts: &Excerpts) {
    page.gap();
    page.line(&[(Tone::Strong, file)]);
    for (number, text) in excerpts.of_file(file) {
        line(page, rows.iter().find(|row| row.file == file && row.line == number), number, text);
    }
}

fn line(page: &mut Page, row: Option<&LineUse>, number: u32, text: &str) {
    let figures = row.map_or_else(String::new, |row| {
        let deviation =
            if row.deviation > 0.0 { format!(" ±{}", Bytes(row.deviation as u64)) } else { String::new() };
        let live = format!("{}{deviation}", Bytes(row.bytes as u64));
        let growth =
            row.growth.map_or_else(String::new, |growth| Bytes::signed(growth * Per::of(row.unit).factor));
        format!("{live:>21}  {growth:>14}  {:>9}", Bytes(row.peak as u64).to_string())
    });
    let tone = if row.is_some_and(|row| row.growth.is_some()) { Tone::Bad } else { Tone::Plain };
    page.line(&[
        (tone, &format!("{figures:48}")),
        (Tone::Quiet, &format!(" {number:>5} │ ")),
        (Tone::Plain, text),
    ]);
}

#[cfg(test)]
mod tests {
    use caulk_core::{ProcessRef, VerdictUnit};

    use super::*;

    fn row(line: u32, bytes: f64, growth: Option<f64>) -> LineUse {
        LineUse {
            process: ProcessRef::main(),
            file: "train.py".into(),
            line,
            function: "main".into(),
            bytes,
            deviation: 2e5,
            peak: bytes,
            growth,
            unit: VerdictUnit::Epoch,
        }
    }

    fn excerpts() -> Excerpts {
        let mut excerpts = Excerpts::default();
        for (line, text) in [(1, "def main():"), (2, "    kept.append(load())"), (3, "    step()")] {
            excerpts.insert("train.py", line, text);
        }
        excerpts
    }

    #[test]
    fn lines_stand_beside_their_source() {
        let rows = [row(2, 4e7, Some(5e6)), row(3, 1e6, None)];
        let options = TextOptions { color: false, width: 100 };
        insta::assert_snapshot!(lines_text(&rows, Some("train.py"), &excerpts(), &options));
        insta::assert_snapshot!(lines_text(&rows, None, &excerpts(), &options));
        insta::assert_snapshot!(lines_text(&[], None, &excerpts(), &options));
        assert!(lines_json(&rows).contains("\"growth\": 5000000.0"));
    }
}
