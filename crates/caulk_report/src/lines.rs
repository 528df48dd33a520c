//! A heap profile beside the source: what each line has allocated and not given back.

use std::collections::BTreeMap;

use caulk_core::{Bytes, HeapTotal, LineUse, ProcessRef, Sampled, first_places};

use crate::page::{Page, Tone};
use crate::text::TextOptions;
use crate::words::{self, Per};
use crate::{Excerpts, SCHEMA};

/// Lines shown of all files together, the least where there are so many, and the most.
const LEAST: usize = 12;
const MOST: usize = 24;
/// Columns of a figure with its margin, and of three of them.
const FIGURE: usize = 14;
const COLUMNS: usize = 3 * FIGURE + 2 * 2;

const NOTE: &str = "Bytes that were allocated at a line and not given back, at the last look; what a library allocates \
                    counts for the line that called it. Estimated from samples: ± is the 95 % interval, and lines that are \
                    closer than theirs are in no order. The peak is the most at the end of an epoch or at another \
                    look, not what stood there for a moment in between. What a library maps for itself (buffers of BLAS, \
                    say) counts as it was reserved, touched or not, but in a report's bytes in use as far as it was touched.";

/// Stands below where lines of such processes are shown.
const ENDED: &str = "Processes that ended before the run did hold nothing any more: of those that followed one another under \
                     one number the peak is the most that one of them held.";

/// As a document for programs.
pub fn lines_json(rows: &[LineUse], totals: &[HeapTotal]) -> String {
    let document =
        serde_json::json!({ "schema": SCHEMA, "command": "report", "profiles": totals, "lines": rows });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// As text: all lines of one `file` with their source, or the lines that hold most of all files.
pub fn lines_text(
    rows: &[LineUse],
    totals: &[HeapTotal],
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
    let unit = if have_one_unit(rows) { per(&rows[0]) } else { "growth".into() };
    page.line(&[(Tone::Quiet, &format!("{:>FIGURE$}  {unit:>FIGURE$}  {:>FIGURE$}", "live", "peak"))]);
    let shown = match file {
        Some(file) => whole(&mut page, rows, file, excerpts),
        None => heaviest(&mut page, rows, excerpts),
    };
    page.gap();
    for total in totals.iter().filter(|total| total.live.bytes > 0.0) {
        page.prose((Tone::Quiet, ""), Tone::Quiet, &in_all(total, &shown));
    }
    page.prose((Tone::Quiet, ""), Tone::Quiet, NOTE);
    if rows.iter().any(|row| row.ended) {
        page.prose((Tone::Quiet, ""), Tone::Quiet, ENDED);
    }
    page.finish()
}

/// What a process holds in all, and how much of it at none of these lines.
fn in_all(total: &HeapTotal, shown: &[&LineUse]) -> String {
    let own = shown.iter().filter(|row| row.process == total.process);
    let rest = total.live.bytes - own.map(|row| row.live.bytes).sum::<f64>();
    let owner = words::owner(&total.process).map_or_else(String::new, |owner| format!(" in {owner}"));
    let all = with_margin(&Bytes(total.live.bytes as u64).to_string(), total.live);
    let elsewhere = if rest <= total.live.margin() {
        String::new()
    } else {
        format!(", {} of it at other lines or at none", Bytes(rest as u64))
    };
    format!("{all} in all{owner}{elsewhere}.{}", resident(total))
}

/// What is resident beside it: the sampler sees what is asked of malloc, and private mappings, from its beginning on.
fn resident(total: &HeapTotal) -> String {
    let Some(bytes) = total.resident_bytes else { return String::new() };
    let outside = bytes as f64 - total.file_bytes as f64 - total.live.bytes;
    let files = format!(
        " Resident are {}, {} of them pages of files (programs, libraries)",
        Bytes(bytes),
        Bytes(total.file_bytes)
    );
    if outside <= total.live.margin() {
        return format!("{files}.");
    }
    let outside = Bytes(outside as u64);
    format!("{files} and {outside} from before sampling began, kept free by allocators or not from malloc.")
}

/// The lines that hold most.
fn heaviest<'a>(page: &mut Page, rows: &'a [LineUse], excerpts: &Excerpts) -> Vec<&'a LineUse> {
    let shown = first_places(rows.iter().collect(), |row| row.rank, LEAST..=MOST);
    let mut parts: BTreeMap<(u32, &ProcessRef, &str), Vec<&LineUse>> = BTreeMap::new();
    for row in &shown {
        let same = |other: &&LineUse| other.process == row.process && other.file == row.file;
        let best = shown.iter().copied().filter(same).map(|row| row.rank).min().unwrap_or(row.rank);
        parts.entry((best, &row.process, &row.file)).or_default().push(row);
    }
    for ((_, _, file), mut part) in parts {
        title(page, part[0], have_one_unit(rows));
        part.sort_by_key(|row| row.line);
        for row in part {
            line(page, Some(row), row.line, excerpts.line(file, row.line).unwrap_or(""));
        }
    }
    if let Some(more) = rows.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        page.gap();
        let lines = if more == 1 { "line holds" } else { "lines hold" };
        page.prose((Tone::Quiet, ""), Tone::Quiet, &format!("{more} more {lines} less."));
    }
    shown
}

/// Every line of the file that there is text for; of further processes only those that hold memory.
fn whole<'a>(page: &mut Page, rows: &'a [LineUse], file: &str, excerpts: &Excerpts) -> Vec<&'a LineUse> {
    let mut processes: Vec<&ProcessRef> =
        rows.iter().filter(|row| row.file == file).map(|row| &row.process).collect();
    processes.sort();
    processes.dedup();
    for (index, process) in processes.into_iter().enumerate() {
        let mut own = rows.iter().filter(|row| row.file == file && row.process == *process).peekable();
        if let Some(first) = own.peek() {
            title(page, first, have_one_unit(rows));
        }
        let own: Vec<&LineUse> = own.collect();
        let of_line = |number: u32| own.iter().copied().find(|row| row.line == number);
        for (number, text) in excerpts.of_file(file) {
            let row = of_line(number);
            if index == 0 || row.is_some() {
                line(page, row, number, text);
            }
        }
    }
    rows.iter().filter(|row| row.file == file).collect()
}

/// File and process of a line and of those that follow, with what their growth is per where that differs.
fn title(page: &mut Page, first: &LineUse, one_unit: bool) {
    page.gap();
    let owner = words::owner(&first.process).map_or_else(String::new, |owner| format!("  {owner}"));
    let unit = if one_unit { String::new() } else { format!("  growth {}", per(first)) };
    page.line(&[(Tone::Strong, &first.file), (Tone::Quiet, &owner), (Tone::Quiet, &unit)]);
}

fn per(row: &LineUse) -> String {
    format!("per {}", Per::of(row.unit).name)
}

/// Is all growth per the same? A launcher without epochs of its own grows by minutes.
fn have_one_unit(rows: &[LineUse]) -> bool {
    rows.iter().all(|row| row.unit == rows[0].unit)
}

fn line(page: &mut Page, row: Option<&LineUse>, number: u32, text: &str) {
    let figures = row.map_or_else(String::new, |row| {
        let growth = row.growth.map_or_else(String::new, |growth| {
            let rate = growth.bytes * Per::of(row.unit).factor;
            with_margin(&Bytes::signed(rate), growth)
        });
        let amount = |sampled: Sampled| with_margin(&Bytes(sampled.bytes as u64).to_string(), sampled);
        let live = if row.ended { "ended".into() } else { amount(row.live) };
        format!("{live:>FIGURE$}  {growth:>FIGURE$}  {:>FIGURE$}", amount(row.peak))
    });
    let tone = if row.is_some_and(|row| row.growth.is_some()) { Tone::Bad } else { Tone::Plain };
    page.line(&[
        (tone, &format!("{figures:COLUMNS$}")),
        (Tone::Quiet, &format!(" {number:>4} │ ")),
        (Tone::Plain, text),
    ]);
}

/// `38.1 MB ±12%`: the interval in which the true figure lies in 95 cases of 100. Nothing where it is exact.
pub(crate) fn with_margin(figure: &str, sampled: Sampled) -> String {
    let percent = (100.0 * sampled.margin() / sampled.bytes.abs().max(1.0)).ceil();
    if percent >= 1.0 { format!("{figure} ±{:.0}%", percent.min(999.0)) } else { figure.to_owned() }
}

#[cfg(test)]
mod tests {
    use caulk_core::VerdictUnit;

    use super::*;

    fn row(line: u32, rank: u32, bytes: f64, growth: Option<f64>) -> LineUse {
        let sampled = |bytes, deviation| Sampled { bytes, deviation };
        LineUse {
            process: ProcessRef::main(),
            file: "train.py".into(),
            line,
            function: "main".into(),
            rank,
            live: sampled(bytes, 2e5),
            ended: false,
            peak: sampled(bytes, 2e5),
            growth: growth.map(|growth| sampled(growth, 1e5)),
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

    const OPTIONS: TextOptions = TextOptions { color: false, width: 100, full: false };

    #[test]
    fn lines_stand_beside_their_source() {
        let rows = [row(2, 1, 4e7, Some(5e6)), row(3, 2, 1e6, None)];
        insta::assert_snapshot!(lines_text(&rows, &[], Some("train.py"), &excerpts(), &OPTIONS));
        insta::assert_snapshot!(lines_text(&rows, &[], None, &excerpts(), &OPTIONS));
        insta::assert_snapshot!(lines_text(&[], &[], None, &excerpts(), &OPTIONS));
        let total = HeapTotal {
            process: ProcessRef::main(),
            interval: 524_288,
            live: Sampled::default(),
            resident_bytes: None,
            file_bytes: 0,
        };
        let json = lines_json(&rows, &[total]);
        assert!(json.contains("\"rank\": 1") && json.contains("\"interval\": 524288"), "{json}");
    }

    #[test]
    fn what_growth_is_per_is_told_with_each_process_where_it_differs() {
        let launcher = LineUse { unit: VerdictUnit::Seconds, ..row(1, 2, 1e6, Some(1e4)) };
        let process = ProcessRef { role: "rank".into(), index: 1, count: 1 };
        let text = |rows: &[LineUse], file: Option<&str>| lines_text(rows, &[], file, &excerpts(), &OPTIONS);
        let rows = [LineUse { process, ..row(2, 1, 4e7, Some(5e6)) }, launcher];
        for file in [None, Some("train.py")] {
            let text = text(&rows, file);
            assert!(text.contains("train.py  rank 1  growth per epoch"), "{text}");
            assert!(text.contains("train.py  growth per minute"), "{text}");
        }
        assert!(!text(&rows[..1], None).contains("growth"));
    }

    #[test]
    fn of_lines_that_cannot_be_told_apart_all_are_shown_or_none() {
        let text = |of_rank: [usize; 2]| {
            let second = 1 + of_rank[0] as u32;
            let ranks = std::iter::repeat_n(1, of_rank[0]).chain(std::iter::repeat_n(second, of_rank[1]));
            let rows: Vec<LineUse> =
                (1..).zip(ranks).map(|(line, rank)| row(line, rank, 1e6, None)).collect();
            lines_text(&rows, &[], None, &excerpts(), &OPTIONS)
        };
        let check = |of_rank, shown: usize| {
            assert_eq!(
                text(of_rank).lines().filter(|line| line.contains(" │")).count(),
                shown,
                "{of_rank:?}"
            );
        };
        check([1, MOST - 1], MOST);
        check([LEAST, MOST], LEAST);
        check([1, MOST], 1 + MOST);
        check([2 * MOST, 1], 2 * MOST);
        assert!(text([LEAST, MOST]).contains("24 more lines hold less."));
    }

    #[test]
    fn of_processes_that_have_ended_the_peak_is_shown() {
        let worker = ProcessRef { role: "worker".into(), index: 0, count: 1 };
        let rows =
            [LineUse { process: worker, ended: true, live: Sampled::default(), ..row(2, 1, 4e7, None) }];
        let text = lines_text(&rows, &[], None, &excerpts(), &OPTIONS);
        let shown = text.lines().find(|line| line.contains(" 2 │")).unwrap_or_default();
        assert!(shown.trim_start().starts_with("ended ") && shown.contains("38.1 MB"), "{text}");
        assert!(text.contains("ended before the run did"), "{text}");
        assert!(!lines_text(&[row(2, 1, 4e7, None)], &[], None, &excerpts(), &OPTIONS).contains("ended"));
    }

    #[test]
    fn what_is_at_none_of_the_lines_is_said() {
        let rows = [row(2, 1, 4e7, None)];
        let check = |bytes: f64, resident_bytes: Option<u64>, expected: &str| {
            let live = Sampled { bytes, deviation: 1e6 };
            let process = ProcessRef::main();
            let total = HeapTotal { process, interval: 524_288, live, resident_bytes, file_bytes: 10 << 20 };
            let text = lines_text(&rows, &[total], None, &excerpts(), &OPTIONS);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(expected), "{text}");
        };
        check(5e7, None, "47.7 MB ±4% in all, 9.54 MB of it at other lines or at none.");
        check(4.1e7, None, "39.1 MB ±5% in all.");
        let outside = "Resident are 90.0 MB, 10.0 MB of them pages of files (programs, libraries) and 40.9 MB from before \
                       sampling began, kept free by allocators or not from malloc.";
        check(4.1e7, Some(90 << 20), outside);
        // What was not touched yet is allocated, but not resident.
        check(
            4.1e7,
            Some(20 << 20),
            "Resident are 20.0 MB, 10.0 MB of them pages of files (programs, libraries).",
        );
    }

    #[test]
    fn every_process_has_its_own_part() {
        let worker = ProcessRef { role: "worker".into(), index: 1, count: 1 };
        let rows = [row(2, 1, 4e7, None), LineUse { process: worker, ..row(3, 2, 1e6, None) }];
        insta::assert_snapshot!(lines_text(&rows, &[], Some("train.py"), &excerpts(), &OPTIONS));
    }
}
