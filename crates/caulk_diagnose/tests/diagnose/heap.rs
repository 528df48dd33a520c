//! The heap profile by line and by stack, and two moments of it compared.

use caulk_core::wire::{
    AT_END, Boundary, ContainerKind, ContainerLen, Contents, HeapAllocated, HeapFrame, HeapLive, HeapRow,
    HeapStack, Holder, MadeBy, Message, Trait, TypeCount, Types, Unit,
};
use caulk_core::{AgentEvent, LineUse, Moment, ProcessRecord, Recording, Role, VerdictUnit};
use caulk_diagnose::CompareError;

use crate::run::{FILE, MB, Run, elements, facts, global, rising};

const PROGRAM: &str = "a()\nb()\nc()\nd()\n";

/// Eight epochs; of each stack, one per line from 1, what it holds at each boundary and the deviation of it.
fn profile(stacks: &[(&dyn Fn(u64) -> u64, u64)]) -> Run {
    let mut run = Run::of(PROGRAM).epochs(rising(400 * MB, 10 * MB, 8));
    for id in 0..stacks.len() as u32 {
        let frame = |file: &str, line| HeapFrame { file: file.into(), line, function: format!("f{line}") };
        let frames = vec![frame("/env/lib/python3.11/site-packages/torch/nn.py", 9), frame(FILE, id + 1)];
        run = run.say(HeapStack { id, flags: 0, frames });
    }
    for boundary in 0..8 {
        let row = |(id, (bytes, deviation)): (u32, &(&dyn Fn(u64) -> u64, u64))| HeapRow {
            id,
            bytes: bytes(u64::from(boundary)),
            blocks: 10,
            deviation: *deviation,
        };
        let rows: Vec<HeapRow> = (0..).zip(stacks).map(row).collect();
        let bytes = rows.iter().map(|row| row.bytes).sum::<u64>() + MB;
        run = run.say(HeapLive { boundary, interval: 524_288, bytes, rows, ..HeapLive::default() });
    }
    run
}

fn line(lines: &[LineUse], number: u32) -> &LineUse {
    lines.iter().find(|line| line.line == number).expect("the line holds memory")
}

#[test]
fn lines_that_sampling_cannot_tell_apart_share_a_place() {
    let run =
        profile(&[(&|_| 100 * MB, 0), (&|_| 50 * MB, 4 * MB), (&|_| 45 * MB, 4 * MB), (&|_| 20 * MB, MB)]);
    let lines = run.lines();
    let places: Vec<(u32, u32)> = lines.iter().map(|line| (line.line, line.rank)).collect();
    assert_eq!(places, [(1, 1), (2, 2), (3, 2), (4, 4)]);
}

#[test]
fn growth_is_no_surer_than_what_was_sampled() {
    let lines = profile(&[(&|epoch| (40 + 10 * epoch) * MB, 14 * MB), (&|_| 50 * MB, 0)]).lines();
    let grown = line(&lines, 1).growth.expect("it grows");
    assert!((grown.bytes / (10 * MB) as f64 - 1.0).abs() < 0.01, "{grown:?}");
    // An even rise by itself would leave no doubt; seven epochs of samples do.
    assert!((grown.deviation / (2 * MB) as f64 - 1.0).abs() < 0.01, "{grown:?}");
    assert_eq!(line(&lines, 2).growth, None);
}

#[test]
fn the_peak_is_what_was_most_at_a_boundary() {
    let lines = profile(&[(&|epoch| if epoch == 3 { 80 * MB } else { 30 * MB }, MB)]).lines();
    assert_eq!((lines[0].live.bytes, lines[0].peak.bytes), (30.0 * MB as f64, 80.0 * MB as f64));
}

#[test]
fn stacks_are_told_from_the_outermost_frame_on_with_what_is_left_over() {
    let stacks = profile(&[(&|epoch| (1 + epoch) * MB, 0), (&|_| 7 * MB, 0)]).stacks();
    let functions: Vec<&str> = stacks[0].frames.iter().map(|frame| frame.function.as_str()).collect();
    assert_eq!(functions, ["f1", "f9"]);
    assert_eq!(stacks[0].frames.iter().map(|frame| frame.own).collect::<Vec<_>>(), [true, false]);
    assert!((stacks[0].growth - MB as f64).abs() < 1.0 && stacks[1].growth == 0.0, "{stacks:?}");
    assert!(stacks[2].rest && stacks[2].live.bytes as u64 == MB, "{stacks:?}");
}

#[test]
fn stacks_have_what_they_allocated_though_they_hold_nothing() {
    let run = profile(&[(&|_| 7 * MB, 0), (&|_| 0, 0)]).edit(|recording| {
        for event in &mut recording.events {
            if let Message::HeapLive(heap) = &mut event.message {
                let times = u64::from(heap.boundary) + 1;
                heap.allocated = vec![HeapAllocated { id: 1, bytes: times * 10 * MB }];
                heap.allocated_bytes = heap.bytes + times * 10 * MB;
            }
        }
    });
    let stacks = run.stacks();
    let told: Vec<(u64, u64)> =
        stacks.iter().map(|stack| (stack.live.bytes as u64 / MB, stack.allocated as u64 / MB)).collect();
    assert_eq!(told, [(7, 7), (0, 80), (1, 1)]);
    assert_eq!(run.lines().iter().map(|line| line.line).collect::<Vec<_>>(), [1]);
}

fn leak() -> Run {
    let kept = elements(10 * MB, &[Trait::Tensor]);
    let mut run = profile(&[(&|epoch| 10 * epoch * MB, MB), (&|_| 5 * MB, MB)]);
    run = run.grown(ContainerKind::List, global(0, "KEPT"), kept, rising(1, 1, 8));
    for boundary in [0, 4, 7] {
        let count = 100 + 10 * u64::from(boundary);
        let rows = vec![TypeCount { name: "Tensor".into(), count, bytes: 80 * count }];
        run = run.say(Types { boundary, rows });
    }
    run
}

#[test]
fn two_moments_differ_by_what_has_come_between() {
    let found = leak().compare(Some(2), Some(6)).expect("both are there");
    let [comparison] = found.as_slice() else { panic!("{found:#?}") };
    let moment = |number| Moment { unit: VerdictUnit::Epoch, number };
    assert_eq!(comparison.moments, [moment(2), moment(6)]);
    assert_eq!(comparison.in_use, [Some(410 * MB), Some(450 * MB)]);
    // The censuses that were taken last by then.
    assert_eq!(comparison.counted_at, Some([moment(1), moment(5)]));
    assert_eq!(comparison.types[0].objects, [Some(100), Some(140)]);
    assert_eq!(comparison.containers[0].length, [Some(2), Some(6)]);
    assert_eq!((comparison.containers[0].holder.as_str(), comparison.containers.len()), ("KEPT", 1));
    let [line] = comparison.lines.as_slice() else { panic!("{comparison:#?}") };
    assert_eq!((line.line, line.change.bytes, line.is_certain()), (1, 40.0 * MB as f64, true));
}

#[test]
fn moments_that_are_not_given_are_the_first_and_the_last() {
    let found = leak().compare(None, None).expect("both are there");
    assert_eq!(found[0].moments.map(|moment| moment.number), [1, 8]);
}

#[test]
fn moments_that_are_not_there_are_errors_that_say_which_there_are() {
    let check = |run: &Run, from, to, text: &str| {
        let error: CompareError = run.compare(from, to).expect_err("one is not there");
        assert_eq!(error.to_string(), text);
    };
    let none = "there is no epoch 9 in this run\nhint: it has epochs 1 to 8";
    check(&leak(), Some(1), Some(9), none);
    check(&leak(), Some(9), None, none);
    check(&leak(), Some(5), Some(5), "epoch 5 is not before epoch 5");
    let outside = "this run has no moments that can be compared: it was seen from outside only";
    check(&Run::of(PROGRAM), Some(1), Some(2), outside);
}

#[test]
fn of_steps_the_last_that_was_looked_at_by_then_is_meant() {
    let run = Run::of(PROGRAM).boundaries(Unit::Steps, 50, [MB; 8]);
    let found = run.compare(Some(120), Some(399)).expect("both are there");
    assert_eq!(found[0].moments.map(|moment| moment.number), [100, 350]);
    assert!(run.compare(Some(10), None).is_err() && run.compare(None, Some(401)).is_err());
}

#[test]
fn what_a_container_pins_is_counted_over_all_of_it_and_told_with_the_lines_that_made_it() {
    let walked = Contents {
        boundary: 3,
        tensors: 8,
        walked: 4,
        walked_nodes: 40,
        walked_storages: 8,
        walked_bytes: 16 * MB,
        walked_touched: 6 * MB,
        opaque_nodes: 1,
        node_bytes: MB,
        node_types: vec![("TanhBackward0".into(), 30), ("MulBackward0".into(), 10)],
        made_by: vec![MadeBy { stack: 1, bytes: 12 * MB }, MadeBy { stack: 9, bytes: MB }],
        ..elements(2 * MB, &[Trait::Tensor, Trait::Graph])
    };
    let run = profile(&[(&|_| MB, 0), (&|_| MB, 0)]);
    // Four of eight tensors were walked when the list had 8 elements; in the end it has 16.
    let run = run.grown(ContainerKind::List, global(0, "KEPT"), walked, rising(2, 2, 8));
    let pinned = run.finding().pinned.clone().expect("it pins something");
    assert_eq!((pinned.graph_nodes, pinned.storages, pinned.saved_bytes), (160, 32, 64 * MB));
    assert_eq!((pinned.node_types[0].0.as_str(), pinned.node_types[0].1), ("TanhBackward0", 0.75));
    assert_eq!((pinned.touched_bytes, pinned.node_bytes), (24 * MB, 4 * MB));
    assert!(pinned.estimated && pinned.least);
    let made: Vec<(u32, u64)> = pinned.made_at.iter().map(|made| (made.line, made.bytes)).collect();
    assert_eq!(made, [(2, 48 * MB)], "the stack that was not told of has no line");
}

#[test]
fn a_graph_that_many_elements_share_is_not_counted_for_each_of_them() {
    let pinned = |traits: &[Trait]| {
        let sample = Contents { saved_bytes: 5 * MB, graph_nodes: 80, ..elements(MB / 8, traits) };
        let run = profile(&[(&|_| MB, 0)]).grown(
            ContainerKind::List,
            global(0, "KEPT"),
            sample,
            rising(100, 100, 8),
        );
        run.finding().pinned.clone().expect("it pins something")
    };
    let each = pinned(&[Trait::Tensor, Trait::Graph]);
    assert_eq!((each.graph_nodes, each.least, each.estimated), (8000, false, true));
    let shared = pinned(&[Trait::Tensor, Trait::Graph, Trait::Overlapping]);
    assert_eq!((shared.graph_nodes, shared.saved_bytes, shared.least), (80, 5 * MB, true));
}

#[test]
fn graphs_that_were_gone_through_once_tell_more_than_what_a_few_elements_share_later() {
    let traits = &[Trait::Tensor, Trait::Graph, Trait::Overlapping];
    let sample = |boundary| Contents {
        boundary,
        sampled: 8,
        saved_bytes: 50 * MB,
        graph_nodes: 80,
        ..elements(6 * MB, traits)
    };
    let run = || {
        let run = Run::of("KEPT.append(state)\n").epochs(rising(400 * MB, 10 * MB, 8));
        let run = run.grown(ContainerKind::List, global(0, "KEPT"), sample(2), rising(100, 100, 8));
        run.traced(0, "append", "<module>")
    };
    let told = |run: &Run| {
        let finding = run.finding();
        let text = facts(&finding).into_iter().find(|fact| fact.0 == "contents");
        (finding.pinned.clone().expect("it pins something"), text.expect("it was looked into").1)
    };
    // Each for itself the elements would keep more than there is.
    let (pinned, text) = told(&run());
    assert_eq!((pinned.saved_bytes, pinned.least), (50 * MB, true));
    assert!(text.starts_with("8 elements of type torch.Tensor keep 48.0 MB together"), "{text}");
    let walk = Contents { tensors: 300, walked: 300, walked_bytes: 30 * MB, ..elements(MB / 8, traits) };
    let (pinned, text) = told(&run().say(Contents { boundary: 2, ..walk }).say(sample(6)));
    assert_eq!((pinned.saved_bytes, pinned.least), (80 * MB, false));
    assert!(text.starts_with("128 KB per element"), "{text}");
}

#[test]
fn what_was_held_by_a_process_killed_before_its_first_boundary_is_told() {
    let frames = vec![HeapFrame { file: FILE.into(), line: 2, function: "b".into() }];
    let rows = vec![HeapRow { id: 1, bytes: 300 * MB, blocks: 30, deviation: 12 * MB }];
    let at_end =
        HeapLive { boundary: AT_END, interval: 524_288, bytes: 310 * MB, rows, ..HeapLive::default() };
    let run = Run::of(PROGRAM).say(HeapStack { id: 1, flags: 0, frames }).say(at_end);
    let lines = run.lines();
    assert_eq!((lines.len(), lines[0].line, lines[0].live.bytes), (1, 2, 300.0 * MB as f64));
    assert_eq!(run.stacks().len(), 2);
}

const SECOND: u64 = 1_000_000_000;

/// A worker 0 of its own in each of eight epochs, which are over at 10 s, 20 s, and so on: of so many bytes at the boundary
/// that it took over and at its end, which came so long after its epoch's.
fn workers(bytes: impl Fn(u64) -> [u64; 2], ended_s: impl Fn(u64) -> f64) -> impl FnOnce(&mut Recording) {
    move |recording| {
        for epoch in 0..8_u64 {
            let (pid, over_ns) = (100 + epoch as u32, (epoch + 1) * 10 * SECOND);
            recording.processes.push(ProcessRecord {
                pid,
                parent: 7,
                role: Role::Worker,
                first_ns: over_ns - 9 * SECOND,
                last_ns: over_ns.saturating_add_signed((ended_s(epoch) * 1e9) as i64),
                agent: true,
                ..ProcessRecord::default()
            });
            let frames = vec![HeapFrame { file: FILE.into(), line: 2, function: "load".into() }];
            let live = |boundary, bytes| {
                let rows = vec![HeapRow { id: 0, bytes, blocks: 3, deviation: 0 }];
                HeapLive { boundary, bytes, rows, ..HeapLive::default() }
            };
            let time_ns = over_ns - 8 * SECOND;
            let boundary =
                Boundary { unit: Unit::Epoch, index: epoch, time_ns, of: 7, ..Boundary::default() };
            let [begun, ended] = bytes(epoch);
            let said: [Message; 4] = [
                boundary.into(),
                HeapStack { id: 0, flags: 0, frames }.into(),
                live(0, begun).into(),
                live(AT_END, ended).into(),
            ];
            recording.events.extend(said.map(|message| AgentEvent { time_ns, pid, message }));
        }
    }
}

/// The one line of the workers, and what all lines and all stacks are said to hold.
fn of_workers(run: &Run) -> (LineUse, [u64; 2]) {
    let lines = run.lines();
    let held = [
        lines.iter().map(|line| line.live.bytes).sum::<f64>(),
        run.stacks().iter().map(|stack| stack.live.bytes).sum(),
    ];
    let mut own = lines.into_iter().filter(|line| line.process.role == "worker");
    let line = own.next().expect("the peak at least is told");
    assert_eq!(own.next(), None, "one worker, one line");
    (line, held.map(|bytes| bytes as u64))
}

#[test]
fn workers_that_are_made_anew_every_epoch_are_one_and_hold_nothing_once_they_have_ended() {
    let run = profile(&[(&|_| 30 * MB, 0)]).edit(workers(|epoch| [10 * MB, (20 + epoch % 2) * MB], |_| -0.5));
    let (line, held) = of_workers(&run);
    assert_eq!((line.ended, line.live.bytes, line.peak.bytes), (true, 0.0, 21.0 * MB as f64));
    assert_eq!((line.growth, line.rank), (None, 2), "after the main process's 30 MB");
    // What is not told by stack is 1 MB.
    assert_eq!(held, [30 * MB, 31 * MB]);
}

#[test]
fn the_last_of_them_holds_what_it_holds_if_it_was_there_at_the_last_boundary() {
    let run = profile(&[(&|_| 30 * MB, 0)]).edit(workers(|_| [10 * MB, 20 * MB], |_| 0.5));
    let (line, held) = of_workers(&run);
    assert_eq!((line.ended, line.live.bytes), (false, 20.0 * MB as f64));
    assert_eq!(held, [50 * MB, 51 * MB]);
}

#[test]
fn of_a_run_that_was_killed_those_hold_memory_that_were_killed_with_it() {
    let killed = |ended_s: f64| {
        let rows = vec![HeapRow { id: 0, bytes: 40 * MB, blocks: 3, deviation: 0 }];
        let at_end = HeapLive { boundary: AT_END, bytes: 40 * MB, rows, ..HeapLive::default() };
        let run = profile(&[(&|_| 30 * MB, 0)]).say(at_end);
        let run = run.edit(workers(|_| [10 * MB, 20 * MB], move |_| ended_s));
        of_workers(&run.edit(|recording| recording.info.end_ns = Some(86 * SECOND)))
    };
    let (line, held) = killed(5.9);
    assert_eq!((line.ended, held), (false, [60 * MB, 60 * MB]));
    let (line, held) = killed(4.0);
    assert_eq!((line.ended, held), (true, [40 * MB, 40 * MB]));
}

#[test]
fn ranks_that_end_before_their_launcher_hold_what_they_held_unless_it_trains_too() {
    let ended = |launcher_steps: u64| {
        let of_launcher = |recording: &mut Recording| {
            recording.processes.iter_mut().skip(1).for_each(|child| child.role = Role::Rank);
            for event in &mut recording.events {
                if let Message::Boundary(boundary) = &mut event.message {
                    let is_launcher = event.pid == 7;
                    (boundary.of, boundary.steps) = (0, if is_launcher { launcher_steps } else { 5 });
                }
            }
        };
        let run = profile(&[(&|_| 30 * MB, 0)]).edit(workers(|_| [10 * MB, 20 * MB], |_| -0.5));
        let lines = run.edit(of_launcher).lines();
        lines.iter().find(|line| line.process.role == "rank").expect("its peak at least is told").ended
    };
    assert!(!ended(0));
    assert!(ended(5));
}

#[test]
fn what_grows_from_worker_to_worker_is_told_as_growth() {
    let growing = workers(|epoch| [(10 + 5 * epoch) * MB, (12 + 5 * epoch) * MB], |_| -0.5);
    let run = profile(&[(&|_| 30 * MB, 0)]).edit(growing);
    let (line, _) = of_workers(&run);
    assert_eq!((line.ended, line.peak.bytes), (true, 47.0 * MB as f64));
    let grown = line.growth.expect("each holds more than the one before").bytes;
    assert!((grown / (5 * MB) as f64 - 1.0).abs() < 0.01, "{grown}");
    let stacks = run.stacks();
    let stack = stacks.iter().find(|stack| stack.process.role == "worker").expect("its growth is told");
    assert_eq!((stack.live.bytes, stack.growth as u64 / MB), (0.0, 5));
}

#[test]
fn two_moments_of_a_worker_that_is_made_anew_every_epoch_are_compared_by_names() {
    let growing = workers(|epoch| [(10 + 5 * epoch) * MB, (12 + 5 * epoch) * MB], |_| -0.5);
    let told = |recording: &mut Recording| {
        for epoch in 0..8_u32 {
            // Each counts what it follows anew.
            let id = 8 - epoch;
            let length =
                |id, len| ContainerLen { id, kind: ContainerKind::List, len, ..ContainerLen::default() };
            let count = 100 + u64::from(epoch);
            let rows = vec![TypeCount { name: "Tensor".into(), count, bytes: 80 * count }];
            let said: [Message; 6] = [
                length(id, 10 * u64::from(epoch)).into(),
                length(20, 3).into(),
                Holder { id, ..global(0, "SEEN") }.into(),
                Holder { id: 20, ..global(0, "FIXED") }.into(),
                Contents { id, ..elements(MB, &[Trait::Tensor]) }.into(),
                Types { boundary: 0, rows }.into(),
            ];
            let event = |message| AgentEvent { time_ns: 0, pid: 100 + epoch, message };
            recording.events.extend(said.map(event));
        }
    };
    let run = profile(&[(&|_| 30 * MB, 0)]).edit(growing).edit(told);
    let found = run.compare(Some(2), Some(6)).expect("both are there");
    let [_, worker] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((worker.process.role.as_str(), worker.process.count), ("worker", 1));
    assert_eq!(worker.moments.map(|moment| moment.number), [2, 6]);
    assert_eq!(worker.types[0].objects, [Some(101), Some(105)]);
    let [container] = worker.containers.as_slice() else { panic!("{worker:#?}") };
    assert_eq!((container.holder.as_str(), container.length), ("SEEN", [Some(10), Some(50)]));
    assert_eq!(container.bytes, Some(40.0 * MB as f64));
    assert_eq!((worker.lines[0].line, worker.lines[0].change.bytes), (2, 20.0 * MB as f64));
}
