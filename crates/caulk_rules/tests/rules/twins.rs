//! Findings that are due to the same name each other.

use caulk_core::{Diagnostic, LeakClass};
use caulk_python::{Analysis, Project, SourceFile};
use caulk_rules::{RULES, check};

/// Lines of a class's findings, each with the lines of its twins.
fn twins(class: LeakClass, text: &str) -> Vec<(u32, Vec<u32>)> {
    let file = SourceFile { path: "a.py".into(), text: text.into() };
    let found = check(&Analysis::new(Project::new([file])), RULES);
    let lines = |found: Diagnostic| (found.sites[0].line, found.twins.iter().map(|twin| twin.line).collect());
    found.into_iter().filter(|found| found.class == class).map(lines).collect()
}

#[test]
fn lines_that_grow_one_attribute_are_twins() {
    let text = "\
import torch
import torch.nn.functional as F

class Trainer:
    def __init__(self, model):
        self.model = model
        self.ious = []
        self.losses = []

    def train(self, loader):
        for x, y in loader:
            self.losses.append(F.mse_loss(self.model(x), y))

    def validate(self, loader):
        for x, y in loader:
            self.ious.append(F.l1_loss(self.model(x), y))
            self.losses.append(F.mse_loss(self.model(x), y))

def main(model, loader, epochs):
    trainer = Trainer(model)
    for epoch in range(epochs):
        trainer.train(loader)
        trainer.validate(loader)
";
    assert_eq!(twins(LeakClass::GraphKeptInContainer, text), [(12, vec![17]), (16, vec![]), (17, vec![12])]);
}

#[test]
fn calls_of_one_function_are_twins() {
    let text = "\
import matplotlib.pyplot as plt

def main(model, loader, epochs):
    for epoch in range(epochs):
        figure, axes = plt.subplots()
        axes.plot(model.losses)
        figure.savefig('losses.png')
        other, more = plt.subplots()
        more.plot(model.rates)
        other.savefig('rates.png')
";
    assert_eq!(twins(LeakClass::FigureNotClosed, text), [(5, vec![8]), (8, vec![5])]);
}

#[test]
fn of_many_twins_the_first_are_named_and_the_others_counted() {
    let lines = (0..50)
        .map(|n| format!("        losses.append(F.mse_loss(model(x), y) * {n})\n"))
        .collect::<Vec<_>>()
        .concat();
    let text = format!(
        "import torch.nn.functional as F\n\nlosses = []\n\ndef main(model, loader):\n    for x, y in loader:\n{lines}"
    );
    let file = SourceFile { path: "a.py".into(), text };
    let found = check(&Analysis::new(Project::new([file])), RULES);
    let found: Vec<_> = found.iter().filter(|found| found.class == LeakClass::GraphKeptInContainer).collect();
    assert_eq!(found.len(), 50);
    assert!(found.iter().all(|found| (found.twins.len(), found.more_twins) == (20, 29)));
}
