//! What is worth a word, and how loud.

use caulk_core::wire::{
    Boundary, ContainerKind, ContainerLen, Contents, Message, Note as Said, NoteCode, Trait, Unit,
};
use caulk_core::{AgentEvent, Confidence, LeakClass, Series, Severity, State, SystemSample};

use crate::run::{MB, Run, attribute, elements, facts, library, message, rising};

const SOURCE: &str = "\
class Trainer:
    def __init__(self):
        self.ious = []
        self.losses = []

    def validate(self, batches):
        for batch in batches:
            self.ious.append(self.model(batch))
        self.losses.append(0.5)
";

fn ious(run: Run, lengths: impl IntoIterator<Item = u64>) -> Run {
    let contents = elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]);
    run.grown(ContainerKind::List, attribute(1, "trainer", "Trainer", "ious"), contents, lengths)
}

#[test]
fn a_container_that_grows_while_bytes_do_not_is_worth_knowing_at_most() {
    let run = ious(Run::of(SOURCE).epochs([400 * MB; 8]), rising(4, 4, 8));
    assert_eq!(run.finding().severity, Severity::Info);
    assert_eq!(run.finding().confidence, Confidence::Suspected);
}

#[test]
fn what_gained_much_in_a_first_part_of_a_run_whose_bytes_are_flat_is_not_told() {
    let run = ious(Run::of(SOURCE).epochs([400 * MB; 12]), rising(4, 4, 4));
    assert_eq!(run.diagnose().findings, []);
}

#[test]
fn what_the_source_bounds_is_not_told_once_the_bytes_are_flat() {
    let bounded = SOURCE.replace("self.ious = []", "self.ious = deque(maxlen=64)");
    assert_ne!(bounded, SOURCE);
    let findings = ious(Run::of(&bounded).epochs([400 * MB; 8]), rising(4, 4, 8)).diagnose().findings;
    assert_eq!(findings, []);
}

#[test]
fn what_would_take_for_ever_to_weigh_is_not_told_once_the_bytes_are_flat() {
    let run = Run::of(SOURCE).epochs([400 * MB; 8]).grown(
        ContainerKind::List,
        attribute(2, "trainer", "Trainer", "losses"),
        elements(32, &[Trait::Scalar]),
        rising(1, 1, 8),
    );
    assert_eq!(run.diagnose().findings, []);
}

#[test]
fn one_float_per_epoch_beside_a_leak_is_not_told() {
    let scalars = elements(32, &[Trait::Scalar]);
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)).grown(
        ContainerKind::List,
        attribute(2, "trainer", "Trainer", "losses"),
        scalars,
        rising(1, 1, 8),
    );
    let findings = ious(run, rising(4, 4, 8)).diagnose().findings;
    let told: Vec<_> = findings.iter().map(|finding| (finding.holder.as_str(), finding.severity)).collect();
    assert_eq!(told, [("trainer.ious", Severity::Error)]);
}

/// Elements of 2.5 MB, four more per epoch, which all of the growth is.
fn filling(source: &str) -> Run {
    ious(Run::of(source).epochs(rising(400 * MB, 10 * MB, 8)), rising(4, 4, 8))
}

#[test]
fn what_fills_up_to_a_bound_is_no_leak() {
    let cut = SOURCE.replace(
        "(self.model(batch))",
        "(self.model(batch))\n            if len(self.ious) > 64:\n                self.ious.pop(0)",
    );
    assert_ne!(cut, SOURCE);
    let run = filling(&cut);
    let (finding, verdicts) = (run.finding(), run.diagnose().verdicts);
    assert_eq!(finding.severity, Severity::Info, "{}", message(&finding));
    assert!(message(&finding).contains("is full when it has 64 and keeps 160 MB"), "{}", message(&finding));
    // 32 more at 4 per epoch, and then some in which it stands still.
    assert_eq!((verdicts[0].state, verdicts[0].more_needed), (State::Undecided, Some(12)));
    // Not where memory ends before, nor where other tests come first.
    let small = filling(&cut).edit(|recording| {
        recording.info.limits.physical_bytes = 500 * MB;
        recording.system = vec![SystemSample { available_bytes: 70 * MB, ..SystemSample::default() }];
    });
    assert_eq!(small.finding().severity, Severity::Error);
    let seldom = cut.replace("            if len", "            if self.debug and len");
    assert_eq!(filling(&seldom).finding().severity, Severity::Error);
}

#[test]
fn what_filled_up_fast_takes_nothing_from_a_leak() {
    let full = elements(25 * MB, &[Trait::Tensor, Trait::Capacity(64)]);
    let run = filling(SOURCE).grown(
        ContainerKind::Deque,
        attribute(2, "trainer", "Trainer", "losses"),
        full,
        rising(4, 4, 8),
    );
    let findings = run.diagnose().findings;
    let leak = findings.iter().find(|finding| finding.holder == "trainer.ious").expect("told");
    assert_eq!(leak.severity, Severity::Error);
    let bytes = leak.growth.as_ref().map_or(0.0, |growth| growth.bytes_per_unit);
    assert!((bytes - 10.0 * MB as f64).abs() < MB as f64, "{bytes}");
}

#[test]
fn a_container_says_itself_how_much_it_holds() {
    let contents = elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph, Trait::Capacity(64)]);
    let ious = attribute(1, "trainer", "Trainer", "ious");
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8));
    let run = run.grown(ContainerKind::Deque, ious, contents, rising(4, 4, 8));
    assert_eq!(run.finding().severity, Severity::Info);
}

#[test]
fn a_bound_that_does_not_hold_bounds_nothing() {
    let low = SOURCE.replace(
        "(self.model(batch))",
        "(self.model(batch))\n            if len(self.ious) > 16:\n                self.ious.pop(0)",
    );
    assert_eq!(filling(&low).finding().severity, Severity::Error);
}

#[test]
fn a_graph_that_is_made_anew_between_looks_is_no_state_that_is_fed_back() {
    let told = |renewed: u64| {
        let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8));
        let mut run = run.say(attribute(1, "trainer", "Trainer", "state"));
        for boundary in 0..8_u32 {
            let nodes = 100 * (1 + u64::from(boundary));
            let (oldest, newest) =
                (u64::from(boundary) * 10_000 * renewed, u64::from(boundary) * 10_000 + nodes);
            let traits = vec![Trait::Tensor, Trait::Graph, Trait::Numbers { oldest, newest }];
            let graph = Contents {
                id: 1,
                boundary,
                sampled: 1,
                bytes_per_element: 100 << 10,
                graph_nodes: nodes,
                traits,
                ..Contents::default()
            };
            let length = ContainerLen {
                boundary,
                id: 1,
                kind: ContainerKind::Graph,
                len: nodes,
                ..ContainerLen::default()
            };
            run = run.say(graph).say(length);
        }
        run.diagnose().findings.iter().any(|finding| finding.holder == "trainer.state")
    };
    assert!(told(0));
    assert!(!told(1));
}

#[test]
fn a_buffer_that_filled_is_withdrawn() {
    let lengths = [40, 80, 120, 160, 160, 160, 160, 160];
    let in_use = lengths.map(|length| (400 + 2 * length) * MB);
    let diagnosis = ious(Run::of(SOURCE).epochs(in_use), lengths).diagnose();
    assert_eq!(diagnosis.findings, []);
    assert_eq!(diagnosis.verdicts[0].state, State::Plateaus);
}

#[test]
fn what_a_library_keeps_is_not_told_unless_it_weighs() {
    let kept = |bytes: u64| {
        let holder = library(1, "torch._dynamo", "cache");
        Run::of(SOURCE)
            .epochs(rising(400 * MB, 10 * MB, 8))
            .grown(ContainerKind::Dict, holder, elements(bytes, &[Trait::Array]), rising(4, 4, 8))
            .diagnose()
    };
    assert_eq!(kept(1024).findings, []);
    assert_eq!(kept(5 * MB / 2).findings.len(), 1);
}

#[test]
fn growth_without_a_cause_is_told_with_what_was_looked_at() {
    let diagnosis = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)).diagnose();
    assert_eq!(diagnosis.findings, []);
    let unexplained = diagnosis
        .notes
        .iter()
        .map(caulk_report::note)
        .find(|note| note.code == NoteCode::Unexplained)
        .expect("a note");
    assert!(unexplained.text.contains("looked at 8 times"), "{unexplained:?}");
    let steady = Run::of(SOURCE).epochs([400 * MB; 8]).diagnose();
    assert_eq!(steady.notes, []);
}

#[test]
fn before_five_epochs_exact_witnesses_only_suspect() {
    let run = ious(Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 4)), rising(4, 4, 4));
    let finding = run.finding();
    assert_eq!((finding.confidence, finding.severity), (Confidence::Suspected, Severity::Warning));
    assert_eq!(run.diagnose().verdicts[0].more_needed, Some(1));
}

#[test]
fn one_line_that_grows_several_containers_is_one_finding() {
    let contents = || elements(MB, &[Trait::Tensor, Trait::Graph]);
    let mut run = Run::of(SOURCE).epochs(rising(400 * MB, 8 * MB, 8));
    for (id, name) in [(1, "train"), (2, "val")] {
        let mut holder = attribute(id, "meters", "Trainer", "ious");
        holder.expression = format!("meters['{name}'].ious");
        run = run.grown(ContainerKind::List, holder, contents(), rising(4, 4, 8));
    }
    let finding = run.finding();
    let growth = finding.growth.clone().expect("it grows");
    assert_eq!((growth.bytes_per_unit, growth.elements_per_unit), (8.0 * MB as f64, 8.0));
    assert!(
        facts(&finding).iter().any(|fact| fact.1.contains("meters['val'].ious")),
        "{:?}",
        finding.evidence
    );
}

#[test]
fn shared_elements_do_not_outgrow_the_process() {
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)).grown(
        ContainerKind::List,
        attribute(1, "trainer", "Trainer", "ious"),
        elements(10 * MB, &[Trait::Tensor, Trait::Graph]),
        rising(4, 4, 8),
    );
    let growth = run.finding().growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit - 10.0 * MB as f64).abs() < 1.0, "{growth:?}");
}

#[test]
fn containers_are_followed_where_epochs_cannot_be_told() {
    let run = Run::of(SOURCE).boundaries(Unit::Steps, 10, rising(400 * MB, 5 * MB, 12));
    let finding = ious(run, rising(2, 2, 12)).finding();
    assert_eq!(finding.severity, Severity::Error);
    let growth = finding.growth.clone().expect("it grows");
    assert_eq!((growth.bytes_per_epoch, growth.elements_per_epoch), (None, None));
}

/// Epochs of ten seconds and twenty steps that gain 300 KB, of which elements of so many bytes are a part.
fn small_run(bytes: u64, facts: &[Trait]) -> Run {
    ious(Run::of(SOURCE).epochs(rising(400 * MB, 300_000, 10)), []).grown(
        ContainerKind::List,
        attribute(2, "trainer", "Trainer", "ious"),
        elements(bytes, facts),
        rising(20, 20, 10),
    )
}

#[test]
fn a_small_leak_counts_if_a_day_makes_it_large() {
    let small = |bytes, facts: &[Trait]| {
        let run = small_run(bytes, facts).traced(2, "self.ious.append", "Trainer.validate");
        let finding = run.finding();
        (finding.confidence, finding.severity)
    };
    // 180 KB per epoch are 1.5 GB in a day: less than what decides about the process.
    assert_eq!(small(9_000, &[Trait::Tensor, Trait::Graph]), (Confidence::Proved, Severity::Warning));
    // 30 KB per epoch, but more than 1 KB a step: a twentieth of what is left of the memory.
    assert_eq!(small(1_500, &[Trait::Tensor]).1, Severity::Warning);
    assert_eq!(small(800, &[Trait::Tensor]).1, Severity::Info);
    // Rows of numbers are what one keeps.
    assert_eq!(small(9_000, &[Trait::Record]).1, Severity::Info);
    // Epochs of an hour.
    let seldom = small_run(9_000, &[Trait::Tensor]).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.time_ns *= 360;
            }
        }
    });
    assert_eq!(seldom.finding().severity, Severity::Info);
}

#[test]
fn what_is_proved_and_most_of_the_growth_is_named_whatever_it_is() {
    let rows = |bytes| small_run(bytes, &[Trait::Record]).traced(2, "self.ious.append", "Trainer.validate");
    let told = |bytes| (rows(bytes).finding().confidence, rows(bytes).finding().severity);
    assert_eq!(told(14_000), (Confidence::Proved, Severity::Warning));
    // Three fifths of it are worth knowing, and explain it.
    assert_eq!(told(9_000), (Confidence::Proved, Severity::Info));
    let accounts = |bytes| rows(bytes).note(&NoteCode::Unexplained).is_none();
    assert!(accounts(9_000) && !accounts(3_000));
}

#[test]
fn readings_that_are_missing_make_a_run_no_shorter() {
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 16)).edit(|recording| {
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message
                && boundary.seq % 2 == 1
            {
                boundary.malloc_bytes = 0;
            }
        }
    });
    let verdicts = run.diagnose().verdicts;
    let in_use = verdicts.iter().find(|verdict| verdict.series == Series::InUse).expect("it was read");
    let epochs = f64::from(in_use.boundaries + in_use.warmup) * in_use.boundary_units;
    assert!((14.0..=16.0).contains(&epochs) && in_use.boundaries <= 8, "{in_use:?}");
}

#[test]
fn caulk_does_not_tell_on_itself() {
    let mut holder = library(1, "torch.optim", "_watched");
    holder.owner_type = "caulk._backward.StaleGradients".into();
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)).grown(
        ContainerKind::Dict,
        holder,
        elements(5 * MB / 2, &[Trait::Tensor]),
        rising(1, 1, 8),
    );
    assert_eq!(run.diagnose().findings, []);
}

#[test]
fn elements_in_a_web_of_references_are_charged_by_elimination() {
    let run = |step: u64| {
        Run::of(SOURCE).epochs(rising(400 * MB, step, 8)).grown(
            ContainerKind::List,
            attribute(1, "trainer", "Trainer", "ious"),
            Contents { traits: vec![Trait::Shared], ..Contents::default() },
            rising(4, 4, 8),
        )
    };
    let finding = run(10 * MB).finding();
    assert_ne!(finding.severity, Severity::Info);
    let growth = finding.growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (10.0 * MB as f64) - 1.0).abs() < 0.05, "{growth:?}");
    // Without growth to account for, what is seen of them weighs nothing.
    assert_eq!(run(0).diagnose().findings, []);
}

#[test]
fn tensors_of_parts_of_arrays_are_charged_with_what_they_keep_of_them() {
    let run = |facts: &[Trait]| {
        Run::of(SOURCE)
            .epochs(rising(400 * MB, 10 * MB, 8))
            .grown(
                ContainerKind::List,
                attribute(1, "trainer", "Trainer", "ious"),
                elements(4 << 10, facts),
                rising(4, 4, 8),
            )
            .diagnose()
    };
    let findings = run(&[Trait::Tensor, Trait::Borrowed]).findings;
    let finding = findings.iter().find(|finding| finding.holder == "trainer.ious").expect("it grows");
    assert_eq!((finding.class, finding.severity), (LeakClass::ViewPinsStorage, Severity::Error));
    assert!(finding.pinned.is_none(), "{:?}", finding.pinned);
    let growth = finding.growth.as_ref().expect("it grows");
    assert!((growth.bytes_per_unit / (10.0 * MB as f64) - 1.0).abs() < 0.05, "{growth:?}");
    let findings = run(&[Trait::Tensor]).findings;
    assert!(findings.iter().all(|finding| finding.class != LeakClass::ViewPinsStorage), "{findings:?}");
}

#[test]
fn elements_that_do_not_tell_what_they_keep_are_charged_with_what_nothing_else_keeps() {
    let charged = |type_name: &str| {
        let contents =
            Contents { element_types: vec![(type_name.into(), 8)], ..elements(640, &[Trait::Installed]) };
        let ious = attribute(1, "trainer", "Trainer", "ious");
        let run = Run::of(SOURCE).epochs(rising(400 * MB, 4 * MB, 8));
        let findings = run.grown(ContainerKind::List, ious, contents, rising(2, 2, 8)).diagnose().findings;
        let growths = findings.into_iter().filter_map(|finding| finding.growth.clone());
        growths.map(|growth| growth.bytes_per_unit).fold(0.0, f64::max)
    };
    assert!(charged("numpy.memmap") > 3.8 * MB as f64);
    assert!(charged("functools._lru_list_elem") > 3.8 * MB as f64);
    assert!(charged("numpy.other") < 0.1 * MB as f64);
}

#[test]
fn what_a_library_notes_of_the_same_elements_does_not_stand_in_the_way() {
    let shared = || Contents { traits: vec![Trait::Shared], ..Contents::default() };
    let run = Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8));
    let ious = attribute(1, "trainer", "Trainer", "ious");
    let run = run.grown(ContainerKind::List, ious, shared(), rising(4, 4, 8));
    let waiters = library(2, "asyncio.locks", "_waiters");
    let run = run.grown(ContainerKind::Deque, waiters, shared(), rising(4, 4, 8));
    let findings = run.traced(2, "for batch in batches", "Trainer.validate").diagnose().findings;
    let told: Vec<_> = findings.iter().map(|finding| (finding.holder.as_str(), finding.severity)).collect();
    let notes = "asyncio.locks._waiters";
    assert_eq!(told, [("trainer.ious", Severity::Warning), (notes, Severity::Info)]);
}

#[test]
fn what_is_seen_behind_a_graph_is_the_least_that_it_keeps() {
    let run = |bytes: u64| {
        Run::of(SOURCE)
            .epochs(rising(400 * MB, 10 * MB, 8))
            .grown(
                ContainerKind::List,
                attribute(1, "trainer", "Trainer", "ious"),
                elements(bytes, &[Trait::Tensor, Trait::Graph]),
                rising(4, 4, 8),
            )
            .finding()
    };
    let growth = run(MB / 2).growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (10.0 * MB as f64) - 1.0).abs() < 0.05, "{growth:?}");
    // Too small a part of the whole to be taken for its cause.
    let growth = run(MB / 8).growth.clone().expect("it grows");
    assert!(growth.bytes_per_unit < MB as f64, "{growth:?}");
}

#[test]
fn a_long_run_without_epochs_is_judged_as_a_whole() {
    // 32 KiB per step are below what one epoch must gain, and 94 MiB over 3,000 steps.
    let step = 32 << 10;
    let run = |step: u64| Run::of(SOURCE).boundaries(Unit::Steps, 32, rising(400 * MB, 32 * step, 94));
    let state = |step: u64| run(step).diagnose().verdicts[0].state;
    assert_eq!((state(step), state(64), state(0)), (State::Grows, State::Flat, State::Flat));
    let verdict = &run(step).diagnose().verdicts[0];
    assert!((verdict.bytes_per_unit / step as f64 - 1.0).abs() < 0.01, "{verdict:?}");
    let steps = f64::from(verdict.boundaries + verdict.warmup) * verdict.boundary_units;
    assert!((steps - 2976.0).abs() < 64.0, "{steps}");
}

#[test]
fn a_finding_costs_what_the_machine_loses() {
    let check = |more: u64, told: f64| {
        let leak = ious(Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)), rising(4, 4, 8));
        let run = leak.edit(|recording| {
            for (epoch, event) in (0..).zip(&mut recording.events) {
                if let Message::Boundary(boundary) = &mut event.message {
                    boundary.rss_bytes += epoch * more;
                }
            }
        });
        let finding = run.finding();
        let growth = finding.growth.clone().expect("it grows");
        assert!((growth.bytes_per_unit / (told * MB as f64) - 1.0).abs() < 0.05, "{growth:?}");
        let is_said = finding.evidence.iter().any(|fact| fact.kind() == "resident");
        assert_eq!(is_said, told > 11.0, "{:?}", finding.evidence);
    };
    check(5 * MB, 15.0);
    // Pages that are ten times as many are there for something else.
    check(90 * MB, 10.0);
}

/// Blocks that stay, and 190 MB per epoch around them, which malloc has free.
#[test]
fn what_keeps_a_heap_in_pieces_costs_all_of_them() {
    let leak =
        ious(Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)), rising(4, 4, 8)).edit(|recording| {
            for (epoch, event) in (0..).zip(&mut recording.events) {
                if let Message::Boundary(boundary) = &mut event.message {
                    boundary.rss_bytes += epoch * 190 * MB;
                    boundary.malloc_heap_bytes = 500 * MB + epoch * 200 * MB;
                    boundary.malloc_free_bytes = 100 * MB + epoch * 190 * MB;
                }
            }
        });
    let growth = leak.finding().growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / MB as f64 - 200.0).abs() < 2.0, "{growth:?}");
    assert!(growth.in_use_per_unit.is_some_and(|own| own < 11.0 * MB as f64), "{growth:?}");
}

/// A leak of 10 MB per epoch, of which 23 MB are given back before the last two.
fn given_back_once() -> Run {
    Run::of(SOURCE).epochs([400, 410, 420, 430, 440, 450, 427, 437].map(|level| level * MB))
}

#[test]
fn what_something_else_gives_back_at_once_hides_no_leak() {
    let run = ious(given_back_once(), rising(4, 4, 8));
    assert_eq!(run.finding().severity, Severity::Error);
    let verdict = &run.diagnose().verdicts[0];
    assert_eq!((verdict.state, verdict.last), (State::Grows, 437.0 * MB as f64));
    assert!(verdict.text.ends_with("but for 33.0 MB that something else gave back"), "{}", verdict.text);
}

#[test]
fn what_is_cut_when_memory_falls_is_no_leak() {
    let cut = ious(given_back_once(), [4, 8, 12, 16, 20, 24, 15, 19]);
    assert_eq!(cut.diagnose().verdicts[0].state, State::Sawtooth);
    // Not looked at again: it may have been cut.
    let unseen = ious(given_back_once(), rising(4, 4, 6));
    assert_eq!(unseen.diagnose().verdicts[0].state, State::Sawtooth);
    assert!(unseen.diagnose().findings.iter().all(|finding| finding.severity == Severity::Info));
}

#[test]
fn elements_that_would_keep_more_than_there_is_keep_the_same() {
    // Views of one tensor: each seems to pin all of it, and 240 of them 480 MB of the 500 that are in use.
    let views = |bytes: u64| {
        let contents = elements(bytes, &[Trait::Tensor]);
        Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 8)).grown(
            ContainerKind::List,
            attribute(1, "trainer", "Trainer", "ious"),
            contents,
            rising(30, 30, 8),
        )
    };
    let beside = |bytes: u64| {
        views(bytes).grown(
            ContainerKind::List,
            attribute(2, "trainer", "Trainer", "losses"),
            elements(10 * MB, &[Trait::Tensor]),
            rising(1, 1, 8),
        )
    };
    let told = |run: &Run| -> Vec<(u32, f64)> {
        let findings =
            run.diagnose().findings.into_iter().filter(|finding| finding.severity > Severity::Info);
        let figures = findings.map(|finding| {
            let bytes = finding.growth.clone().map_or(0.0, |growth| growth.bytes_per_unit);
            (finding.sites[0].line, (bytes / MB as f64).round())
        });
        figures.collect()
    };
    let (ious, losses) = (8, 9);
    assert_eq!(told(&beside(4 * MB)), [(losses, 10.0)], "what is not theirs is not taken from others");
    assert_eq!(told(&views(4 * MB)), [(ious, 10.0)], "alone it is what grows");
    assert_eq!(told(&beside(MB / 16)).len(), 2, "what there may be is believed");
}

#[test]
fn the_arenas_say_how_small_the_objects_are() {
    // 100,000 floats of 32 bytes an epoch, which a mean size of 80 bytes makes twice as many bytes as there are.
    let run = |arenas: bool| {
        Run::of(SOURCE).epochs([400 * MB; 12]).edit(move |recording| {
            for event in &mut recording.events {
                if let Message::Boundary(boundary) = &mut event.message {
                    boundary.small_blocks = 1_000_000 + 100_000 * boundary.index;
                    boundary.small_bytes = 80 * boundary.small_blocks;
                    boundary.arena_bytes = if arenas { 92 * MB + 3 * MB * boundary.index } else { 0 };
                }
            }
        })
    };
    let rate = |arenas| run(arenas).diagnose().verdicts[0].bytes_per_unit;
    assert!((rate(false) - 8e6).abs() < 1e5, "{}", rate(false));
    assert!((rate(true) - 3.3e6).abs() < 2e5, "{}", rate(true));
}

#[test]
fn what_was_met_within_the_first_epoch_alone_grows_no_further() {
    // The first epoch is looked at step by step; its list is emptied at its end, or let go of.
    let run = |seen: &[(u32, u64)], epochs: u64| {
        let steps = Run::of(SOURCE).boundaries(Unit::Steps, 1, rising(400 * MB, 0, 10));
        let mut run = steps.edit(|recording| {
            if let Message::Boundary(first) = &mut recording.events[0].message {
                (first.unit, first.index) = (Unit::Epoch, 0);
            }
            for seq in 1..epochs {
                let boundary = Boundary {
                    seq: 9 + seq as u32,
                    time_ns: (10 + 200 * seq) * 1_000_000_000,
                    unit: Unit::Epoch,
                    index: seq,
                    steps: 1 + 20 * seq,
                    malloc_bytes: 400 * MB + 10 * MB * seq,
                    rss_bytes: 700 * MB + 10 * MB * seq,
                    census_objects: 100_000,
                    ..Boundary::default()
                };
                recording.events.push(AgentEvent { time_ns: 0, pid: 7, message: boundary.into() });
            }
        });
        run = ious(run, []);
        for &(boundary, len) in seen {
            let length =
                ContainerLen { boundary, id: 1, kind: ContainerKind::List, len, ..ContainerLen::default() };
            run = run.say(length);
        }
        run.traced(1, "self.ious.append", "Trainer.validate").diagnose()
    };
    let first = [(2, 3), (3, 4), (4, 5), (8, 9)];
    let gone = run(&first, 12);
    assert_eq!(gone.verdicts[0].state, State::Grows);
    assert_eq!(gone.findings, [], "nothing is proved against it");
    let stays = run(&[&first[..], &[(11, 40), (12, 60), (13, 80), (20, 220)]].concat(), 12);
    assert_eq!((stays.findings.len(), stays.findings[0].severity), (1, Severity::Error));
}

#[test]
fn what_fills_within_the_last_epochs_explains_no_growth_of_all_of_them() {
    let mut run = ious(Run::of(SOURCE).epochs(rising(400 * MB, 10 * MB, 12)), []);
    for (boundary, len) in [(9, 1), (10, 4), (11, 8)] {
        run = run.say(ContainerLen {
            boundary,
            id: 1,
            kind: ContainerKind::List,
            len,
            ..ContainerLen::default()
        });
    }
    let bytes = run.finding().growth.clone().expect("it grows").bytes_per_unit;
    assert!(bytes < 2.0 * MB as f64, "{bytes}");
}

#[test]
fn what_another_version_has_recorded_is_noted_once() {
    let mut contents = elements(25 * MB, &[Trait::Tensor, Trait::Unknown("on-disk".into())]);
    contents.id = 1;
    let run = ious(Run::of(SOURCE).epochs(rising(400 * MB, 25 * MB, 8)), rising(4, 4, 8));
    assert_eq!(run.note(&NoteCode::OtherVersion), None);
    let code = NoteCode::Unknown("of-later".into());
    let run = run.say(contents.clone()).say(contents).say(Said { code, text: "x".into() });
    let note = run.note(&NoteCode::OtherVersion).expect("a note");
    assert!(note.contains("`of-later`, `on-disk`"), "{note}");
}
