//! A run to record: a training that leaks, with a worker, told second by second.

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::{
    BackwardSite, Boundary, Bye, ContainerKind, ContainerLen, Contents, GpuLedger, GpuRefusal, HeapAllocated,
    HeapFrame, HeapLive, HeapRow, HeapStack, Hello, Holder, LoopSite, MadeBy, Message, Note, NoteCode,
    PathStep, Peak, Phase, StepKind, TraceHit, TraceOutcome, TraceState, Trait, TypeCount, Types, Unit,
};
use caulk_core::{
    AgentEvent, Counted, Limits, ProcessRecord, Recording, Role, RunInfo, Sample, SystemSample, Target,
};
use caulk_record::{WriteError, Writer};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MAIN: u32 = 4242;

/// What a supervisor hands over.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    Sample(Sample),
    System(SystemSample),
    Event(AgentEvent),
    Process(ProcessRecord),
}

impl Item {
    pub(crate) fn give(&self, writer: &mut Writer) {
        match self {
            Self::Sample(sample) => writer.sample(sample),
            Self::System(sample) => writer.system(sample),
            Self::Event(event) => writer.event(event),
            Self::Process(process) => writer.process(process),
        }
    }
}

pub(crate) fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(parent.path()).unwrap().join("runs").join("20261121-100000-train");
    (parent, path)
}

pub(crate) fn info() -> RunInfo {
    RunInfo {
        schema: caulk_record::SCHEMA,
        caulk: "0.1.0".into(),
        id: "20261121-100000-train".into(),
        target: Target { command: vec!["python".into(), "train.py".into()], ..Target::default() },
        started: "2026-11-21T10:00:00+01:00".into(),
        start_ns: 1000 * SECOND,
        limits: Limits { physical_bytes: 64 << 30, ..Limits::default() },
        root_pid: MAIN,
        ..RunInfo::default()
    }
}

pub(crate) fn event(second: u64, message: impl Into<Message>) -> Item {
    let time_ns = at(second) + 7;
    Item::Event(AgentEvent { time_ns, pid: MAIN, message: message.into() })
}
/// A look into a container with every field in use.
fn contents() -> Contents {
    Contents {
        id: 9,
        boundary: 3,
        sampled: 8,
        copied: 3,
        element_types: vec![("torch.Tensor".into(), 8), ("float".into(), 1)],
        bytes_per_element: 100,
        tensor_bytes_per_element: 80,
        saved_bytes_per_element: 70,
        viewed_bytes_per_element: 4,
        graph_nodes: 96,
        saved_bytes: 1 << 40,
        truncated: true,
        node_types: vec![("MulBackward0".into(), 5)],
        traits: vec![Trait::Graph, Trait::Tensor, Trait::Unknown("of-later".into())],
        tensors: 9,
        walked: 7,
        walked_nodes: 84,
        walked_storages: 20,
        walked_bytes: 1 << 41,
        made_by: vec![MadeBy { stack: 3, bytes: 1 << 40 }, MadeBy { stack: 0, bytes: 1 }],
        cuda_bytes_per_element: 60,
        saved_touched: 1 << 39,
        walked_touched: 1 << 38,
        opaque_nodes: 2,
        node_bytes: 5000,
        device_bytes_per_element: 50,
    }
}

fn at(second: u64) -> u64 {
    (1000 + second) * SECOND
}

/// One message of every kind, with every field filled or empty.
#[expect(clippy::too_many_lines, reason = "a list")]
pub(crate) fn one_of_each() -> Vec<Item> {
    let step = |kind, name: &str| PathStep { kind, name: name.into(), type_name: "T".into() };
    let place = || (String::from("/x/train.py"), 12, String::from("Trainer.validate"));
    let (file, line, function) = place();
    let messages: Vec<Message> = vec![
        Hello {
            python: "3.11.7".into(),
            argv: vec!["train.py".into(), "--ü=1".into()],
            rank: Some(3),
            ..Hello::default()
        }
        .into(),
        LoopSite {
            unit: Unit::Epoch,
            file: file.clone(),
            line,
            function: function.clone(),
            variable: "epoch".into(),
            source: "loop".into(),
        }
        .into(),
        GpuRefusal { asked_bytes: 5, settings: vec!["expandable_segments".into()], ..GpuRefusal::default() }
            .into(),
        GpuLedger { boundary: 3, uuid: "0f0f".into(), total_bytes: 1 << 36, ..GpuLedger::default() }.into(),
        boundary(0, 1).into(),
        Boundary {
            unit: Unit::Steps,
            phase: Phase::Test,
            index: u64::MAX,
            seq: u32::MAX,
            cuda_inactive_bytes: 5,
            arena_bytes: 6,
            segment_bytes: 7,
            mapped_bytes: 8,
            pinned_pool_bytes: 9,
            pinned_used_bytes: 10,
            cuda_retries: 6,
            ..Boundary::default()
        }
        .into(),
        Types { boundary: 1, rows: vec![count("a", 1), count("b", 2)] }.into(),
        Types { boundary: 2, rows: Vec::new() }.into(),
        Types { boundary: 3, rows: vec![count("", 0)] }.into(),
        ContainerLen {
            boundary: 3,
            id: 9,
            kind: ContainerKind::LruCache,
            type_name: "functools".into(),
            len: 8,
            shallow_bytes: 64,
        }
        .into(),
        Holder {
            id: 9,
            boundary: 3,
            path: vec![step(StepKind::Module, "__main__"), step(StepKind::Native, "")],
            expression: "trainer.metrics['iou']".into(),
            function: function.clone(),
            file: file.clone(),
            line,
            name: "metrics".into(),
            owner_type: "Trainer".into(),
            complete: true,
        }
        .into(),
        Holder::default().into(),
        contents().into(),
        Contents::default().into(),
        TraceHit {
            id: 9,
            file: file.clone(),
            line,
            function: function.clone(),
            user_line: 4,
            growth: 3,
            count: 2,
            ..TraceHit::default()
        }
        .into(),
        TraceState {
            ids: vec![9, 10],
            state: TraceOutcome::Hit,
            text: "x".into(),
            candidates: 3,
            armed_ns: 5,
        }
        .into(),
        BackwardSite {
            file: file.clone(),
            line,
            function: function.clone(),
            count: 10,
            retain_graph: true,
            ..BackwardSite::default()
        }
        .into(),
        Peak { boundary: 3, in_use_bytes: 9, baseline_bytes: 4, file, line, function, ids: vec![4, 5] }
            .into(),
        Note { code: NoteCode::TraceRefused, text: "a debugger is active".into() }.into(),
        Bye { steps: 100, epochs: 10, cost_ns: 1, longest_pause_ns: 2 }.into(),
    ];
    messages.into_iter().chain(heap_profile()).map(|message| event(1, message)).collect()
}

fn heap_profile() -> [Message; 4] {
    [
        HeapStack {
            id: 3,
            flags: 1,
            frames: vec![
                HeapFrame { file: "/job/net.py".into(), line: 7, function: "Net.forward".into() },
                HeapFrame { file: "/job/train.py".into(), line: 19, function: "<module>".into() },
            ],
        }
        .into(),
        HeapStack { id: 4, flags: 0, frames: Vec::new() }.into(),
        HeapLive {
            boundary: 3,
            interval: 524_288,
            bytes: 900,
            deviation: 30,
            rows: vec![
                HeapRow { id: 3, bytes: 600, blocks: 6, deviation: 20 },
                HeapRow { id: 4, bytes: 300, blocks: 1, deviation: 0 },
            ],
            malloc_bytes: 70_000,
            malloc_blocks: 8,
            arena_bytes: 1 << 20,
            allocated_bytes: 5000,
            allocated: vec![HeapAllocated { id: 4, bytes: 3000 }, HeapAllocated { id: 3, bytes: 1000 }],
        }
        .into(),
        HeapLive { boundary: 4, interval: 524_288, ..HeapLive::default() }.into(),
    ]
}

fn count(name: &str, count: u64) -> TypeCount {
    TypeCount { name: name.into(), count, bytes: count * 56 }
}

pub(crate) fn boundary(seq: u32, second: u64) -> Boundary {
    let n = u64::from(seq);
    Boundary {
        seq,
        time_ns: at(second),
        index: n,
        steps: n * 37,
        malloc_bytes: 300_000_000 + n * 17_301_504 + noise(n) % 40_960,
        malloc_free_bytes: noise(n) % 9_000_000,
        small_blocks: 2_000_000 + n * 120 + noise(n) % 977,
        small_bytes: 90_000_000 + n * 12_000 + noise(n) % 977,
        rss_bytes: 800_000_000 + n * 4096 * 4224,
        private_bytes: 20_000_000 + n * 4_194_304,
        inherited_bytes: 500_000_000_u64.saturating_sub(n * 4_194_304),
        census_objects: 400_000 + n * 9,
        cost_ns: 9_000_000 + noise(n) % 1_000_000,
        ..Boundary::default()
    }
}

/// The census of a boundary: types and containers, as many as an agent sends.
pub(crate) fn census(seq: u32, second: u64) -> Vec<Item> {
    let n = u64::from(seq);
    let row = |i: u64| TypeCount {
        name: format!("package_{}.module.ClassName{i}", i % 7),
        count: 1000 * i + n * (i % 3),
        bytes: 64_000 * i + noise(n * i) % 512,
    };
    let container = |id: u32| ContainerLen {
        boundary: seq,
        id,
        kind: ContainerKind::ALL[id as usize % 3],
        type_name: "builtins.list".into(),
        len: n * u64::from(id + 1),
        shallow_bytes: 56 + 8 * n * u64::from(id + 1),
    };
    let types = Types { boundary: seq, rows: (0..30).map(row).collect() };
    let mut items = vec![event(second, boundary(seq, second)), event(second, types)];
    items.extend((0..20).map(|id| event(second, container(id))));
    items
}

/// Looks from outside, four a second, of one process and the system.
pub(crate) fn looks(second: u64, pid: u32) -> impl Iterator<Item = Item> {
    (0..4).flat_map(move |quarter| {
        let n = second * 4 + quarter;
        let time_ns = at(second) + quarter * SECOND / 4 + noise(n) % 1_000_000;
        let sample = Sample {
            time_ns,
            pid,
            rss_bytes: 800_000_000 + noise(n) % 50_000 * 4096,
            shared_bytes: 90_000_000 + noise(n) % 10 * 4096,
            pss_bytes: (n % 20 == 3).then_some(700_000_000 + n * 4096),
            private_dirty_bytes: (n % 20 == 3).then_some(600_000_000 + n * 4096),
            swap_bytes: (n % 20 == 3).then_some(0),
            threads: n.is_multiple_of(4).then_some(12),
            fds: n.is_multiple_of(4).then_some(40),
            cpu_ns: Some(n * 240_000_000),
            counted: Some(Counted {
                malloc_bytes: 500_000_000 + noise(n) % 50_000 * 4096,
                blocks: 1_000_000 + noise(n) % 50_000,
                arena_bytes: 90_000_000,
            }),
            ..Sample::default()
        };
        let system = SystemSample {
            time_ns: time_ns + 1,
            cgroup_bytes: Some(900_000_000 + noise(n) % 60_000 * 4096),
            cgroup_cache_bytes: Some(40_000_000),
            available_bytes: 30 << 30,
            tree_rss_bytes: 900_000_000 + noise(n + 1) % 60_000 * 4096,
            processes: 3,
            shm_used_bytes: n.is_multiple_of(2).then_some(n * 4096),
        };
        [Item::Sample(sample), Item::System(system)]
    })
}

pub(crate) fn process(pid: u32, second: u64) -> ProcessRecord {
    let role = if pid == MAIN { Role::Main } else { Role::Worker };
    let name = "python".into();
    ProcessRecord { pid, parent: 1, role, index: 0, name, first_ns: at(0), last_ns: at(second), agent: true }
}

/// Everything that happens in so many seconds, second by second; a boundary with its census in every `per_boundary`.
pub(crate) fn seconds(seconds: u64, per_boundary: u64) -> Vec<Vec<Item>> {
    let second = |second| {
        let mut items: Vec<Item> = looks(second, MAIN).collect();
        items.push(Item::Process(process(MAIN, second)));
        if second % per_boundary == 0 {
            items.extend(census((second / per_boundary) as u32, second));
        }
        items
    };
    (0..seconds).map(second).collect()
}

/// Records the seconds as a supervisor does.
pub(crate) fn record(folder: &Utf8Path, story: &[Vec<Item>]) -> Result<Writer, WriteError> {
    let mut writer = Writer::create(folder, &info())?;
    for second in story {
        for item in second {
            item.give(&mut writer);
        }
        writer.flush()?;
    }
    Ok(writer)
}

pub(crate) fn events(story: &[Vec<Item>]) -> Vec<AgentEvent> {
    let event = |item: &Item| match item {
        Item::Event(event) => Some(event.clone()),
        _ => None,
    };
    story.iter().flatten().filter_map(event).collect()
}

pub(crate) fn samples(story: &[Vec<Item>]) -> Vec<Sample> {
    let sample = |item: &Item| match item {
        Item::Sample(sample) => Some(*sample),
        _ => None,
    };
    story.iter().flatten().filter_map(sample).collect()
}

/// The recording is this story: all events, the last ten minutes of samples, and before them only samples of it, at
/// least one in four seconds, with every peak.
pub(crate) fn assert_is(recording: &Recording, story: &[Vec<Item>]) {
    let given = events(story);
    assert!(recording.events == given, "{} of {} events", recording.events.len(), given.len());
    let given = samples(story);
    let Some(last) = given.last() else {
        return assert!(recording.samples.is_empty());
    };
    let recent = |sample: &&Sample| sample.time_ns + caulk_record::RING_NS >= last.time_ns;
    assert!(
        given.iter().filter(recent).eq(recording.samples.iter().filter(recent)),
        "the last ten minutes are whole"
    );
    assert!(recording.samples.iter().all(|sample| {
        given.binary_search_by_key(&sample.time_ns, |s| s.time_ns).is_ok_and(|at| given[at] == *sample)
    }));
    assert!(recording.samples.windows(2).all(|two| two[1].time_ns - two[0].time_ns <= 4 * SECOND));
    let peak = |samples: &[Sample]| samples.iter().map(|sample| sample.rss_bytes).max();
    assert_eq!(peak(&recording.samples), peak(&given));
}

fn noise(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}
