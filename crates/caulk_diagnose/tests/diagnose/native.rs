//! What native code keeps is told by the line that allocated it, unless something else accounts for the growth.

use caulk_core::wire::{
    BackwardSite, ContainerKind, ContainerLen, HeapFrame, HeapLive, HeapRow, HeapStack, Message, NoteCode,
    Trait, TypeCount, Types,
};
use caulk_core::{Confidence, LeakClass, Severity, SiteRole};

use crate::run::{FILE, MB, Run, attribute, elements, facts, global, library, message, rising};

const PROGRAM: &str = "\
import library

KEPT = []


def load(path):
    handle = library.open(path)
    return handle.read()


def train():
    for epoch in range(8):
        load('a')
        KEPT.append(step())
";

fn stack(id: u32, frames: &[(&str, u32, &str)]) -> HeapStack {
    let frame = |(file, line, function): &(&str, u32, &str)| HeapFrame {
        file: (*file).into(),
        line: *line,
        function: (*function).into(),
    };
    HeapStack { id, flags: 0, frames: frames.iter().map(frame).collect() }
}

/// Eight epochs of 10 MB more, `native` of them allocated in a library below `load`, in blocks of 1 MB.
fn leak(native: u64) -> Run {
    let mut run = Run::of(PROGRAM).epochs(rising(400 * MB, 10 * MB, 8));
    let open = run.line("library.open");
    let package = "/env/lib/python3.11/site-packages/library/core.py";
    run = run
        .say(stack(0, &[(package, 12, "open"), (FILE, open, "load"), (FILE, open + 6, "train")]))
        .say(stack(1, &[("/env/lib/python3.11/site-packages/torch/nn.py", 5, "forward")]));
    for boundary in 0..8_u32 {
        let live = |id: u32, bytes: u64| HeapRow { id, bytes, blocks: bytes / MB, deviation: MB / 10 };
        let rows = vec![live(0, native * u64::from(boundary) * MB), live(1, 50 * MB)];
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
    }
    run
}

#[test]
fn what_no_container_holds_is_told_by_the_users_line_that_allocates_it() {
    let run = leak(10);
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::NativeGrowth, Severity::Error));
    assert_eq!((finding.sites[0].line, finding.confidence), (run.line("library.open"), Confidence::Likely));
    assert_eq!(finding.sites[0].text, "handle = library.open(path)");
    let second = &finding.sites[1];
    assert_eq!((second.role, second.line, second.function.as_str()), (SiteRole::Allocates, 12, "open"));
    let growth = finding.growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (10 * MB) as f64 - 1.0).abs() < 0.05, "{growth:?}");
    let places: Vec<(&str, u32)> = finding.chain.iter().map(|step| (step.file.as_str(), step.line)).collect();
    assert_eq!(places[0].1, 12, "the library's own line comes first");
    assert_eq!(places[1], ("train.py", run.line("library.open") + 6));
}

#[test]
fn the_way_to_a_line_is_that_by_which_most_was_allocated() {
    let run = leak(10);
    let open = run.line("library.open");
    // The same line, on another way, holds a little of it.
    let run = run.say(stack(2, &[(FILE, open, "load"), (FILE, 1, "<module>")])).edit(|recording| {
        for event in &mut recording.events {
            if let Message::HeapLive(heap) = &mut event.message {
                heap.rows.insert(0, HeapRow { id: 2, bytes: MB, blocks: 1, deviation: MB / 10 });
            }
            if let Message::HeapStack(stack) = &mut event.message {
                // It was seen first.
                stack.id = [1, 2, 0][stack.id as usize];
            }
        }
        for event in &mut recording.events {
            if let Message::HeapLive(heap) = &mut event.message {
                heap.rows.iter_mut().for_each(|row| row.id = [1, 2, 0][row.id as usize]);
            }
        }
    });
    let places: Vec<u32> = run.finding().chain.iter().map(|step| step.line).collect();
    assert_eq!(places, [12, open + 6]);
}

#[test]
fn what_a_container_accounts_for_is_not_told_twice() {
    let kept = elements(10 * MB, &[Trait::Tensor]);
    let run = leak(10).grown(ContainerKind::List, global(0, "KEPT"), kept, rising(1, 1, 8));
    assert_eq!(run.finding().class, LeakClass::GlobalAccumulation);
    // Both, each with its share.
    let kept = elements(4 * MB, &[Trait::Tensor]);
    let run = leak(6).grown(ContainerKind::List, global(0, "KEPT"), kept, rising(1, 1, 8));
    let classes: Vec<LeakClass> = run.diagnose().findings.iter().map(|finding| finding.class).collect();
    assert!(classes.contains(&LeakClass::NativeGrowth) && classes.len() == 2, "{classes:?}");
}

#[test]
fn a_container_without_a_line_of_its_own_is_told_by_the_line_that_allocates_as_much() {
    let kept = || elements(10 * MB, &[Trait::Tensor]);
    let unmentioned =
        |run: Run| run.grown(ContainerKind::List, global(0, "ELSEWHERE"), kept(), rising(1, 1, 8));
    let run = unmentioned(leak(10));
    let finding = run.finding();
    assert_eq!(finding.holder, "ELSEWHERE");
    let sites: Vec<_> = finding.sites.iter().map(|site| (site.role, site.line)).collect();
    assert_eq!(sites, [(SiteRole::Allocates, run.line("library.open"))]);
    let beside = unmentioned(lines(&[10 * MB, 5 * MB], MB / 10)).diagnose().findings;
    assert!(beside.iter().any(|finding| finding.sites.iter().any(|site| site.line == 1)), "{beside:?}");
    // Neither a line that allocates much less, nor one of several, also where that is for all that the samples say.
    for run in [leak(3), lines(&[8 * MB, 9 * MB], MB / 10), lines(&[10 * MB, 5 * MB], 16 * MB)] {
        let findings = unmentioned(run).diagnose().findings;
        let held = findings.iter().find(|finding| finding.holder == "ELSEWHERE").expect("it is told");
        assert_eq!(held.sites, []);
    }
    // Nor one that may be either's.
    let half = || elements(5 * MB, &[Trait::Tensor]);
    let run = leak(5).grown(ContainerKind::List, global(0, "ELSEWHERE"), half(), rising(1, 1, 8)).grown(
        ContainerKind::List,
        global(1, "NOWHERE"),
        half(),
        rising(1, 1, 8),
    );
    let findings = run.diagnose().findings;
    assert!(findings.len() == 2 && findings.iter().all(|finding| finding.sites.is_empty()), "{findings:?}");
}

#[test]
fn growth_that_no_stack_has_allocated_is_said_to_be_beside_the_profile() {
    let notes = |native: u64| leak(native).note(&NoteCode::Unexplained).unwrap_or_default();
    assert!(notes(0).contains("It is not in the heap profile either"), "{}", notes(0));
    assert!(!notes(10).contains("heap profile"), "{}", notes(10));
}

#[test]
fn what_figures_are_drawn_into_is_theirs() {
    let program = "\
import matplotlib.pyplot as plt


def plot():
    fig, ax = plt.subplots()
    fig.savefig('a.png')


for epoch in range(8):
    plot()
";
    let mut run = Run::of(program).epochs(rising(400 * MB, 2 * MB, 8));
    let (made, saved) = (run.line("plt.subplots"), run.line("savefig"));
    let agg = "/env/lib/python3.11/site-packages/matplotlib/backends/backend_agg.py";
    run = run.say(stack(0, &[(agg, 71, "__init__"), (FILE, saved, "plot"), (FILE, 10, "<module>")]));
    for boundary in 0..8_u32 {
        let bytes = 19 * MB / 10 * u64::from(boundary);
        let rows = vec![HeapRow { id: 0, bytes, blocks: boundary.into(), deviation: MB / 10 }];
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
    }
    let mut registry = library(1, "matplotlib._pylab_helpers", "figs");
    registry.path[1].name = "Gcf".into();
    let seen = elements(17 << 10, &[Trait::Figure, Trait::Installed, Trait::Lasts]);
    let run =
        run.grown(ContainerKind::Dict, registry, seen, rising(1, 1, 8)).traced(1, "plt.subplots", "plot");
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::FigureNotClosed, Severity::Error));
    assert_eq!(finding.sites[0].line, made);
    let growth = finding.growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / MB as f64 - 1.9).abs() < 0.2, "{growth:?}");
    assert!(
        facts(&finding).iter().any(|seen| seen.1.contains("does not give back grows by +1.90 MB per epoch"))
    );
}

#[test]
fn of_several_lines_that_were_seen_the_one_that_allocates_most_is_named_and_all_are_told() {
    let program = "\
import logging

log = logging.getLogger()


def train():
    for epoch in range(8):
        log.info('%s', torch.zeros(2))
        log.info('%s', torch.zeros(1 << 20))
";
    let mut run = Run::of(program).epochs(rising(400 * MB, 10 * MB, 8));
    let lines = [run.line("zeros(2)"), run.line("1 << 20")];
    run = run.say(stack(0, &[(FILE, lines[0], "train")])).say(stack(1, &[(FILE, lines[1], "train")]));
    for boundary in 0..8_u32 {
        let row = |id, bytes| HeapRow { id, bytes, blocks: boundary.into(), deviation: MB / 10 };
        let at = u64::from(boundary);
        let rows = vec![row(0, MB * at), row(1, 9 * MB * at)];
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
    }
    let records = elements(5 * MB, &[Trait::LogRecord]);
    let run = run.grown(ContainerKind::List, library(1, "logging", "buffer"), records, rising(0, 2, 8));
    let run = run.traced(1, "zeros(2)", "train").traced(1, "1 << 20", "train");
    let finding = run.finding();
    assert_eq!((finding.class, finding.sites[0].line), (LeakClass::LogRecordsKept, lines[1]));
    assert_eq!(finding.twins.iter().map(|twin| twin.line).collect::<Vec<_>>(), [lines[0]]);
}

#[test]
fn memory_of_objects_that_pile_up_is_but_suspected_of_the_line() {
    let mut run = leak(10);
    for boundary in 0..8_u32 {
        let objects =
            TypeCount { name: "__main__.Node".into(), count: 100 + u64::from(boundary) * 10, bytes: 0 };
        run = run.say(Types { boundary, rows: vec![objects] });
    }
    let finding = run.finding();
    assert_eq!((finding.confidence, finding.severity), (Confidence::Suspected, Severity::Warning));
    assert!(message(&finding).contains("what holds it was not found"), "{}", message(&finding));
}

#[test]
fn a_line_that_lengthens_a_string_allocates_the_string() {
    let found = |line: &str| {
        let source = format!("class Page:\n    def add(self, part):\n        {line}\n");
        let mut run =
            Run::of(&source).epochs(rising(400 * MB, 10 * MB, 8)).say(stack(0, &[(FILE, 3, "add")]));
        for boundary in 0..8_u32 {
            let rows =
                vec![HeapRow { id: 0, bytes: 10 * MB * u64::from(boundary), blocks: 1, deviation: MB }];
            run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
        }
        run.finding()
    };
    let finding = found("self.html += part");
    assert_eq!((finding.class, finding.severity), (LeakClass::UnboundedHistory, Severity::Error));
    assert_eq!((finding.container.as_str(), finding.sites[0].line), ("self.html", 3));
    assert_eq!(found("self.rows[part] += part").class, LeakClass::NativeGrowth);
    assert_eq!(found("self.html = self.html + part").class, LeakClass::NativeGrowth);
}

#[test]
fn what_is_made_anew_and_larger_each_time_is_a_copy_of_what_grows() {
    let advice = |line: &str| {
        let source = format!("class Best:\n    def offer(self, model):\n        {line}\n");
        let mut run = Run::of(&source).epochs(rising(400 * MB, 10 * MB, 8));
        for boundary in 0..8_u32 {
            let (id, kind, len) = (1, ContainerKind::Dict, 20 + u64::from(boundary));
            run = run.say(ContainerLen { boundary, id, kind, len, ..ContainerLen::default() });
        }
        let run = run.say(attribute(1, "best", "Best", "state")).traced(1, line, "Best.offer");
        let finding = run.finding();
        assert_eq!((finding.container.as_str(), finding.sites[0].line), ("self.state", 3));
        caulk_report::fix(&finding).expect("there is something to change").description
    };
    let anew = advice("self.state = copy.deepcopy(model.state_dict())");
    assert!(anew.contains("made anew of something that grows"), "{anew}");
    let filled = advice("self.state.update(model.state_dict())");
    assert!(!filled.contains("made anew"), "{filled}");
}

/// What keeps what the third line of a method makes, as far as the lines after it and `__init__` tell.
fn kept_by(made: &str, after: &str, init: &str) -> String {
    let source = format!(
        "class Store:\n    def put(self, key, x):\n        {made}\n        {after}\n\n    def __init__(self):\n        {init}\n"
    );
    let mut run =
        Run::of(&source).epochs(rising(400 * MB, 10 * MB, 8)).say(stack(0, &[(FILE, 3, "Store.put")]));
    for boundary in 0..8_u32 {
        let blocks = 10 * u64::from(boundary);
        let rows = vec![HeapRow { id: 0, bytes: blocks * MB, blocks, deviation: MB / 10 }];
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
    }
    let finding = run.finding();
    if finding.class == LeakClass::NativeGrowth { String::new() } else { finding.container.clone() }
}

#[test]
fn what_stores_what_a_line_makes_is_named_where_it_can_keep_all_of_it() {
    let block = "block = torch.zeros(8).clone()";
    assert_eq!(kept_by(block, "self.rows[key] = block", "self.rows = {}"), "self.rows");
    assert_eq!(kept_by("self.rows[key][1] = x.clone()", "pass", "self.rows = {}"), "self.rows[key]");
    assert_eq!(kept_by(block, "self.rows.append(block)", "self.rows = deque(maxlen=6)"), "", "it is bounded");
    assert_eq!(kept_by(block, "rows = [1]; rows.append(block)", "pass"), "", "it is gone when `put` returns");
    let within = "rows = []\n        for part in x: rows.append(block)";
    assert_eq!(kept_by(block, within, "pass"), "", "so is it where a loop fills it");
    assert_eq!(kept_by(block, "self.page[:] = block", "self.page = bytearray(8)"), "", "that is a copy");
    assert_eq!(kept_by(block, "self.rows.append(key)", "self.rows = []"), "", "it stores something else");
}

#[test]
fn cycles_of_gradients_are_blamed_on_the_backward_pass_that_makes_them() {
    let source = "def step(self, loss):\n    loss.backward(create_graph=True)\n    self.opt.step()\n";
    let site = BackwardSite { create_graph: true, ..BackwardSite::default() };
    let leak = Run::of(source).epochs(rising(400 * MB, 10 * MB, 8));
    let finding = leak.backward("loss.backward(create_graph=True)", site.clone()).finding();
    assert_eq!((finding.class, finding.confidence), (LeakClass::GraphRetained, Confidence::Suspected));
    assert_eq!((finding.sites[0].line, finding.severity), (2, Severity::Warning));
    let level = Run::of(source).epochs([400 * MB; 8]).backward("loss.backward(create_graph=True)", site);
    assert_eq!(level.diagnose().findings, []);
}

#[test]
fn gradients_that_are_returned_close_no_cycle() {
    let line = "    grads = torch.autograd.grad(loss, weights, create_graph=True)";
    let source = format!("def adapt(loss, weights):\n{line}\n    return grads\n");
    let site = BackwardSite { create_graph: true, ..BackwardSite::default() };
    let run = Run::of(&source).epochs(rising(400 * MB, 10 * MB, 8)).backward(line.trim(), site);
    assert!(run.diagnose().findings.iter().all(|finding| finding.class != LeakClass::GraphRetained));
}

#[test]
fn kernels_that_the_layers_of_torch_compile_are_but_suspected() {
    let layer = "/env/lib/python3.11/site-packages/torch/nn/modules/conv.py";
    let mut run = Run::of(PROGRAM).epochs(rising(400 * MB, 10 * MB, 8));
    run = run.say(stack(0, &[(layer, 540, "_conv_forward"), (FILE, 7, "load")]));
    for boundary in 0..8_u32 {
        let bytes = 10 * MB * u64::from(boundary);
        let rows = vec![HeapRow { id: 0, bytes, blocks: bytes / MB, deviation: MB / 10 }];
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
    }
    let finding = run.finding();
    assert_eq!((finding.confidence, finding.severity), (Confidence::Suspected, Severity::Warning));
    assert!(
        caulk_report::fix(&finding).expect("advice").description.contains("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    );
}

#[test]
fn lines_beside_a_graph_that_pins_most_are_the_graph_s() {
    let classes = |traits: &[Trait]| -> Vec<LeakClass> {
        let run =
            leak(4).grown(ContainerKind::List, global(0, "KEPT"), elements(6 * MB, traits), rising(1, 1, 8));
        // Nor does resident memory say that the container has it all.
        let run = run.edit(|recording| {
            for event in &mut recording.events {
                if let Message::Boundary(boundary) = &mut event.message {
                    boundary.rss_bytes = 900 * MB;
                }
            }
        });
        run.diagnose().findings.iter().map(|finding| finding.class).collect()
    };
    assert_eq!(classes(&[Trait::Tensor]), [LeakClass::GlobalAccumulation, LeakClass::NativeGrowth]);
    assert_eq!(classes(&[Trait::Tensor, Trait::Graph]).len(), 1);
}

#[test]
fn a_line_that_only_allocates_does_not_outrank_the_container_that_keeps_what_it_makes() {
    // As many objects more as blocks, of which the list is counted with too few bytes.
    let run = |kept: u64| {
        let mut run = leak(9);
        for boundary in 0..8_u32 {
            let rows = vec![TypeCount {
                name: "__main__.Node".into(),
                count: 100 + 10 * u64::from(boundary),
                bytes: 0,
            }];
            run = run.say(Types { boundary, rows });
        }
        let kept = elements(kept, &[Trait::Tensor]);
        run.grown(ContainerKind::List, global(0, "KEPT"), kept, rising(1, 1, 8))
            .traced(0, "KEPT.append", "train")
            .diagnose()
            .findings
            .iter()
            .map(|finding| (finding.class, finding.confidence))
            .collect::<Vec<_>>()
    };
    let container = (LeakClass::GlobalAccumulation, Confidence::Proved);
    assert_eq!(run(2 * MB), [container]);
    // So much more is somebody else's, and comes second.
    assert_eq!(run(MB / 2), [container, (LeakClass::NativeGrowth, Confidence::Suspected)]);
}

#[test]
fn arrays_that_a_container_keeps_have_more_blocks_than_the_collector_knows_objects() {
    // Each step adds a dict to the list; the array in it has three blocks, and no collector knows it.
    let mut run = leak(9);
    for boundary in 0..8_u32 {
        let rows = vec![TypeCount { name: "dict".into(), count: 100 + 3 * u64::from(boundary), bytes: 0 }];
        run = run.say(Types { boundary, rows });
    }
    let kept = elements(2 * MB, &[]);
    let run = run.grown(ContainerKind::List, global(0, "KEPT"), kept, rising(1, 1, 8)).traced(
        0,
        "KEPT.append",
        "train",
    );
    let classes: Vec<LeakClass> = run.diagnose().findings.iter().map(|finding| finding.class).collect();
    assert_eq!(classes, [LeakClass::GlobalAccumulation]);
}

#[test]
fn a_level_line_is_not_blamed() {
    assert_eq!(leak(0).diagnose().findings, []);
}

/// Eight epochs of 10 MB more; lines from 1 on of which each grows by so many bytes, known to `deviation` in the end.
fn lines(slopes: &[u64], deviation: u64) -> Run {
    let mut run = Run::of(&"load()\n".repeat(slopes.len())).epochs(rising(400 * MB, 10 * MB, 8));
    for id in 0..slopes.len() as u32 {
        run = run.say(stack(id, &[(FILE, id + 1, "load")]));
    }
    for boundary in 0..8_u32 {
        let row = |(id, slope): (u32, &u64)| {
            let bytes = slope * u64::from(boundary);
            HeapRow { id, bytes, blocks: bytes / MB, deviation }
        };
        let rows = (0..).zip(slopes).map(row).collect();
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
    }
    run
}

fn named(run: &Run) -> Vec<u32> {
    let mut named: Vec<u32> = run.diagnose().findings.iter().map(|finding| finding.sites[0].line).collect();
    named.sort_unstable();
    named
}

/// Four lines that grow by about a quarter each.
const ALIKE: [u64; 4] = [26 * MB / 10, 27 * MB / 10, 28 * MB / 10, 29 * MB / 10];

#[test]
fn of_lines_that_sampling_cannot_tell_apart_all_are_named_or_none() {
    assert_eq!(named(&lines(&ALIKE, 3 * MB)), [1, 2, 3, 4], "no three of them stand out");
    assert_eq!(named(&lines(&ALIKE, MB / 100)), [2, 3, 4], "the fastest three");
    let behind = [ALIKE[0], ALIKE[1], ALIKE[2], 9 * MB];
    assert_eq!(named(&lines(&behind, 3 * MB)), [4], "three more are too many");
}

#[test]
fn a_line_whose_growth_a_container_explains_is_not_told_again() {
    // Most of half of it is kept by the list that line 1 grows, half by nobody who is known.
    let run = lines(&[5 * MB, 5 * MB], MB / 100);
    assert_eq!(named(&run), [1, 2]);
    let kept = elements(4 * MB, &[Trait::Tensor]);
    let run =
        run.grown(ContainerKind::List, global(0, "KEPT"), kept, rising(1, 1, 8)).traced(0, "load()", "load");
    let findings = run.diagnose().findings;
    let mut told: Vec<_> = findings.iter().map(|finding| (finding.sites[0].line, finding.class)).collect();
    told.sort_unstable_by_key(|(line, _)| *line);
    assert_eq!(told, [(1, LeakClass::GlobalAccumulation), (2, LeakClass::NativeGrowth)]);
}

#[test]
fn where_objects_may_hold_it_no_line_is_picked_from_others_like_it() {
    let objects = |mut run: Run| {
        for boundary in 0..8_u32 {
            let count = 100 + u64::from(boundary) * 10;
            let rows = vec![TypeCount { name: "__main__.Node".into(), count, bytes: 0 }];
            run = run.say(Types { boundary, rows });
        }
        run
    };
    assert_eq!(named(&objects(lines(&ALIKE, 3 * MB))), [1, 2, 3, 4]);
    assert_eq!(named(&objects(lines(&ALIKE, MB / 100))), [4]);
}

#[test]
fn growth_of_a_line_is_as_doubtful_as_its_samples() {
    let run = lines(&[10 * MB], 7 * MB);
    let growth = run.finding().growth.clone().expect("it grows");
    // An even rise by itself would leave no doubt; seven epochs of samples do.
    let margin = 1.96 * MB as f64;
    let [low, high] = growth.interval.expect("it is estimated").map(|bound| bound - growth.bytes_per_unit);
    assert!((low / -margin - 1.0).abs() < 0.01 && (high / margin - 1.0).abs() < 0.01, "{growth:?}");
}
