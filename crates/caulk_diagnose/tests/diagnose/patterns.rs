//! What source alone shows is told with what the run saw.

use caulk_core::wire::{
    ContainerKind, HeapFrame, HeapLive, HeapRow, HeapStack, Hello, Trait, TypeCount, Types,
};
use caulk_core::{Confidence, LeakClass, Severity, SiteRole};

use crate::run::{FILE, MB, Run, attribute, elements, library, message, rising};

const TRAINER: &str = "\
import matplotlib.pyplot as plt
import torch


class Trainer:
    def __init__(self, model):
        self.model = model
        self.ious = []
        self.losses = []

    def validate(self, loader):
        for batch in loader:
            iou = self.model(batch)
            self.ious.append(iou)
            self.losses.append(iou.mean())

    def fit(self, loader):
        for epoch in range(10):
            self.validate(loader)
            plt.figure()
            plt.savefig('out.png')


def main(loader):
    trainer = Trainer(torch.nn.Linear(2, 2))
    trainer.fit(loader)


main(torch.utils.data.DataLoader([]))
";

fn started(run: Run) -> Run {
    run.say(Hello { argv: vec!["/job/train.py".into()], ..Hello::default() })
}

fn leak() -> Run {
    started(Run::of(TRAINER)).epochs(rising(400 * MB, 10 * MB, 8))
}

#[test]
fn a_line_that_was_seen_gets_its_story_and_its_twins() {
    let ious = attribute(0, "trainer", "Trainer", "ious");
    let run = leak()
        .grown(
            ContainerKind::List,
            ious,
            elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]),
            rising(4, 4, 8),
        )
        .traced(0, "self.ious.append", "Trainer.validate");
    let (alone, joined) = (run.finding(), run.diagnose_checked().findings.remove(0));
    assert_eq!((joined.class, joined.confidence), (alone.class, Confidence::Proved));
    assert_eq!(joined.sites, alone.sites);
    let has = |line: &str| joined.chain.iter().any(|step| step.line == run.line(line));
    assert!(has("iou = self.model(batch)") && has("for batch in loader"), "{:#?}", joined.chain);
    assert!(
        joined.twins.iter().any(|twin| twin.line == run.line("self.losses.append")),
        "{:#?}",
        joined.twins
    );
}

#[test]
fn of_many_twins_the_first_are_named_and_the_others_counted() {
    let more =
        (0..60).map(|n| format!("            self.ious.append(iou * {n})\n")).collect::<Vec<_>>().concat();
    let source = TRAINER.replace("            self.losses.append(iou.mean())\n", &more);
    let ious = attribute(0, "trainer", "Trainer", "ious");
    let run = started(Run::of(&source)).epochs(rising(400 * MB, 10 * MB, 8));
    let run = run
        .grown(
            ContainerKind::List,
            ious,
            elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]),
            rising(4, 4, 8),
        )
        .traced(0, "self.ious.append(iou)", "Trainer.validate");
    let finding = run.diagnose_checked().findings.remove(0);
    assert_eq!((finding.twins.len(), finding.more_twins), (20, 40), "{:#?}", finding.twins);
}

#[test]
fn the_only_line_that_does_it_is_named_though_nobody_watched() {
    let figures = library(0, "matplotlib._pylab_helpers", "figs");
    let contents = elements(5 * MB / 2, &[Trait::Figure]);
    let run = leak().grown(ContainerKind::Dict, figures, contents, rising(4, 4, 8));
    assert_eq!(run.finding().sites, []);
    let joined = run.diagnose_checked().findings.remove(0);
    let site = joined.sites.first().expect("a line");
    assert_eq!((site.line, joined.confidence), (run.line("plt.figure()"), Confidence::Likely));
}

#[test]
fn growth_that_nothing_explains_names_the_suspects() {
    let findings = leak().diagnose_checked().findings;
    let told = findings.iter().find(|finding| finding.sites[0].line == leak().line("self.ious.append"));
    let told = told.expect("a suspect");
    assert_eq!((told.confidence, told.severity), (Confidence::Suspected, Severity::Warning));
    let steady = started(Run::of(TRAINER)).epochs([400 * MB; 8]).diagnose_checked();
    assert_eq!(steady.findings, []);
}

#[test]
fn a_pattern_of_another_name_is_not_taken_for_what_grew() {
    let other = attribute(0, "other", "Other", "rows");
    let contents = elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]);
    let run = leak().grown(ContainerKind::List, other, contents, rising(4, 4, 8));
    let findings = run.diagnose_checked().findings;
    let grew = findings.iter().find(|finding| finding.holder == "other.rows").expect("what grew");
    assert_eq!(grew.sites, [], "{grew:#?}");
}

#[test]
fn a_line_that_allocates_what_stays_is_what_its_source_shows() {
    let source = "\
import numpy as np


class Bank:
    def __init__(self):
        self.rows = np.empty(0)

    def add(self, rows):
        self.rows = np.concatenate([self.rows, rows])


bank = Bank()
for epoch in range(10):
    bank.add(np.zeros(9))
";
    let mut run = started(Run::of(source)).epochs(rising(400 * MB, 10 * MB, 8));
    let line = run.line("np.concatenate");
    let frames = vec![HeapFrame { file: FILE.into(), line, function: "Bank.add".into() }];
    run = run.say(HeapStack { id: 0, flags: 0, frames });
    for boundary in 0..8_u32 {
        let at = u64::from(boundary);
        let rows = vec![HeapRow { id: 0, bytes: 9 * MB * at, blocks: 1, deviation: MB / 10 }];
        let arrays = TypeCount { name: "numpy.ndarray".into(), count: 5, bytes: 0 };
        run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
        run = run.say(Types { boundary, rows: vec![arrays] });
    }
    let finding = run.diagnose_checked().findings.remove(0);
    assert_eq!((finding.class, finding.sites[0].line), (LeakClass::UnboundedHistory, line));
    assert_eq!((finding.severity, finding.confidence), (Severity::Error, Confidence::Likely));
    assert!(
        message(&finding).contains("+9.00 MB per epoch of what is allocated here"),
        "{}",
        message(&finding)
    );
}

/// Entries of a dict that longer ones replace: no container gets longer.
const ENTRIES: &str = "\
import torch


class Bank:
    def __init__(self):
        self.rows, self.means = {}, []

    def add(self, label, new):
        rows = torch.cat([self.rows[label], new])
        rows = rows[-100000:]
        self.rows[label] = rows

    def mean(self, label):
        stacked = torch.stack(list(self.rows[label]))
        self.means.append(stacked.mean().item())


bank = Bank()
for epoch in range(10):
    bank.add(0, torch.zeros(9))
";

#[test]
fn what_stores_that_which_a_line_makes_is_told_by_the_source() {
    let told = |made: &str| {
        let mut run = started(Run::of(ENTRIES)).epochs(rising(400 * MB, 10 * MB, 8));
        let line = run.line(made);
        let frames = vec![HeapFrame { file: FILE.into(), line, function: "Bank.add".into() }];
        run = run.say(HeapStack { id: 0, flags: 0, frames });
        for boundary in 0..8_u32 {
            let bytes = 9 * MB * u64::from(boundary);
            let rows = vec![HeapRow { id: 0, bytes, blocks: bytes / MB, deviation: MB / 10 }];
            run = run.say(HeapLive { boundary, interval: 524_288, rows, ..HeapLive::default() });
        }
        run.diagnose().findings.remove(0)
    };
    let kept = told("torch.cat");
    assert_eq!((kept.class, kept.container.as_str()), (LeakClass::UnboundedHistory, "self.rows"));
    assert_eq!((kept.severity, kept.confidence), (Severity::Error, Confidence::Likely));
    let lines: Vec<_> = kept.sites.iter().map(|site| (site.line, site.role)).collect();
    assert_eq!(lines, [(11, SiteRole::Grows), (9, SiteRole::Allocates)], "what stores it leads");
    assert!(message(&kept).contains("`self.rows` keeps what line 9 makes"), "{}", message(&kept));
    assert_eq!(told("torch.stack").class, LeakClass::NativeGrowth, "what is stored is a number");
}

#[test]
fn tensors_that_were_seen_to_have_no_graph_are_not_detached() {
    let class = |traits: &[Trait]| {
        let ious = attribute(0, "trainer", "Trainer", "ious");
        let run = leak().grown(ContainerKind::List, ious, elements(5 * MB / 2, traits), rising(4, 4, 8));
        let finding =
            run.traced(0, "self.ious.append", "Trainer.validate").diagnose_checked().findings.remove(0);
        (finding.class, caulk_report::fix(&finding).map_or_else(String::new, |fix| fix.description))
    };
    let (kept, change) = class(&[Trait::Tensor, Trait::Graph]);
    assert!(kept == LeakClass::GraphKeptInContainer && change.contains("detach"), "{kept}: {change}");
    let (kept, change) = class(&[Trait::Tensor]);
    assert!(kept == LeakClass::UnboundedHistory && !change.contains("detach"), "{kept}: {change}");
}
