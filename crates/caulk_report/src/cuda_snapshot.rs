//! The report on a snapshot of torch's allocator, and on what changed between two of them.

use caulk_core::Bytes;
use caulk_cuda::{
    HelpfulSetting, PoolUse, ReplayAdvice, SnapshotDifference, SnapshotRow, SnapshotSettings, Usage,
};
use serde::Serialize;

use crate::page::{Page, Tone};
use crate::text::TextOptions;
use crate::words::count;

/// Version of the JSON documents: fields may be added under one number.
const SCHEMA: u32 = 1;
/// Rows of each table as text.
const ROWS: usize = 10;
/// Columns of a figure.
const FIGURE: usize = 12;

const NOTE: &str = "Bytes are those of blocks, after rounding. A line is the innermost frame of your code in the stack that \
                    allocated the block. Gaps lie between live blocks of a segment; `torch.cuda.empty_cache()` gives free \
                    segments without a live block back.";

/// What a snapshot shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CudaSnapshotReport {
    /// Name of the file.
    pub file: String,
    /// How the allocator was set.
    pub settings: SnapshotSettings,
    /// What each device holds.
    pub devices: Vec<Usage>,
    /// What a replay of the history predicts for each device.
    pub advice: Vec<ReplayAdvice>,
}

/// As a document for programs.
pub fn cuda_snapshot_json(report: &CudaSnapshotReport) -> String {
    document(&serde_json::json!({ "schema": SCHEMA, "command": "report", "cuda_snapshot": report }))
}

/// As a document for programs.
pub fn cuda_difference_json(difference: &SnapshotDifference) -> String {
    document(&serde_json::json!({ "schema": SCHEMA, "command": "diff", "cuda_snapshots": difference }))
}

fn document(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// As text: one part for each device.
pub fn cuda_snapshot_text(report: &CudaSnapshotReport, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    if report.devices.is_empty() {
        page.line(&[(Tone::Plain, "The snapshot has no segments: torch had reserved no memory on a GPU.")]);
        return page.finish();
    }
    for usage in &report.devices {
        page.gap();
        page.rule(&format!("GPU {}", usage.device));
        page.prose((Tone::Strong, ""), Tone::Strong, &in_all(&usage.total));
        pools(&mut page, usage);
        lines(&mut page, usage);
        blocks(&mut page, usage);
        let advice = report.advice.iter().find(|advice| advice.device == usage.device);
        page.gap();
        for (tone, text) in advice.map_or_else(Vec::new, |advice| helps(advice, &report.settings)) {
            page.prose((tone, ""), tone, &text);
        }
    }
    page.gap();
    page.prose((Tone::Quiet, ""), Tone::Quiet, NOTE);
    page.finish()
}

fn in_all(total: &PoolUse) -> String {
    format!(
        "{} reserved: {} live, {} free, {} ({:.0}%) in gaps, the largest free block {}.",
        Bytes(total.reserved),
        Bytes(total.live + total.pending),
        Bytes(total.free),
        Bytes(total.gaps),
        100.0 * total.gaps as f64 / total.reserved.max(1) as f64,
        Bytes(total.largest_free)
    )
}

fn pools(page: &mut Page, usage: &Usage) {
    let head = ["reserved", "live", "free", "gaps", "largest free"];
    table(page, &head.map(String::from), "pool", Tone::Quiet);
    for pool in &usage.pools {
        let figures = [pool.reserved, pool.live + pool.pending, pool.free, pool.gaps, pool.largest_free];
        let name = format!("{}, {}", pool.pool, count(pool.segments, "segment"));
        table(page, &figures.map(|bytes| Bytes(bytes).to_string()), &name, Tone::Plain);
    }
}

fn lines(page: &mut Page, usage: &Usage) {
    page.gap();
    table(page, &["live".into(), "blocks".into()], "line", Tone::Quiet);
    for line in usage.lines.iter().take(ROWS) {
        let name = place(&line.file, line.line, &line.function);
        table(page, &[Bytes(line.bytes).to_string(), line.blocks.to_string()], &name, Tone::Plain);
    }
    more(page, usage.line_count, "line");
}

fn blocks(page: &mut Page, usage: &Usage) {
    page.gap();
    table(page, &["bytes".into()], "largest blocks", Tone::Quiet);
    for block in usage.blocks.iter().take(ROWS / 2) {
        let name = place(&block.file, block.line, &block.function);
        table(page, &[Bytes(block.bytes).to_string()], &name, Tone::Plain);
    }
}

fn place(file: &str, line: u32, function: &str) -> String {
    if file.is_empty() {
        return "no stack recorded: `torch.cuda.memory._record_memory_history()` records them".into();
    }
    format!("{file}:{line}  {function}")
}

/// The sentences on settings: predicted, and never one that is set already.
fn helps(advice: &ReplayAdvice, settings: &SnapshotSettings) -> Vec<(Tone, String)> {
    let mut text = Vec::new();
    if advice.events == 0 {
        let hint = "The snapshot has no history of allocations, so the effect of a setting cannot be predicted. \
                    `torch.cuda.memory._record_memory_history()` records one.";
        return vec![(Tone::Quiet, hint.into())];
    }
    if let Some(size) = advice.failed {
        text.push((Tone::Bad, format!("An allocation of {} failed.", Bytes(size))));
    }
    text.extend(advice.remedies.iter().map(|remedy| (Tone::Good, effect(remedy, advice))));
    let basis = format!(
        "Predicted by a replay of {} through a model of the allocator.",
        count(advice.events as u64, "event")
    );
    if advice.remedies.is_empty() {
        text.push((Tone::Plain, format!("No setting of the allocator saves more than 2%. {basis}")));
    } else {
        text.push((Tone::Quiet, basis));
    }
    if !settings.configuration.is_empty() {
        text.push((Tone::Quiet, format!("Set already: {}.", settings.configuration)));
    }
    text
}

fn effect(remedy: &HelpfulSetting, advice: &ReplayAdvice) -> String {
    let [with, without] = [remedy.peak_reserved, advice.peak_reserved].map(Bytes);
    let setting = &remedy.setting;
    let effect = match remedy.avoids_failure {
        Some(true) => format!("the failed allocation fits, with {with} reserved at the peak."),
        Some(false) => {
            format!("{with} reserved at the peak instead of {without}, and the same allocation fails.")
        }
        None => format!("{with} reserved at the peak instead of {without}."),
    };
    format!("PYTORCH_CUDA_ALLOC_CONF={setting}: {effect}")
}

/// As text: totals, then lines.
pub fn cuda_difference_text(difference: &SnapshotDifference, options: &TextOptions) -> String {
    let mut page = Page::new(options.color, options.width);
    page.rule("A, B, and the change");
    for row in &difference.totals {
        changed(&mut page, row);
    }
    page.gap();
    if difference.lines.is_empty() {
        page.line(&[(Tone::Plain, "No line holds more or less in B than in A.")]);
    }
    for row in difference.lines.iter().take(2 * ROWS) {
        changed(&mut page, row);
    }
    more(&mut page, difference.line_count.saturating_sub(ROWS), "line");
    page.finish()
}

fn changed(page: &mut Page, row: &SnapshotRow) {
    let tone = if row.change > 0 { Tone::Bad } else { Tone::Plain };
    let figures = [Bytes(row.a).to_string(), Bytes(row.b).to_string(), Bytes::signed(row.change as f64)];
    table(page, &figures, &row.name, tone);
}

fn table(page: &mut Page, figures: &[String], name: &str, tone: Tone) {
    let figures = figures.iter().map(|figure| format!("{figure:>FIGURE$}  ")).collect::<Vec<_>>().concat();
    page.line(&[(tone, &figures), (tone, name)]);
}

fn more(page: &mut Page, all: usize, what: &str) {
    if let Some(more) = all.checked_sub(ROWS).filter(|more| *more > 0) {
        page.line(&[(
            Tone::Quiet,
            &format!("{:>FIGURE$}  and {}", "", count(more as u64, &format!("more {what}"))),
        )]);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use caulk_cuda::{Snapshot, advise};

    use super::*;

    const EARLY: &[u8] = include_bytes!("../../caulk_cuda/tests/data/early.pickle");
    const LATE: &[u8] = include_bytes!("../../caulk_cuda/tests/data/late.pickle");
    const FAILED: &[u8] = include_bytes!("../../caulk_cuda/tests/data/failed.pickle");

    fn report(bytes: &[u8]) -> CudaSnapshotReport {
        let snapshot = Snapshot::read(bytes).unwrap();
        let (devices, advice) = (Usage::of(&snapshot), advise(&snapshot));
        CudaSnapshotReport { file: "s.pickle".into(), settings: snapshot.settings, devices, advice }
    }

    #[test]
    fn a_snapshot_for_people() {
        insta::assert_snapshot!(cuda_snapshot_text(&report(LATE), &TextOptions::default()));
        insta::assert_snapshot!(cuda_snapshot_text(&report(FAILED), &TextOptions::default()));
    }

    #[test]
    fn two_snapshots_for_people() {
        let difference =
            SnapshotDifference::of(&Snapshot::read(EARLY).unwrap(), &Snapshot::read(LATE).unwrap());
        insta::assert_snapshot!(cuda_difference_text(&difference, &TextOptions::default()));
        assert!(cuda_difference_json(&difference).contains("\"change\": 18874368"));
    }

    #[test]
    fn a_snapshot_for_programs() {
        let document: serde_json::Value = serde_json::from_str(&cuda_snapshot_json(&report(FAILED))).unwrap();
        let advice = &document["cuda_snapshot"]["advice"][0];
        assert_eq!(advice["failed"], 90 << 20);
        assert_eq!(advice["remedies"][0]["avoids_failure"], true);
    }
}
