//! Leak patterns in Python source: one file per rule, one page beside it.
//!
//! Values in, values out: an [`Analysis`] gives [`Diagnostic`]s. A rule decides what a fact of the analysis means for
//! memory; what is a fact (what grows, what goes in, how often, what releases it) is `caulk_python`'s business.

mod advice;
mod carried;
mod claims;
mod classify;
mod container;
mod context;
mod exposure;
mod fixes;
mod grades;
mod graphs;
mod memo;
mod offered;
mod proven;
mod resource;
mod rule;
mod rules;
mod silence;
mod source;
mod tables;
mod twins;
mod weight;
mod written;

use caulk_core::{Diagnostic, LeakClass};
use caulk_python::{Analysis, with_room};

use crate::claims::Claims;
use crate::context::Context;
pub use crate::grades::{ClassGrade, GRADES};
pub use crate::rule::Rule;
pub use crate::rules::RULES;
pub use crate::silence::silence;
use crate::twins::Found;

/// The rule of a class, where source can show the class.
pub fn rule(class: LeakClass) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.class == class)
}

/// Everything that the given rules find, in order of files and lines.
pub fn check(analysis: &Analysis, rules: &[&Rule]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    with_room(|| {
        let claims = Claims::new(analysis);
        for rule in rules {
            let mut context = Context::new(rule.class, analysis, &claims, &mut found);
            (rule.check)(&mut context);
        }
    });
    found.iter_mut().for_each(Found::settle);
    found.sort_by(|a, b| place(&a.diagnostic).cmp(&place(&b.diagnostic)));
    found.dedup_by(|a, b| place(&a.diagnostic) == place(&b.diagnostic));
    let mut found = twins::named(found);
    for diagnostic in &mut found {
        diagnostic.fix = diagnostic.fix.take().or_else(|| Some(diagnostic.class.advice()));
    }
    found
}

fn place(diagnostic: &Diagnostic) -> Option<(&str, u32, u32, LeakClass)> {
    diagnostic.sites.first().map(|site| (site.file.as_str(), site.line, site.column, diagnostic.class))
}
