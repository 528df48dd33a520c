//! Two moments of a run side by side.

use caulk_core::{Bytes, Comparison, ContainerChange, LineChange, Moment, Sampled, TypeChange, first_places};

use crate::lines::with_margin;
use crate::page::{Page, Tone};
use crate::text::TextOptions;
use crate::words::{self, Per, count};
use crate::{Excerpts, SCHEMA};

/// Rows of each part that are shown.
const MOST: usize = 10;
/// Columns of a figure.
const FIGURE: usize = 14;

const NOTE: &str = "Epochs are looked at where they begin, at their first step. Objects and containers are counted at some boundaries only: at the last by then. Changes of lines are \
                    estimated from samples of what they allocated and did not give back: ± is the 95 % interval, and lines \
                    that are closer than theirs are in no order. What a container keeps is estimated from a few of its \
                    elements.";

/// As a document for programs.
pub fn comparison_json(comparisons: &[Comparison]) -> String {
    let document = serde_json::json!({ "schema": SCHEMA, "command": "report", "comparisons": comparisons });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// As text, one part for each process.
pub fn comparison_text(comparisons: &[Comparison], excerpts: &Excerpts, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    for comparison in comparisons {
        page.gap();
        let [from, to] = comparison.moments.map(name);
        let owner = words::owner(&comparison.process).map_or_else(String::new, |owner| format!(", {owner}"));
        page.rule(&format!("from {from} to {to}{owner}"));
        memory(&mut page, comparison);
        types(&mut page, comparison);
        containers(&mut page, comparison);
        lines(&mut page, &comparison.lines, excerpts);
    }
    page.gap();
    page.prose((Tone::Quiet, ""), Tone::Quiet, NOTE);
    page.finish()
}

/// `epoch 3`, `step 1200`, `2 min 5 s`.
fn name(moment: Moment) -> String {
    match Per::of(moment.unit).name {
        "minute" => words::seconds(moment.number as f64),
        unit => format!("{unit} {}", moment.number),
    }
}

fn head(page: &mut Page, columns: [&str; 3], what: &str) {
    page.gap();
    let [a, b, c] = columns;
    page.line(&[
        (Tone::Quiet, &format!("{a:>FIGURE$}  {b:>FIGURE$}  {c:>FIGURE$}")),
        (Tone::Strong, &format!("  {what}")),
    ]);
}

fn row(page: &mut Page, tone: Tone, columns: [String; 3], what: &str) {
    let [a, b, c] = columns;
    page.line(&[
        (Tone::Plain, &format!("{a:>FIGURE$}  {b:>FIGURE$}  ")),
        (tone, &format!("{c:>FIGURE$}")),
        (Tone::Plain, &format!("  {what}")),
    ]);
}

/// What grew stands out.
fn tone(change: f64) -> Tone {
    if change > 0.0 { Tone::Bad } else { Tone::Plain }
}

fn memory(page: &mut Page, comparison: &Comparison) {
    let [from, to] = comparison.moments.map(name);
    head(page, [&from, &to, "change"], "memory");
    let mut one = |what: &str, pair: [Option<u64>; 2]| {
        if pair == [None, None] {
            return;
        }
        let known = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let change = pair[0].zip(pair[1]).map(|(before, after)| Bytes::signed(after as f64 - before as f64));
        let [before, after] = pair.map(|bytes| known(bytes.map(|bytes| Bytes(bytes).to_string())));
        row(page, Tone::Plain, [before, after, known(change)], what);
    };
    one("in use", comparison.in_use);
    one("resident", comparison.resident.map(Some));
    one("of that, private", comparison.private);
    if comparison.cuda_allocated != [0, 0] {
        one("allocated on the GPU", comparison.cuda_allocated.map(Some));
    }
}

/// Censuses are taken where they are worth their cost: that may have been before.
fn counted_at(comparison: &Comparison) -> [String; 2] {
    comparison.counted_at.unwrap_or(comparison.moments).map(name)
}

fn types(page: &mut Page, comparison: &Comparison) {
    if comparison.types.is_empty() {
        return;
    }
    let [from, to] = counted_at(comparison);
    head(page, [&from, &to, "bytes"], "objects by type");
    for TypeChange { name, objects, bytes } in comparison.types.iter().take(MOST) {
        let number = |objects: Option<u64>| objects.map_or_else(|| "few".into(), |number| number.to_string());
        let change = bytes[0].zip(bytes[1]).map(|(before, after)| after as f64 - before as f64);
        let columns =
            [number(objects[0]), number(objects[1]), change.map_or_else(|| "–".into(), Bytes::signed)];
        row(page, tone(change.unwrap_or(0.0)), columns, name);
    }
    more(page, comparison.types.len().saturating_sub(MOST), "type");
}

fn containers(page: &mut Page, comparison: &Comparison) {
    let containers = &comparison.containers;
    if containers.is_empty() {
        return;
    }
    let [from, to] = counted_at(comparison);
    head(page, [&from, &to, "keeps"], "containers by length");
    for ContainerChange { holder, kind, length, bytes } in containers.iter().take(MOST) {
        let number = |length: Option<u64>| length.map_or_else(|| "–".into(), |number| number.to_string());
        let holder = if holder.is_empty() { "not reached by any name" } else { holder };
        let columns = [number(length[0]), number(length[1]), bytes.map_or_else(|| "–".into(), Bytes::signed)];
        row(page, tone(bytes.unwrap_or(0.0)), columns, &format!("{holder}  ({kind})"));
    }
    more(page, containers.len().saturating_sub(MOST), "container");
}

fn lines(page: &mut Page, lines: &[LineChange], excerpts: &Excerpts) {
    let certain: Vec<&LineChange> = lines.iter().filter(|line| line.is_certain()).collect();
    let all = certain.len();
    let shown = first_places(certain, |line| line.rank, MOST / 2..=MOST);
    if shown.is_empty() {
        return;
    }
    head(page, ["before", "after", "change"], "lines by what they allocated");
    for line in &shown {
        let amount = |sampled: Sampled| Bytes(sampled.bytes as u64).to_string();
        let change = with_margin(&Bytes::signed(line.change.bytes), line.change);
        let text = excerpts.line(&line.file, line.line).map_or("", str::trim);
        let what = format!("{}:{}  {text}", line.file, line.line);
        row(page, tone(line.change.bytes), [amount(line.live[0]), amount(line.live[1]), change], &what);
    }
    more(page, all - shown.len(), "line");
}

fn more(page: &mut Page, rest: usize, noun: &str) {
    if rest > 0 {
        page.line(&[(Tone::Quiet, &format!("{:>FIGURE$}  and {} more", "", count(rest as u64, noun)))]);
    }
}

#[cfg(test)]
mod tests {
    use caulk_core::{ProcessRef, VerdictUnit};

    use super::*;

    fn changed(line: u32, rank: u32, bytes: f64, deviation: f64) -> LineChange {
        let sampled = |bytes| Sampled { bytes, deviation };
        LineChange {
            file: "train.py".into(),
            line,
            function: "main".into(),
            rank,
            live: [sampled(0.0), sampled(bytes)],
            change: sampled(bytes),
        }
    }

    #[test]
    fn of_lines_that_cannot_be_told_apart_all_are_shown_or_none() {
        let text = |changes: &[LineChange]| {
            let mut page = Page::new(false, 100);
            lines(&mut page, changes, &Excerpts::default());
            page.finish()
        };
        let check = |of_rank: [u32; 2], shown: usize, more: &str| {
            let ranks = (0..of_rank[0]).map(|_| 1).chain((0..of_rank[1]).map(|_| 1 + of_rank[0]));
            let changes: Vec<LineChange> =
                (1..).zip(ranks).map(|(line, rank)| changed(line, rank, 9e6, 1e6)).collect();
            let text = text(&changes);
            assert_eq!(text.matches("train.py:").count(), shown, "{of_rank:?}\n{text}");
            assert!(text.contains(more), "{of_rank:?}\n{text}");
        };
        check([25, 0], 25, "train.py:25");
        check([1, 9], 10, "train.py:10");
        check([15, 25], 15, "and 25 lines more");
        // What comes first of what is certain may have no first place of all.
        let doubtful = changed(1, 1, 9e6, 9e6);
        let certain: Vec<LineChange> = (2..22).map(|line| changed(line, 2, 5e6, 1e6)).collect();
        let text = text(&[&[doubtful], certain.as_slice()].concat());
        assert_eq!(text.matches("train.py:").count(), 20, "{text}");
    }

    #[test]
    fn two_moments_stand_side_by_side() {
        let moment = |number| Moment { unit: VerdictUnit::Epoch, number };
        let sampled = |bytes, deviation| Sampled { bytes, deviation };
        let line = |line, before: f64, after: f64| LineChange {
            live: [sampled(before, 1e4), sampled(after, 1e5)],
            ..changed(line, 1, after - before, 1e5)
        };
        let comparison = Comparison {
            process: ProcessRef::main(),
            moments: [moment(2), moment(8)],
            in_use: [Some(230 << 20), Some(350 << 20)],
            private: [None, Some(90 << 20)],
            resident: [400 << 20, 530 << 20],
            cuda_allocated: [0, 0],
            counted_at: Some([moment(2), moment(7)]),
            types: vec![
                TypeChange {
                    name: "torch.Tensor".into(),
                    objects: [Some(1203), Some(1323)],
                    bytes: [Some(96_240), Some(105_840)],
                },
                TypeChange { name: "train.Box".into(), objects: [None, Some(9)], bytes: [None, Some(4096)] },
            ],
            containers: vec![ContainerChange {
                holder: "trainer.val_ious".into(),
                kind: "list".into(),
                length: [Some(4), Some(28)],
                bytes: Some(1.2e8),
            }],
            lines: vec![line(3, 1e6, 9e7), line(4, 1e6, 1.01e6)],
        };
        let mut excerpts = Excerpts::default();
        excerpts.insert("train.py", 3, "    iou = box_iou(model(images), boxes)");
        let options = TextOptions { color: false, width: 100, full: false };
        insta::assert_snapshot!(comparison_text(std::slice::from_ref(&comparison), &excerpts, &options));
        assert!(comparison_json(&[comparison]).contains("\"counted_at\""));
    }
}
