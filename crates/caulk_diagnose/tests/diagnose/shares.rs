//! The growth of each series is shared out once, and severity goes by the share.

use caulk_core::wire::{ContainerKind, Contents, Message, Trait};
use caulk_core::{Finding, LeakClass, Series, Severity};

use crate::run::{MB, Run, attribute, elements, rising};

const SOURCE: &str = "\
class Trainer:
    def validate(self, loss):
        self.total += loss
        self.first.append(loss)
        self.second.append(loss)
        self.third.append(loss)


def main():
    trainer = Trainer()
    for epoch in range(8):
        trainer.validate(epoch)
";

/// Memory that grows by 100 MB per epoch, and traced lists that each hold so many of these.
fn lists(each: &[(&str, u64)]) -> Vec<Finding> {
    let mut run = Run::of(SOURCE).epochs(rising(400 * MB, 100 * MB, 8));
    for (id, (name, megabytes)) in (0..).zip(each) {
        let contents = elements(megabytes * MB, &[Trait::Tensor]);
        let holder = attribute(id, "trainer", "Trainer", name);
        run = run.grown(ContainerKind::List, holder, contents, rising(1, 1, 8));
        run = run.traced(id, &format!("self.{name}.append"), "Trainer.validate");
    }
    run.diagnose().findings
}

/// Severity of the finding about this list.
fn severity(findings: &[Finding], name: &str) -> Severity {
    let is_it = |finding: &&Finding| finding.container == format!("self.{name}");
    findings.iter().find(is_it).expect("it is found").severity
}

#[test]
fn a_small_share_is_a_warning_and_a_tiny_one_is_advice() {
    let findings = lists(&[("first", 86), ("second", 10), ("third", 4)]);
    let severities = ["first", "second", "third"].map(|name| severity(&findings, name));
    assert_eq!(severities, [Severity::Error, Severity::Warning, Severity::Info]);
}

#[test]
fn several_small_shares_that_are_much_together_count_as_one() {
    let findings = lists(&[("first", 70), ("second", 15), ("third", 15)]);
    let severities = ["first", "second", "third"].map(|name| severity(&findings, name));
    assert_eq!(severities, [Severity::Error; 3]);
}

#[test]
fn a_graph_whose_tensors_are_on_a_gpu_is_settled_against_the_growth_of_the_gpu() {
    let graph = |nodes: u64| Contents {
        graph_nodes: nodes,
        saved_bytes: nodes * MB,
        bytes_per_element: MB,
        cuda_bytes_per_element: MB,
        traits: vec![Trait::Tensor, Trait::Graph],
        ..Contents::default()
    };
    // The host gains the nodes, the GPU the tensors that they saved.
    let mut run = Run::of(SOURCE).epochs(rising(400 * MB, 2 * MB, 8)).edit(|recording| {
        let mut epoch = 0;
        for event in &mut recording.events {
            if let Message::Boundary(boundary) = &mut event.message {
                boundary.cuda_allocated_bytes = (1000 + 100 * epoch) * MB;
                epoch += 1;
            }
        }
    });
    let holder = attribute(1, "trainer", "Trainer", "total");
    run = run.grown(ContainerKind::Graph, holder, graph(100), rising(100, 100, 8));
    for boundary in 1..8 {
        run = run.say(Contents { id: 1, boundary, ..graph(100 + 100 * u64::from(boundary)) });
    }
    let findings = run.traced(1, "self.total += loss", "Trainer.validate").diagnose().findings;
    let found = &findings[0];
    assert_eq!((found.class, found.severity), (LeakClass::LossKeptWithGraph, Severity::Error));
    let growth = found.growth.as_ref().expect("it grows");
    assert_eq!(growth.series, Series::CudaAllocated);
    assert!((growth.bytes_per_unit / (100 * MB) as f64 - 1.0).abs() < 0.05, "{growth:?}");
}
