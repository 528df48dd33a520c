//! What holds the memory of a device: lines, pools, gaps and the largest blocks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::parts::{HeldBlock, HeldState, Segment, SnapshotFrame};
use crate::snapshot::Snapshot;

/// Lines and blocks that are kept.
const MOST: usize = 20;
/// Parts of paths of code that is not the user's: packages, the standard library, and code without a file.
const LIBRARIES: [&str; 5] = ["/site-packages/", "/dist-packages/", "/lib/python3", "<frozen", "<string>"];

/// Live bytes of a source line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineBytes {
    /// File of the user's innermost frame, else of the innermost; empty if no stack was recorded.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Function.
    pub function: String,
    /// Bytes, after rounding.
    pub bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
}

impl LineBytes {
    /// `train.py:12 step`.
    pub(crate) fn name(&self) -> String {
        if self.file.is_empty() {
            return "no stack recorded".into();
        }
        format!("{}:{} {}", self.file, self.line, self.function)
    }
}

/// Segments of one pool. All sizes are bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PoolUse {
    /// `large`, `small` or `private` (CUDA graphs).
    pub pool: &'static str,
    /// Number of segments.
    pub segments: u64,
    /// Taken from the driver.
    pub reserved: u64,
    /// In use by the program.
    pub live: u64,
    /// Freed by the program; work of another stream may still use it.
    pub pending: u64,
    /// In segments without a live block: `torch.cuda.empty_cache` gives it back.
    pub free: u64,
    /// Free, between live blocks of a segment.
    pub gaps: u64,
    /// The largest free block, of both kinds.
    pub largest_free: u64,
}

/// A large block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SizedBlock {
    /// Bytes.
    pub bytes: u64,
    /// Its line, as in [`LineBytes`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Function.
    pub function: String,
}

/// Use of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Number of the device.
    pub device: u32,
    /// All pools together.
    pub total: PoolUse,
    /// Each pool that has segments.
    pub pools: Vec<PoolUse>,
    /// Lines with the most live bytes.
    pub lines: Vec<LineBytes>,
    /// Number of all lines.
    pub line_count: usize,
    /// The largest live blocks.
    pub blocks: Vec<SizedBlock>,
}

impl Usage {
    /// Use of each device that has segments.
    pub fn of(snapshot: &Snapshot) -> Vec<Self> {
        let mut devices: BTreeMap<u32, Vec<&Segment>> = BTreeMap::new();
        for segment in &snapshot.segments {
            devices.entry(segment.device).or_default().push(segment);
        }
        devices.into_iter().map(|(device, segments)| of_device(snapshot, device, &segments)).collect()
    }

    /// Every line with its live bytes, most first.
    pub(crate) fn all_lines(snapshot: &Snapshot) -> Vec<LineBytes> {
        lines(snapshot, &snapshot.segments.iter().collect::<Vec<_>>())
    }
}

fn of_device(snapshot: &Snapshot, device: u32, segments: &[&Segment]) -> Usage {
    let mut pools: BTreeMap<&'static str, PoolUse> = BTreeMap::new();
    for segment in segments {
        let pool = if segment.private {
            "private"
        } else if segment.large {
            "large"
        } else {
            "small"
        };
        add(pools.entry(pool).or_insert_with(|| PoolUse { pool, ..PoolUse::default() }), segment);
    }
    let mut total = PoolUse { pool: "all", ..PoolUse::default() };
    for segment in segments {
        add(&mut total, segment);
    }
    let lines = lines(snapshot, segments);
    Usage {
        device,
        total,
        pools: pools.into_values().collect(),
        line_count: lines.len(),
        lines: lines.into_iter().take(MOST).collect(),
        blocks: largest(snapshot, segments),
    }
}

fn add(pool: &mut PoolUse, segment: &Segment) {
    let of = |state| {
        let blocks = segment.blocks.iter().filter(move |block| block.state == state);
        blocks.map(|block| block.size)
    };
    let free: u64 = of(HeldState::Free).sum();
    let (live, pending): (u64, u64) = (of(HeldState::Live).sum(), of(HeldState::Pending).sum());
    pool.segments += 1;
    pool.reserved += segment.size;
    pool.live += live;
    pool.pending += pending;
    if live + pending == 0 {
        pool.free += free;
    } else {
        pool.gaps += free;
    }
    pool.largest_free = pool.largest_free.max(of(HeldState::Free).max().unwrap_or(0));
}

fn live<'a>(segments: &[&'a Segment]) -> impl Iterator<Item = &'a HeldBlock> {
    let blocks: Vec<&'a HeldBlock> = segments.iter().flat_map(|segment| &segment.blocks).collect();
    blocks.into_iter().filter(|block| block.state == HeldState::Live)
}

fn lines(snapshot: &Snapshot, segments: &[&Segment]) -> Vec<LineBytes> {
    // By stack first: there are far fewer stacks than blocks.
    let mut stacks: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for block in live(segments) {
        let sum = stacks.entry(block.stack).or_default();
        *sum = (sum.0 + block.size, sum.1 + 1);
    }
    let mut lines: BTreeMap<(&str, u32, &str), (u64, u64)> = BTreeMap::new();
    for (stack, (bytes, blocks)) in stacks {
        let frame = place(snapshot, stack);
        let sum = lines.entry((frame.file, frame.line, frame.function)).or_default();
        *sum = (sum.0 + bytes, sum.1 + blocks);
    }
    let line = |((file, line, function), (bytes, blocks)): ((&str, u32, &str), (u64, u64))| LineBytes {
        file: file.into(),
        line,
        function: function.into(),
        bytes,
        blocks,
    };
    let mut lines: Vec<LineBytes> = lines.into_iter().map(line).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}

fn largest(snapshot: &Snapshot, segments: &[&Segment]) -> Vec<SizedBlock> {
    let mut blocks: Vec<&HeldBlock> = live(segments).collect();
    blocks.sort_by_key(|block| (std::cmp::Reverse(block.size), block.address));
    let block = |block: &HeldBlock| {
        let SnapshotFrame { file, line, function } = place(snapshot, block.stack);
        SizedBlock { bytes: block.size, file: file.into(), line, function: function.into() }
    };
    blocks.into_iter().take(MOST).map(block).collect()
}

/// The user's innermost frame of a stack, else the innermost of Python, else the innermost.
fn place(snapshot: &Snapshot, stack: u32) -> SnapshotFrame<'_> {
    let is_python = |frame: &SnapshotFrame<'_>| frame.line > 0 && !frame.file.starts_with("??");
    let is_user = |frame: &SnapshotFrame<'_>| {
        is_python(frame)
            && !LIBRARIES.iter().any(|part| frame.file.contains(part))
            && [".py", ">"].iter().any(|end| frame.file.ends_with(end))
    };
    let mut frames = snapshot.frames(stack);
    let user = snapshot.frames(stack).find(is_user).or_else(|| snapshot.frames(stack).find(is_python));
    user.or_else(|| frames.next()).unwrap_or(SnapshotFrame { file: "", line: 0, function: "" })
}
