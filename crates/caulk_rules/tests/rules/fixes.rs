//! Fixes of every page's programs: what they leave parses, the finding is gone, and nothing new is found.

use std::collections::HashMap;

use caulk_core::{Applicability, Diagnostic, Edit, LeakClass};
use caulk_python::{Analysis, Project, SourceFile, apply};
use caulk_rules::{RULES, check};

use crate::page::Page;

#[test]
fn a_fix_parses_and_takes_its_finding_away() {
    let wrong: Vec<_> = RULES
        .iter()
        .flat_map(|rule| Page::parse(rule.explanation).programs)
        .filter_map(|program| fix_all(program.sources()).err())
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

/// Applies one fix after the other until none is offered: each must take a finding away, so this ends, and what is
/// left offers no fix, so that fixing again changes nothing.
fn fix_all(mut sources: Vec<SourceFile>) -> Result<(), String> {
    loop {
        let before = find(&sources);
        let Some(fixed) = before.iter().find(|diagnostic| !edits(diagnostic).is_empty()) else {
            return Ok(());
        };
        let changed = edited(&sources, edits(fixed))
            .ok_or_else(|| format!("{}: edits do not fit the text: {:?}", fixed.class, fixed.fix))?;
        verify(&changed, &before, fixed).map_err(|wrong| {
            let text: Vec<_> = changed.iter().map(|file| file.text.as_str()).collect();
            format!("{}: {wrong}, after fixing `{}`:\n{}", fixed.class, fixed.message, text.join("\n"))
        })?;
        sources = changed;
    }
}

fn find(sources: &[SourceFile]) -> Vec<Diagnostic> {
    check(&Analysis::new(Project::new(sources.to_vec())), RULES)
}

/// What `--unsafe-fixes` would apply.
fn edits(diagnostic: &Diagnostic) -> &[Edit] {
    match &diagnostic.fix {
        Some(fix) if fix.applicability != Applicability::DisplayOnly => &fix.edits,
        _ => &[],
    }
}

fn edited(sources: &[SourceFile], edits: &[Edit]) -> Option<Vec<SourceFile>> {
    let edit = |source: &SourceFile| {
        let here: Vec<_> = edits.iter().filter(|edit| edit.file == source.path).cloned().collect();
        Some(SourceFile { path: source.path.clone(), text: apply(&source.text, &here)? })
    };
    sources.iter().map(edit).collect()
}

fn verify(changed: &[SourceFile], before: &[Diagnostic], fixed: &Diagnostic) -> Result<(), String> {
    let project = Project::new(changed.to_vec());
    if let Some(problem) = project.problems().first() {
        return Err(format!("it does not parse: {}", problem.message));
    }
    let (before, after) = (counts(before), counts(&find(changed)));
    let of = |counts: &HashMap<_, usize>, class| counts.get(&class).copied().unwrap_or(0);
    if of(&after, fixed.class) >= of(&before, fixed.class) {
        return Err("the finding is still there".to_owned());
    }
    // Without its graph an entry may still be a view, or one of too many: that is what is told of it then.
    let all = |counts: &HashMap<_, usize>| counts.values().sum::<usize>();
    if all(&after) > all(&before) {
        return Err("more is reported than before".to_owned());
    }
    Ok(())
}

fn counts(found: &[Diagnostic]) -> HashMap<LeakClass, usize> {
    let mut counts = HashMap::new();
    for diagnostic in found {
        *counts.entry(diagnostic.class).or_default() += 1;
    }
    counts
}

#[test]
fn what_is_a_number_of_other_callers_is_not_told_to_detach() {
    let meter = |grows: &str, class, update: &str| {
        let text = format!(
            "import torch.nn.functional as F\n\n\nclass Meter:\n    def __init__(self):\n        self.values = []\n        self.total = 0.0\n\n    \
             def update(self, value, n):\n        {grows}\n\n\n\
             def main(model, loader, optimizer, epochs):\n    train, meter = Meter(), Meter()\n    for epoch in range(epochs):\n        \
             for x, y in loader:\n            loss = F.mse_loss(model(x), y)\n            loss.backward()\n            {update}\n        \
             for x, y in loader:\n            meter.update(F.mse_loss(model(x), y), len(x))\n"
        );
        let found = find(&[SourceFile { path: "a.py".into(), text }]);
        let kept = found.iter().find(|found| found.class == class);
        kept.expect("the meter keeps graphs").fix.as_ref().map(|fix| fix.applicability)
    };
    for (grows, class) in [
        ("self.values.append(value * n)", LeakClass::GraphKeptInContainer),
        ("self.total += value * n", LeakClass::LossKeptWithGraph),
    ] {
        assert_eq!(
            meter(grows, class, "train.update(loss.item(), len(x))"),
            Some(Applicability::DisplayOnly)
        );
        assert_eq!(meter(grows, class, "optimizer.step()"), Some(Applicability::Unsafe));
    }
}
