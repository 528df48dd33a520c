//! What a rule is handed: the analysis, how to tell a story, and where its diagnostics go.

use caulk_core::{
    Certainty, ChainStep, Confidence, Diagnostic, LeakClass, Proof, Scope, Severity, Site, SiteRole,
};
use caulk_python::program::{FunctionId, Holder, LoopKind, ObjectId, Value};
use caulk_python::{Analysis, Location, Project};

use crate::carried::CarryClaim;
use crate::claims::{Claim, Claims};
use crate::exposure::Exposure;
use crate::twins::{Cause, Found};
use crate::weight::Weight;

/// Of a setting, a peak or an error of training, which says nothing of what outlives its turn.
const SHOWN: Proof = Proof {
    repeats: Certainty::Likely,
    kind: Certainty::Proven,
    outlives: Certainty::Assumed,
    unreleased: Certainty::Assumed,
};

pub(crate) struct Context<'a> {
    class: LeakClass,
    pub(crate) analysis: &'a Analysis,
    /// What outlives its step, by class.
    pub(crate) claims: &'a Claims,
    found: &'a mut Vec<Found>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        class: LeakClass,
        analysis: &'a Analysis,
        claims: &'a Claims,
        found: &'a mut Vec<Found>,
    ) -> Self {
        Self { class, analysis, claims, found }
    }

    /// Containers that grow, as far as they are this rule's.
    pub(crate) fn growths(&self) -> impl Iterator<Item = &'a Claim> + use<'a> {
        let class = self.class;
        self.claims.growths.iter().filter(move |claim| claim.class == class)
    }

    /// Places whose graph gets longer, as far as they are this rule's.
    pub(crate) fn carries(&self) -> impl Iterator<Item = &'a CarryClaim> + use<'a> {
        let class = self.class;
        self.claims.carries.iter().filter(move |claim| claim.class == class)
    }

    /// Where a function is defined, as another place to blame.
    pub(crate) fn defined(&self, function: FunctionId) -> Site {
        self.project().site(SiteRole::Allocates, self.analysis.function(function).at, self.function(function))
    }

    pub(crate) fn project(&self) -> &'a Project {
        self.analysis.project()
    }

    /// Source of a place, on one line.
    pub(crate) fn text(&self, at: Location) -> String {
        self.project().text(at).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Qualified name of a function.
    pub(crate) fn function(&self, id: FunctionId) -> &'a str {
        &self.analysis.function(id).name
    }

    /// Qualified name of the function around a place.
    pub(crate) fn function_around(&self, at: Location) -> String {
        self.analysis.function_around(at).map_or("<module>", |function| function.name.as_str()).to_owned()
    }

    /// Reports a pattern at a place; what comes back can be told more of.
    pub(crate) fn report(&mut self, at: Location, function: &str, message: String) -> &mut Found {
        self.report_due_to(None, at, function, message)
    }

    /// The same, where others may be due to the same: these are its twins.
    pub(crate) fn report_due_to(
        &mut self,
        cause: Option<Cause>,
        at: Location,
        function: &str,
        message: String,
    ) -> &mut Found {
        let site = self.project().site(SiteRole::Grows, at, function);
        let index = self.found.len();
        let diagnostic = Diagnostic {
            class: self.class,
            confidence: Confidence::Likely,
            scope: Scope::Run,
            // Settled once all rules have reported.
            severity: Severity::Info,
            proof: SHOWN,
            message,
            container: self.text(at),
            sites: vec![site],
            chain: Vec::new(),
            fix: None,
            twins: Vec::new(),
            more_twins: 0,
        };
        self.found.push(Found { diagnostic, cause, weight: Weight::Tensors });
        &mut self.found[index]
    }

    /// Another place that is equally to blame.
    pub(crate) fn site(&self, role: SiteRole, at: Location, function: FunctionId) -> Site {
        self.project().site(role, at, self.function(function))
    }

    /// A link of the story.
    pub(crate) fn link(&self, at: Location, note: impl Into<String>) -> ChainStep {
        let site = self.project().site(SiteRole::Grows, at, "");
        ChainStep { file: site.file, line: site.line, text: site.text, note: note.into() }
    }

    /// Where a value's graph comes from.
    pub(crate) fn source(&self, value: &Value) -> Option<ChainStep> {
        let at = self.analysis.origin(value)?;
        Some(self.link(
            at,
            format!("`{}` gives a tensor that carries its autograd graph", shortened(&self.text(at))),
        ))
    }

    /// Where a container is made.
    pub(crate) fn made(&self, object: ObjectId) -> Option<ChainStep> {
        let at = self.analysis.object(object).at?;
        let held = self.held(self.analysis.holder(object));
        Some(self.link(at, format!("made here, {held}")))
    }

    /// The loop that evaluates and records graphs for nobody.
    pub(crate) fn records(&self, exposure: Exposure) -> Option<ChainStep> {
        let inner = self.analysis.a_loop(exposure.inner);
        let counts = matches!(inner.kind, LoopKind::Epochs | LoopKind::Folds);
        let evaluates = !counts && !self.analysis.trains(exposure.inner);
        let note = "no `torch.no_grad()` around this loop: every output carries its graph";
        inner.header.filter(|_| evaluates).map(|header| self.link(header, note))
    }

    /// The loop through which something goes on.
    pub(crate) fn through(&self, exposure: Exposure) -> Option<ChainStep> {
        self.link_loop(exposure, "nothing empties it while this loop runs")
    }

    /// The same, in other words.
    pub(crate) fn link_loop(&self, exposure: Exposure, note: &str) -> Option<ChainStep> {
        let header = self.analysis.a_loop(exposure.through).header?;
        Some(self.link(header, note))
    }

    /// What keeps an object, in words.
    pub(crate) fn held(&self, holder: Holder) -> String {
        let name = |symbol| self.analysis.name(symbol);
        match holder {
            Holder::Attribute(class, attribute) => {
                format!(
                    "kept by the attribute `{}` of `{}`",
                    name(attribute),
                    self.analysis.class(class).name
                )
            }
            Holder::ClassAttribute(class, attribute) => {
                format!(
                    "kept by the class attribute `{}.{}`",
                    self.analysis.class(class).name,
                    name(attribute)
                )
            }
            Holder::Global(global) => format!("kept by the module's global `{}`", name(global)),
            Holder::Default(function, parameter) => {
                format!("kept as the default of `{}` of `{}`", name(parameter), self.function(function))
            }
            Holder::FunctionAttribute(function, attribute) => {
                format!("kept by the attribute `{}` of `{}`", name(attribute), self.function(function))
            }
            Holder::Closure(function, variable) => {
                format!(
                    "kept by the variable `{}` of `{}`, which inner functions use",
                    name(variable),
                    self.function(function)
                )
            }
            Holder::Local => "kept by a variable".to_owned(),
        }
    }
}

/// Text that is short enough for a sentence.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST - 3).collect();
    format!("{head}...")
}
