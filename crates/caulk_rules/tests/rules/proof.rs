//! What a finding rests on: each part of the proof, proven and not, in programs that differ in that part alone.

use caulk_core::{Certainty, Diagnostic, LeakClass, Severity};
use caulk_python::{Analysis, Project, SourceFile};
use caulk_rules::{GRADES, RULES, check};

use Certainty::{Assumed, Likely, Proven};

fn found(text: &str, class: LeakClass) -> Diagnostic {
    let file = SourceFile { path: "a.py".into(), text: text.into() };
    let analysis = Analysis::new(Project::new([file]));
    assert!(analysis.problems().is_empty(), "{:?}", analysis.problems());
    let found = check(&analysis, RULES).into_iter().find(|found| found.class == class);
    found.unwrap_or_else(|| panic!("no {class} in {text}"))
}

/// Checks a part of the proof, and the severity, of a text with one of two things at `@`.
fn check_part(
    text: &str,
    class: LeakClass,
    part: fn(&Diagnostic) -> Certainty,
    cases: [(&str, Certainty, Severity); 2],
) {
    for (put, certainty, severity) in cases {
        let found = found(&text.replace('@', put), class);
        assert_eq!((part(&found), found.severity), (certainty, severity), "{put}: {found:?}");
    }
}

#[test]
fn every_rule_has_a_row() {
    let rules: Vec<LeakClass> = RULES.iter().map(|rule| rule.class).collect();
    let rows: Vec<LeakClass> = GRADES.iter().map(|grade| grade.class).collect();
    assert_eq!(rows, rules);
}

#[test]
fn a_name_does_not_show_that_a_graph_is_kept() {
    let text = "\
def scores(model, loader):
    kept = []
    for x, y in loader:
        out = model(x)
        @
        kept.append(out)
    return len(kept)
";
    check_part(
        text,
        LeakClass::GraphKeptInContainer,
        |found| found.proof.kind,
        [("out.mean().backward()", Proven, Severity::Warning), ("pass", Assumed, Severity::Info)],
    );
}

#[test]
fn what_is_unpacked_beside_a_loss_may_be_plain() {
    let text = "\
def total(criterion, loader):
    seen = 0
    for x, y in loader:
        loss, shown = criterion(x, y)
        loss.backward()
        seen += @
    return seen
";
    check_part(
        text,
        LeakClass::LossKeptWithGraph,
        |found| found.proof.kind,
        [("loss", Proven, Severity::Warning), ("shown", Assumed, Severity::Info)],
    );
}

#[test]
fn one_unknown_caller_does_not_silence_what_another_proves() {
    let text = "\
import torch
from torch import nn

kept = []

def note(value):
    kept.append(value)

def fit(loader):
    net = nn.Linear(3, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        note(loss)

def other(loader, something):
    for x in loader:
        note(something(x))
";
    let found = found(text, LeakClass::GraphKeptInContainer);
    assert_eq!((found.proof.kind, found.severity), (Proven, Severity::Error), "{found:?}");
}

#[test]
fn a_loop_that_is_named_and_not_counted_is_likely() {
    let text = "\
import matplotlib.pyplot as plt

def report(net, opt, rows, curves):
    for epoch in range(@):
        for x, y in rows:
            opt.zero_grad()
            (net(x) - y).square().mean().backward()
            opt.step()
        figure = plt.figure()
        figure.savefig(f'{epoch}.png')
";
    check_part(
        text,
        LeakClass::FigureNotClosed,
        |found| found.proof.repeats,
        [("200", Proven, Severity::Error), ("curves", Likely, Severity::Warning)],
    );
}

#[test]
fn a_condition_of_the_caller_s_settings_leaves_repetition_assumed() {
    let text = "\
from torch.utils.tensorboard import SummaryWriter

class Loggers:
    def __init__(self, options):
        @
            self.board = SummaryWriter(options.folder)

def train(net, opt, rows, options):
    loggers = Loggers(options)
    for x, y in rows:
        opt.zero_grad()
        (net(x) - y).square().mean().backward()
        opt.step()

def evolve(net, opt, rows, options):
    for generation in range(options.evolve):
        train(net, opt, rows, options)
";
    check_part(
        text,
        LeakClass::FileHandlesGrow,
        |found| found.proof.repeats,
        [("with options.lock:", Likely, Severity::Warning), ("if options.board:", Assumed, Severity::Info)],
    );
}

#[test]
fn an_element_of_an_array_may_be_a_number() {
    let text = "\
import numpy as np

class Offsets:
    def __init__(self):
        self.ends = []

    def merge(self, parts):
        for end in parts:
            self.ends.append(@)

def build(net, opt, rows):
    offsets = Offsets()
    for x, y in rows:
        opt.zero_grad()
        (net(x) - y).square().mean().backward()
        opt.step()
        offsets.merge(np.load('ends.npy'))
";
    check_part(
        text,
        LeakClass::UnboundedHistory,
        |found| found.proof.kind,
        [("np.zeros((3, 3))", Proven, Severity::Warning), ("end", Likely, Severity::Warning)],
    );
}

#[test]
fn an_entry_is_not_shown_to_be_large() {
    let text = "\
def recent(run):
    return run.when

def clean(keys=[]):
    keys.append(@)
    return sorted(keys)

def fit(net, opt, rows):
    for x, y in rows:
        opt.zero_grad()
        (net(x) - y).square().mean().backward()
        opt.step()
        clean()
";
    let text = &format!("import torch\n{text}");
    check_part(
        text,
        LeakClass::MutableDefaultGrows,
        |found| found.proof.kind,
        [("torch.zeros(1000)", Proven, Severity::Error), ("recent", Assumed, Severity::Info)],
    );
}
