//! Objects that wait for the collector: named by the attribute that closes their cycle, where they account for growth.

use caulk_core::wire::{CodePlace, CycleLink, Garbage, TypeCount};
use caulk_core::{Confidence, LeakClass, Series, Severity, SiteRole, State};

use crate::run::{FILE, MB, Run, message, rising};

const TREE: &str = "\
import gc

gc.disable()


class Node:
    def __init__(self, state):
        self.state = state
        self.children = []
        self.parent = None

    def add(self, child):
        self.children.append(child)
        child.parent = self


def search(root):
    def visit(node):
        for child in node.children:
            visit(child)

    visit(root)
";

fn link(attribute: &str, target_type: &str) -> CycleLink {
    CycleLink {
        owner_type: "__main__.Node".into(),
        attribute: attribute.into(),
        target_type: target_type.into(),
        file: FILE.into(),
        count: 20,
    }
}

/// Eight epochs of 10 MB more, of which so much waits for the collector.
fn leak(waiting: impl IntoIterator<Item = u64>, garbage: &Garbage) -> Run {
    let mut run = Run::of(TREE).epochs(rising(400 * MB, 10 * MB, 8));
    for (boundary, bytes) in (0..).zip(waiting) {
        let types = vec![TypeCount { name: "__main__.Node".into(), count: 40, bytes: MB }];
        run = run.say(Garbage { boundary, bytes, objects: bytes >> 15, types, ..garbage.clone() });
    }
    run
}

fn tree() -> Garbage {
    let links = vec![link("children", "list"), link("parent", "__main__.Node")];
    Garbage { links, tensor_bytes: MB, ..Garbage::default() }
}

#[test]
fn the_line_is_the_one_that_refers_back() {
    let run = leak(rising(0, 10 * MB, 8), &tree());
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::ReferenceCycle, Severity::Error));
    assert_eq!(
        (finding.sites[0].line, finding.confidence),
        (run.line("child.parent = self"), Confidence::Proved)
    );
    assert_eq!((finding.sites[1].line, finding.sites[1].role), (3, SiteRole::ReleasesMissing));
    let growth = finding.growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (10 * MB) as f64 - 1.0).abs() < 0.05, "{growth:?}");
    assert!(message(&finding).contains("switched off"), "{}", message(&finding));
}

#[test]
fn a_cycle_of_the_programs_comes_before_those_of_a_library() {
    const PATH: &str = "/opt/site-packages/trees/context.py";
    const LIBRARY: &str = "class Context:\n    def add(self, child):\n        child.parent = self\n";
    const MONITOR: &str = "\
class Monitor:
    def __init__(self, model):
        self.model = model

class Model:
    def fit(self):
        self.monitor = Monitor(self)
";
    let of = |owner: &str, attribute: &str, target: &str, file: &str, count: u32| CycleLink {
        owner_type: owner.into(),
        attribute: attribute.into(),
        target_type: target.into(),
        file: file.into(),
        count,
    };
    let links = vec![
        of("trees.context.Context", "parent", "trees.context.Context", PATH, 110),
        of("__main__.Model", "monitor", "__main__.Monitor", FILE, 8),
        of("__main__.Monitor", "model", "__main__.Model", FILE, 8),
    ];
    let garbage = Garbage { links, tensor_bytes: MB, ..Garbage::default() };
    let mut run = Run::of(MONITOR).with_library(PATH, LIBRARY).epochs(rising(400 * MB, 10 * MB, 8));
    for (boundary, bytes) in (0..).zip(rising(0, 10 * MB, 8)) {
        run = run.say(Garbage { boundary, bytes, objects: bytes >> 15, ..garbage.clone() });
    }
    assert_eq!(run.finding().sites[0].line, run.line("self.monitor = Monitor(self)"));
}

#[test]
fn a_function_that_refers_to_itself_is_told_by_its_definition() {
    let place = CodePlace { file: FILE.into(), line: 18, function: "search.<locals>.visit".into() };
    let run = leak(rising(0, 10 * MB, 8), &Garbage { places: vec![place], ..Garbage::default() });
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::ReferenceCycle, Severity::Warning));
    assert_eq!(finding.sites[0].line, run.line("def visit(node)"));
}

#[test]
fn what_the_collector_frees_again_is_no_cause_of_growth() {
    let run = leak([0, 9, 1, 8, 0, 9, 1, 2].map(|part| part * MB), &Garbage { enabled: true, ..tree() });
    assert!(run.diagnose().findings.is_empty(), "{:#?}", run.diagnose());
}

#[test]
fn much_that_waits_at_each_look_is_advice_where_memory_does_not_grow() {
    let mut run = Run::of(TREE).epochs([400 * MB; 8]);
    for boundary in 0..8 {
        run = run.say(Garbage { boundary, bytes: 100 * MB, enabled: true, ..tree() });
    }
    let finding = run.finding();
    assert_eq!((finding.class, finding.severity), (LeakClass::ReferenceCycle, Severity::Info));
    assert_eq!(finding.sites[0].line, run.line("child.parent = self"));
}

/// Eight epochs, each with so many more bytes and objects that wait for a collector that comes.
fn waiting(bytes: u64, objects: u64) -> Run {
    let mut run = Run::of(TREE).epochs(rising(400 * MB, bytes, 8));
    for boundary in 0..8 {
        let count = u64::from(boundary);
        let garbage = Garbage { enabled: true, threshold: 700, ..tree() };
        run = run.say(Garbage { boundary, bytes: count * bytes, objects: count * objects, ..garbage });
    }
    run
}

#[test]
fn what_the_collector_frees_before_it_weighs_leaves_the_question_open() {
    // It comes after 25,000 objects more, a quarter of what there is.
    let light = waiting(MB, 2000).diagnose();
    let verdict = light.verdicts.iter().find(|verdict| verdict.series == Series::InUse).expect("it was read");
    assert_eq!((verdict.state, verdict.more_needed), (State::Undecided, Some(6)), "{verdict:#?}");
    assert!(light.findings.iter().all(|finding| finding.severity == Severity::Info), "{light:#?}");
    // A leak beside them is not put down to them.
    let mut beside = Run::of(TREE).epochs(rising(400 * MB, 10 * MB, 8));
    for boundary in 0..8 {
        let (bytes, objects) = (u64::from(boundary) * 3 * MB, u64::from(boundary) * 20_000);
        beside = beside.say(Garbage { boundary, bytes, objects, enabled: true, threshold: 700, ..tree() });
    }
    assert_eq!(beside.finding().severity, Severity::Error);
    let heavy = waiting(10 * MB, 20).finding();
    assert_eq!((heavy.class, heavy.severity), (LeakClass::ReferenceCycle, Severity::Error));
}
