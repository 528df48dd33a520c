//! What objects of libraries keep, and what keeps what a line makes.

use caulk_core::wire::{
    ContainerKind, HeapFrame, HeapLive, HeapRow, HeapStack, Holder, PathStep, StepKind, TraceHit, Trait,
    TypeCount, Types,
};
use caulk_core::{Confidence, LeakClass, Severity};

use crate::run::{FILE, MB, Run, attribute, elements, message, rising};

const ENGINE: &str = "/env/lib/python3.11/site-packages/engines/engine.py";
const LIBRARY: &str = "\
class Engine:
    def __init__(self):
        self.handlers = {}

    def wire(self, event, handler):
        self.handlers.setdefault(event, []).append(handler)
";
const PROGRAM: &str = "\
def main():
    engine = Engine()
    for epoch in range(8):
        marks[:, 0] += engine.wire('done', noise)
";

/// `engine.handlers['done']`, a list in a dict of a library's object.
fn handlers(run: Run) -> Run {
    let step =
        |kind, name: &str, type_name: &str| PathStep { kind, name: name.into(), type_name: type_name.into() };
    let holder = Holder {
        path: vec![
            step(StepKind::Function, "main", ""),
            step(StepKind::Local, "engine", "engines.engine.Engine"),
            step(StepKind::Attribute, "handlers", "dict"),
            step(StepKind::Key, "'done'", "list"),
        ],
        expression: "engine.handlers['done']".into(),
        function: "main".into(),
        file: FILE.into(),
        name: "done".into(),
        complete: true,
        ..Holder::default()
    };
    run.grown(ContainerKind::List, holder, elements(10 * MB, &[Trait::Tensor]), rising(1, 1, 8))
}

fn hit(run: &Run, by_user: bool) -> TraceHit {
    TraceHit {
        file: ENGINE.into(),
        line: 6,
        function: "Engine.wire".into(),
        user_file: if by_user { FILE.into() } else { String::new() },
        user_line: if by_user { run.line("engine.wire") } else { 0 },
        growth: 8,
        count: 8,
        ..TraceHit::default()
    }
}

#[test]
fn a_library_s_line_comes_second_to_the_one_that_calls_it() {
    let run = handlers(Run::of(PROGRAM).with_library(ENGINE, LIBRARY).epochs(rising(400 * MB, 10 * MB, 8)));
    let called = hit(&run, true);
    let line = run.line("engine.wire");
    let finding = run.say(called).finding();
    let sites: Vec<_> = finding.sites.iter().map(|site| (site.file.as_str(), site.line)).collect();
    assert_eq!(sites, [("train.py", line), (ENGINE, 6)]);
    // What the calling line adds to is something else.
    assert_eq!(finding.container, "engine.handlers['done']");
    assert_eq!((finding.confidence, finding.severity), (Confidence::Proved, Severity::Error));
}

#[test]
fn a_library_s_line_leads_where_no_line_of_the_program_s_calls_it() {
    let run = handlers(Run::of(PROGRAM).with_library(ENGINE, LIBRARY).epochs(rising(400 * MB, 10 * MB, 8)));
    let alone = hit(&run, false);
    let finding = run.say(alone).finding();
    assert_eq!(finding.sites.len(), 1);
    assert_eq!((finding.sites[0].file.as_str(), finding.sites[0].line), (ENGINE, 6));
    assert_eq!(finding.confidence, Confidence::Proved);
}

const METERS: &str = "\
class Meter:
    def update(self, value):
        self.kept.append(value)
";

#[test]
fn one_attribute_of_many_objects_is_one_cause() {
    let mut run = Run::of(METERS).epochs(rising(400 * MB, 6 * MB, 8));
    for id in 0..6 {
        let holder = attribute(id, &format!("meters_{id}"), "Meter", "rows");
        let elements = elements(MB, &[Trait::Tensor]);
        run = run.grown(ContainerKind::List, holder, elements, rising(1, 1, 8));
    }
    let finding = run.traced(2, "self.kept.append", "Meter.update").finding();
    assert_eq!(finding.sites[0].line, 3);
    let growth = finding.growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (6 * MB) as f64 - 1.0).abs() < 0.05, "{growth:?}");
}

#[test]
fn what_many_objects_keep_is_weighed_together() {
    // Bytes do not tell, and each for itself is next to nothing.
    let mut run = Run::of(METERS).epochs([400 * MB; 8]);
    for id in 0..20 {
        let holder = attribute(id, &format!("meters_{id}"), "Meter", "rows");
        run = run.grown(ContainerKind::List, holder, elements(1 << 10, &[Trait::Tensor]), rising(1, 1, 8));
    }
    let finding = run.traced(2, "self.kept.append", "Meter.update").finding();
    assert_eq!((finding.sites[0].line, finding.severity), (3, Severity::Info));
    assert!(message(&finding).contains("in 20 places"), "{}", message(&finding));
}

const LOOP: &str = "\
class Trainer:
    def fit(self):
        for step in range(320):
            out = self.model(step)
            self.outs.append(out)
";

/// Eight epochs that gain 4 MB each, allocated by the line that calls the model in 400 blocks, of which elements tell 1 MB.
fn made() -> Run {
    let mut run = Run::of(LOOP).epochs(rising(400 * MB, 4 * MB, 8));
    let line = run.line("self.model");
    let frame = HeapFrame { file: FILE.into(), line, function: "Trainer.fit".into() };
    run = run.say(HeapStack { id: 0, flags: 0, frames: vec![frame] });
    for boundary in 0..8_u32 {
        let bytes = u64::from(boundary) * 4 * MB;
        let rows = vec![HeapRow { id: 0, bytes, blocks: 400 * u64::from(boundary), deviation: MB / 10 }];
        let count = 400 * u64::from(boundary);
        let types = vec![TypeCount { name: "torch.Tensor".into(), count, bytes: 80 * count }];
        run = run
            .say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() })
            .say(Types { boundary, rows: types });
    }
    let contents = elements(MB / 400, &[Trait::Tensor]);
    run.grown(ContainerKind::List, attribute(0, "trainer", "Trainer", "outs"), contents, rising(400, 400, 8))
}

#[test]
fn what_a_proved_container_s_loop_makes_is_charged_to_the_container() {
    let run = made().traced(0, "self.outs.append", "Trainer.fit");
    let finding = run.finding();
    assert_eq!(finding.sites[0].line, run.line("self.outs.append"));
    assert_eq!((finding.class, finding.severity), (LeakClass::UnboundedHistory, Severity::Error));
    let growth = finding.growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (4 * MB) as f64 - 1.0).abs() < 0.05, "{growth:?}");
}

/// Each of very many objects keeps a little more in every epoch: the agent follows some of them, then others.
#[test]
fn a_crowd_that_cannot_be_followed_is_charged_with_the_rest() {
    let source = "\
class Node:
    def __init__(self):
        self.marks = {}

    def mark(self, epoch, value):
        self.marks[epoch] = value
";
    let crowd = |count: u32| {
        let mut run = Run::of(source).epochs(rising(300 * MB, 4 * MB, 12));
        for id in 0..count {
            let marks = attribute(id, &format!("nodes_{id}"), "Node", "marks");
            let marks = Holder { file: String::new(), ..marks };
            // Half of them are followed at first, the others to the end.
            let epochs = if id < count / 2 { 6 } else { 12 };
            run = run.grown(
                ContainerKind::Dict,
                marks,
                elements(8 << 10, &[Trait::Tensor]),
                rising(1, 1, epochs),
            );
        }
        run.traced(0, "self.marks[epoch]", "Node.mark").diagnose()
    };
    let found = crowd(100).findings;
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.sites[0].line, finding.severity), (6, Severity::Error), "{finding:?}");
    let growth = finding.growth.as_ref().expect("it grows").bytes_per_unit;
    assert!((growth / MB as f64 - 4.0).abs() < 0.5, "{growth}");
    // A few are no crowd: they grow by what they keep.
    let few = crowd(10).findings;
    assert!(few.iter().all(|finding| finding.severity < Severity::Error), "{few:?}");
}
