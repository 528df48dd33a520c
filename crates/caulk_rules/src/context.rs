//! What a rule is handed: the analysis, and where its diagnostics go.

use caulk_core::{Confidence, Diagnostic, Scope, SiteRole};
use caulk_python::{Analysis, Location, Project};

use crate::rule::Rule;

pub(crate) struct Context<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) analysis: &'a Analysis,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(rule: &'a Rule, analysis: &'a Analysis, found: &'a mut Vec<Diagnostic>) -> Self {
        Self { rule, analysis, found }
    }

    pub(crate) fn project(&self) -> &'a Project {
        self.analysis.project()
    }

    /// Reports a pattern at a place; what comes back can be told more of.
    pub(crate) fn report(&mut self, at: Location, function: &str, message: String) -> &mut Diagnostic {
        let site = self.project().site(SiteRole::Grows, at, function);
        let index = self.found.len();
        self.found.push(Diagnostic {
            class: self.rule.class,
            confidence: Confidence::Likely,
            scope: Scope::Run,
            severity: self.rule.severity,
            message,
            container: self.project().file(at.file).slice(at.range.into()).to_owned(),
            sites: vec![site],
            chain: Vec::new(),
            fix: None,
            twins: Vec::new(),
        });
        &mut self.found[index]
    }
}
