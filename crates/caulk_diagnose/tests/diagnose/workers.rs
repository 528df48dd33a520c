//! Workers: what they keep themselves, and what they copy by reading it.

use caulk_core::wire::{
    ContainerKind, ContainerLen, Contents, HeapFrame, HeapLive, HeapRow, HeapStack, Hello, Message, Trait,
};
use caulk_core::{
    AgentEvent, Confidence, LeakClass, ProcessRecord, Recording, Role, Series, Severity, State,
};
use caulk_diagnose::Diagnosis;

use super::run::{FILE, MB, Run, attribute, elements, facts, global, message, rising};

const SOURCE: &str = "\
class Crops:
    def __init__(self, rows):
        self.crops = {}
        self.rows = [row(number) for number in range(rows)]

    def __getitem__(self, index):
        self.crops[index] = cut(index)
        return self.crops[index]
";

/// The one process becomes a worker that shares less and less, by so much at each boundary.
fn worker(copies: impl Fn(u64) -> u64) -> impl FnOnce(&mut Recording) {
    move |recording| {
        recording.processes[0].role = Role::Worker;
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.of = 1;
                boundary.inherited_bytes = 500 * MB - copies(boundary.index);
                boundary.private_bytes = 20 * MB + copies(boundary.index);
            }
        }
    }
}

fn indexed(copies: impl Fn(u64) -> u64) -> Run {
    let rows = ContainerLen {
        boundary: 4,
        id: 1,
        kind: ContainerKind::List,
        len: 300_000,
        ..ContainerLen::default()
    };
    Run::of(SOURCE)
        .epochs([400 * MB; 9])
        .say(rows)
        .say(attribute(1, "data", "Crops", "rows"))
        .say(Contents { id: 1, boundary: 4, sampled: 256, copied: 40, ..Contents::default() })
        .edit(worker(copies))
}

#[test]
fn what_a_worker_keeps_has_a_class_of_its_own() {
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 8 * MB, 9)).grown(
        ContainerKind::Dict,
        attribute(1, "data", "Crops", "crops"),
        elements(MB, &[Trait::Tensor]),
        rising(8, 8, 9),
    );
    let finding = run.traced(1, "self.crops[index] =", "Crops.__getitem__").edit(worker(|_| 0)).finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::WorkerMemoryGrows, Severity::Error));
    assert_eq!((finding.sites[0].line, finding.confidence), (7, Confidence::Proved));
}

#[test]
fn what_workers_copy_is_named_where_it_is_made() {
    let diagnosis = indexed(|epoch| 4 * MB * epoch).diagnose();
    let [finding] = diagnosis.findings.as_slice() else { panic!("{diagnosis:#?}") };
    assert_eq!((finding.class, finding.severity), (LeakClass::WorkerCopyOnWrite, Severity::Warning));
    assert_eq!((finding.sites[0].line, finding.container.as_str()), (4, "self.rows"));
    let grows = |series| {
        diagnosis.verdicts.iter().any(|verdict| verdict.series == series && verdict.state == State::Grows)
    };
    assert!(grows(Series::Pss) && !grows(Series::InUse));
}

#[test]
fn two_moments_tell_what_is_private() {
    let run = |known: fn(u64) -> bool| {
        indexed(|epoch| 4 * MB * epoch).edit(|recording| {
            for event in &mut recording.events {
                if let Message::Boundary(boundary) = &mut event.message {
                    boundary.private_bytes *= u64::from(known(boundary.index));
                }
            }
        })
    };
    let private =
        |known, from, to| run(known).compare(Some(from), Some(to)).expect("they are there")[0].private;
    assert_eq!(private(|_| true, 2, 6), [Some(24 * MB), Some(40 * MB)]);
    // The last look by then; where it is the same, nothing is known of the later moment.
    assert_eq!(private(|epoch| epoch < 4, 2, 6), [Some(24 * MB), Some(32 * MB)]);
    assert_eq!(private(|epoch| epoch < 2, 2, 6), [Some(24 * MB), None]);
    assert_eq!(private(|epoch| epoch > 2, 2, 6), [None, Some(40 * MB)]);
}

#[test]
fn copying_that_ends_is_worth_a_word_at_most_and_a_jump_none() {
    let finding = indexed(|epoch: u64| 20 * MB * epoch.min(3)).finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::WorkerCopyOnWrite, Severity::Info));
    assert!(message(&finding).contains("60.0 MB by now") && finding.growth.is_none(), "{finding:?}");
    assert!(facts(&finding)[0].1.contains("60.0 MB of what it shared have turned its own, over 8 epochs"));
    for copies in [|epoch: u64| 5 * MB * epoch.min(3), |epoch: u64| if epoch < 5 { 0 } else { 80 * MB }] {
        assert_eq!(indexed(copies).diagnose().findings, []);
    }
}

#[test]
fn a_worker_that_copies_no_more_does_not_speak_for_one_that_does() {
    let run = indexed(|epoch: u64| 20 * MB * epoch.min(3)).edit(|recording| {
        let first = recording.processes[0].clone();
        recording.processes.push(ProcessRecord { pid: 8, index: 1, ..first });
        let second = recording.events.iter().filter_map(|event| match &event.message {
            Message::Boundary(boundary) => {
                let mut boundary = boundary.clone();
                boundary.inherited_bytes = 500 * MB - 10 * MB * boundary.index;
                boundary.private_bytes = 20 * MB + 10 * MB * boundary.index;
                Some(AgentEvent { pid: 8, message: boundary.into(), ..event.clone() })
            }
            _ => None,
        });
        let second: Vec<AgentEvent> = second.collect();
        recording.events.extend(second);
    });
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::WorkerCopyOnWrite, Severity::Warning));
    assert_eq!((finding.process.count, finding.container.as_str()), (2, "self.rows"));
    assert!(message(&finding).contains("+20.0 MB per epoch"), "{}", message(&finding));
}

#[test]
fn pages_that_the_worker_fills_itself_are_no_copies() {
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 8 * MB, 9)).edit(worker(|epoch| 8 * MB * epoch));
    let copied =
        run.diagnose().findings.into_iter().any(|finding| finding.class == LeakClass::WorkerCopyOnWrite);
    assert!(!copied);
}

const POOL: &str = "\
KEPT = []


def prepare(index):
    batch = make(index)
    KEPT.append(batch)
    return batch
";

/// The second process of a pool: 8 MB more per epoch, allocated by the line that makes a batch.
fn second(recording: &mut Recording) {
    let first = recording.processes[0].clone();
    recording.processes.push(ProcessRecord { pid: 8, index: 1, ..first });
    let boundaries: Vec<AgentEvent> = recording
        .events
        .iter()
        .filter(|event| matches!(event.message, Message::Boundary(_)))
        .cloned()
        .collect();
    let frame = HeapFrame { file: FILE.into(), line: 5, function: "prepare".into() };
    let stack = HeapStack { id: 0, flags: 0, frames: vec![frame] };
    recording.events.push(AgentEvent { time_ns: 0, pid: 8, message: stack.into() });
    for event in boundaries {
        let Message::Boundary(mut boundary) = event.message else { continue };
        let bytes = 8 * MB * boundary.index;
        boundary.malloc_bytes = 400 * MB + bytes;
        boundary.rss_bytes = 700 * MB + bytes;
        let row = HeapRow { id: 0, bytes, blocks: bytes / MB, deviation: MB / 10 };
        let live =
            HeapLive { boundary: boundary.seq, interval: 524_288, rows: vec![row], ..HeapLive::default() };
        for message in [boundary.into(), live.into()] {
            recording.events.push(AgentEvent { time_ns: 0, pid: 8, message });
        }
    }
}

#[test]
fn what_slowed_down_in_the_process_that_is_looked_into_explains_its_siblings() {
    let lengths = [1, 9, 14, 16, 17, 17, 17, 17, 17];
    let pool = || Run::of(POOL).epochs(lengths.map(|length| 400 * MB + length * MB)).edit(worker(|_| 0));
    let alone = pool().edit(second).diagnose();
    let classes = |diagnosis: &Diagnosis| -> Vec<LeakClass> {
        diagnosis.findings.iter().map(|finding| finding.class).collect()
    };
    assert_eq!(classes(&alone), [LeakClass::NativeGrowth]);
    let kept = elements(MB, &[Trait::Array]);
    let run = pool().grown(ContainerKind::List, global(1, "KEPT"), kept, lengths);
    // Of what no line was seen to grow, nobody knows whether it is the same.
    assert_eq!(classes(&run.edit(second).diagnose()), [LeakClass::NativeGrowth]);
    let kept = elements(MB, &[Trait::Array]);
    let run = pool().grown(ContainerKind::List, global(1, "KEPT"), kept, lengths);
    let finding = run.traced(1, "KEPT.append", "prepare").edit(second).finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::WorkerMemoryGrows, Severity::Error));
    assert_eq!((finding.sites[0].line, finding.process.index), (6, 1));
    assert_eq!(finding.confidence, Confidence::Likely);
    assert!(message(&finding).starts_with("`KEPT` grows, +8.00 MB per epoch"), "{}", message(&finding));
}

#[test]
fn what_a_pool_holds_together_speaks_for_each_of_its_processes() {
    // KB, measured: the one that is looked into gets fewer tasks, the other more, 12 in all.
    let own = [206_793, 207_452, 208_637, 209_425, 210_233, 210_668, 210_956, 211_364, 211_894, 212_292];
    let other = [206_923, 207_320, 207_716, 208_766, 209_160, 210_342, 211_786, 212_967, 214_149, 215_067];
    let lengths = own.map(|kilobytes| (kilobytes - 206_000) / 131);
    let kept = elements(131_000, &[Trait::Array]);
    let run = Run::of(POOL).epochs(own.map(|kilobytes| kilobytes * 1000)).edit(worker(|_| 0));
    let run =
        run.grown(ContainerKind::List, global(1, "KEPT"), kept, lengths).traced(1, "KEPT.append", "prepare");
    let states = |diagnosis: &Diagnosis| -> Vec<State> {
        let in_use = diagnosis.verdicts.iter().filter(|verdict| verdict.series == Series::InUse);
        in_use.map(|verdict| verdict.state).collect()
    };
    assert_eq!(states(&run.diagnose()), [State::Undecided]);
    let together = run.edit(second).edit(|recording| {
        for event in recording.events.iter_mut().filter(|event| event.pid == 8) {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.malloc_bytes = other[boundary.index as usize] * 1000;
            }
        }
        recording.events.retain(|event| !matches!(event.message, Message::HeapLive(_)));
    });
    let diagnosis = together.diagnose();
    assert_eq!(states(&diagnosis), [State::Grows; 2]);
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.class, finding.sites[0].line), (LeakClass::WorkerMemoryGrows, 6));
    assert!(finding.severity > Severity::Info);
}

#[test]
fn what_a_process_followed_before_it_trained_itself_is_no_part_of_its_growth() {
    const FOLLOWED: usize = 12;
    let level = [400 * MB; FOLLOWED].into_iter();
    let follows = |recording: &mut Recording| {
        let boundaries = recording.events.iter_mut().filter_map(|event| match &mut event.message {
            Message::Boundary(boundary) => Some(boundary),
            _ => None,
        });
        for (at, boundary) in boundaries.enumerate() {
            if at < FOLLOWED {
                (boundary.of, boundary.steps) = (1, 0);
            } else {
                boundary.index = (at - FOLLOWED) as u64;
            }
        }
    };
    let run = Run::of(SOURCE).epochs(level.chain(rising(400 * MB, 10 * MB, 8))).edit(follows);
    let diagnosis = run.diagnose();
    let in_use =
        diagnosis.verdicts.iter().find(|verdict| verdict.series == Series::InUse).expect("it is judged");
    assert_eq!(in_use.state, State::Grows, "{diagnosis:#?}");
}

const STAGES: &str = "\
class Curriculum:
    def __init__(self):
        self.stages = []

    def next_stage(self):
        self.stages.append(DataLoader(numbers, num_workers=1, persistent_workers=True))
";

#[test]
fn workers_live_as_long_as_the_loaders_that_a_list_keeps() {
    let second = 1_000_000_000;
    let more_workers = |recording: &mut Recording| {
        for epoch in 0..9 {
            let (pid, first_ns) = (100 + epoch, (u64::from(epoch) * 10 + 5) * second);
            let last_ns = 90 * second;
            let record = ProcessRecord { pid, parent: 7, first_ns, last_ns, ..ProcessRecord::default() };
            recording.processes.push(record);
            let hello = Hello { worker: Some(0), ..Hello::default() };
            recording.events.push(AgentEvent { time_ns: first_ns, pid, message: hello.into() });
        }
    };
    let advice = |lengths: [u64; 9]| {
        let loaders = Contents {
            element_types: vec![("torch.utils.data.dataloader.DataLoader".into(), 8)],
            ..elements(37_000, &[])
        };
        let list = attribute(1, "curriculum", "Curriculum", "stages");
        let run = Run::of(STAGES).epochs([400 * MB; 9]).grown(ContainerKind::List, list, loaders, lengths);
        let findings = run.edit(more_workers).diagnose().findings;
        let found = findings.into_iter().find(|finding| finding.class == LeakClass::LoaderPerEpoch);
        found.as_ref().and_then(caulk_report::fix).expect("workers become more").description
    };
    let kept = advice([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(kept.contains("stages` keeps every loader"), "{kept}");
    let others = advice([2; 9]);
    assert!(others.starts_with("make the loader once"), "{others}");
}
