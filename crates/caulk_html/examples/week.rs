//! The page of a made-up run: a week, 16 processes, a look at each every four seconds, long names everywhere.
//! `week FILE` writes it, prints its size and how long it took, and fails if either is too much.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark needs a clock and writes a file; the engine does neither"
)]

use std::time::{Duration, Instant};

use caulk_core::wire::{Boundary, Phase, Unit};
use caulk_core::{
    AgentEvent, Counted, Limit, LimitKind, ProcessRecord, ProcessRef, Recording, Role, RunInfo, Sample,
    Sampled, Series, StackFrame, StackUse, SystemSample, VerdictUnit,
};
use caulk_html::{
    Excerpt, FindingCard, Forecast, Hunk, Level, LineRow, MOST_BYTES, Mood, PageAnswer, PageInput, Row,
    SourceLine, VerdictRow,
};

const SECONDS: u64 = 7 * 24 * 3600;
const PROCESSES: u32 = 16;
const EPOCHS: u64 = 2000;
const MOST: Duration = Duration::from_secs(2);
const MB: u64 = 1 << 20;

/// Numbers that look as if they were measured, the same every time.
fn noise(seed: u64) -> u64 {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40
}

fn recording() -> Recording {
    let mut recording = Recording {
        info: RunInfo { end_ns: Some(SECONDS * 1_000_000_000), complete: true, ..RunInfo::default() },
        ..Recording::default()
    };
    recording.info.limits.physical_bytes = 256 * 1024 * MB;
    for pid in 1..=PROCESSES {
        let (role, index) = if pid == 1 { (Role::Main, 0) } else { (Role::Worker, pid - 2) };
        let name = "pt_data_worker".into();
        let last_ns = SECONDS * 1_000_000_000;
        recording.processes.push(ProcessRecord {
            pid,
            role,
            index,
            name,
            last_ns,
            agent: true,
            ..ProcessRecord::default()
        });
    }
    for second in (0..SECONDS).step_by(4) {
        let time_ns = second * 1_000_000_000;
        let mut tree = 0;
        for pid in 1..=PROCESSES {
            let base = if pid == 1 { 8000 * MB + second * 50_000 } else { 900 * MB };
            let rss_bytes = base + noise(second * 31 + u64::from(pid)) * 8;
            let counted = Counted { malloc_bytes: rss_bytes / 2, blocks: 1, arena_bytes: MB };
            tree += rss_bytes;
            recording.samples.push(Sample {
                time_ns,
                pid,
                rss_bytes,
                counted: Some(counted),
                ..Sample::default()
            });
        }
        let available_bytes = recording.info.limits.physical_bytes - tree;
        let system = SystemSample {
            time_ns,
            available_bytes,
            tree_rss_bytes: tree,
            processes: PROCESSES,
            ..SystemSample::default()
        };
        recording.system.push(system);
    }
    for index in 0..EPOCHS {
        for (phase, part) in [(Phase::Train, 80), (Phase::Validation, 100)] {
            let time_ns = (index * 100 + part) * SECONDS * 10_000_000 / EPOCHS;
            let boundary = Boundary {
                time_ns,
                unit: Unit::Epoch,
                index,
                phase,
                rss_bytes: 8000 * MB + time_ns / 20_000,
                ..Boundary::default()
            };
            recording.events.push(AgentEvent { time_ns, pid: 1, message: boundary.into() });
        }
    }
    recording
}

fn stacks() -> Vec<StackUse> {
    let frame = |stack: u64, depth: u64| StackFrame {
        file: format!(
            "/home/somebody/projects/a_long_name_of_a_project/package_{}/module_{}.py",
            stack % 7,
            depth
        ),
        line: (noise(stack / (depth + 1)) % 900) as u32,
        function: format!("SomeRatherLongClassName.method_number_{}", noise(stack / (depth + 1)) % 40),
        own: depth < 6,
    };
    let stack = |number: u64| StackUse {
        process: ProcessRef { role: "main".into(), index: 0, count: 1 },
        frames: (0..30).map(|depth| frame(number, depth)).collect(),
        rest: false,
        truncated: false,
        borrowed: false,
        live: Sampled { bytes: (noise(number) * 40) as f64, deviation: 1e5 },
        growth: (noise(number) % 1000) as f64,
        allocated: 0.0,
        unit: VerdictUnit::Epoch,
    };
    (0..4000).map(stack).collect()
}

fn finding(number: u32) -> FindingCard {
    let line = |number| SourceLine {
        number,
        text: "    self.history.append(some_function_call(with_arguments, and_more))".into(),
        marked: number % 3 == 1,
    };
    FindingCard {
        severity: "error",
        confidence: "proved",
        class: "unbounded-history".into(),
        message: format!("`self.history_{number}` grows by 4 elements per epoch, +19.8 MB per epoch"),
        excerpts: vec![Excerpt {
            place: format!("package/train.py:{number} in Trainer.validate"),
            role: "grows here".into(),
            lines: (number..number + 6).map(line).collect(),
        }],
        holder: format!("trainer.history_{number}"),
        path: ["function main() local trainer", "attribute history", "list"].map(str::to_owned).to_vec(),
        elements: "+4 per epoch, 19.8 MB".into(),
        graph: "944 nodes, 134 MB".into(),
        rows: vec![Row::new("grows", "19.8 MB per epoch; 4 elements each time, 28 at the last look")],
        evidence: vec![
            Row::new("armed trace", "seen to grow by 4 elements at this line in 28 of 28 steps");
            6
        ],
        fix: "Store the value without its graph.".into(),
        hunks: vec![Hunk {
            file: "package/train.py".into(),
            line: number,
            removed: vec!["self.history.append(iou)".into()],
            added: vec!["self.history.append(iou.detach())".into()],
        }],
        ..FindingCard::default()
    }
}

fn input<'a>(recording: &'a Recording, stacks: &'a [StackUse]) -> PageInput<'a> {
    let main = ProcessRef { role: "main".into(), index: 0, count: 1 };
    let line = |number: u32| LineRow {
        file: format!("package/a_rather_long_folder_name/module_{}.py", number % 40),
        line: number,
        function: "SomeRatherLongClassName.some_method".into(),
        text: "        features = self.layers(torch.cat([batch.images, batch.masks], dim=1)).flatten(1)"
            .into(),
        live: Sampled { bytes: f64::from(4000 - number) * 1e5, deviation: 1e5 },
        ..LineRow::default()
    };
    let verdict = VerdictRow {
        process: "worker 3".into(),
        series: "resident memory".into(),
        state: "flat".into(),
        rate: "0 B per epoch".into(),
        ..VerdictRow::default()
    };
    PageInput {
        title: "20261127-101500-train".into(),
        command: "python train.py --config configs/a_long_name.yaml".into(),
        banners: Vec::new(),
        answer: PageAnswer {
            mood: Mood::Bad,
            brief: "grows 15.1 MB per epoch".into(),
            sentence: "Memory grows by 15.1 MB per epoch.".into(),
            ..PageAnswer::default()
        },
        figures: vec![Row::new("Run time", "7 days")],
        about: Vec::new(),
        recording,
        gpus: &[],
        level: Some(Level {
            process: main,
            series: Series::InUse,
            last: 19e9,
            slope: 25_000.0,
            interval: Some([24_000.0, 26_000.0]),
            text: "15.1 MB per epoch".into(),
        }),
        forecast: Some(Forecast {
            limit: Limit { kind: LimitKind::Physical, bytes: 256 * 1024 * MB },
            name: "The end of this machine's memory".into(),
            until_s: [4e6, 5e6],
            text: "It reaches the end of this machine's memory in 46 to 58 days.".into(),
        }),
        verdicts: vec![verdict; 6 * PROCESSES as usize],
        findings: (0..300).map(finding).collect(),
        lines: (0..4000).map(line).collect(),
        per: ("epoch", 1.0),
        changes: &[],
        stacks,
        notes: vec![
            "212 of 300 processes are counted only in totals. Run the agent in them to see lines."
                .into();
            200
        ],
        lives: Vec::new(),
    }
}

#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (recording, stacks) = (recording(), stacks());
    let input = input(&recording, &stacks);
    let began = Instant::now();
    let page = caulk_html::html(&input);
    let took = began.elapsed();
    println!(
        "{} samples: {} bytes, made in {:.2} s",
        recording.samples.len(),
        page.len(),
        took.as_secs_f64()
    );
    if let Some(file) = std::env::args_os().nth(1) {
        std::fs::write(file, &page)?;
    }
    if page.len() > MOST_BYTES || took > MOST {
        return Err(format!("at most {MOST_BYTES} bytes in {} s", MOST.as_secs()).into());
    }
    Ok(())
}
