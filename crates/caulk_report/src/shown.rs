//! A finding as JSON shows it: its fields, with the words for its cause and its facts.

use std::borrow::Cow;

use caulk_core::{
    ChainStep, Confidence, Evidence, Finding, Fix, Growth, LeakClass, Pinned, Place, ProcessRef, Scope,
    Severity, Site,
};
use serde::Serialize;

use crate::advice::fix;
use crate::chain::chain;
use crate::evidence::evidence_text;
use crate::message::message;

/// A finding with the words for its cause and its facts.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(title = "Finding"))]
pub struct Shown<'a> {
    /// The pattern.
    class: LeakClass,
    /// How sure.
    confidence: Confidence,
    /// For how long the memory is kept.
    scope: Scope,
    /// How harmful.
    severity: Severity,
    /// What is wrong, for people.
    message: String,
    /// Places in source, the one to change first.
    sites: Cow<'a, [Site]>,
    /// The container as source writes it.
    container: &'a str,
    /// The container as a person would type it.
    holder: &'a str,
    /// References from a root to the container.
    holder_path: &'a [String],
    /// From what makes a value to the reason why it lives on.
    chain: Vec<ChainStep>,
    /// Whose memory.
    process: &'a ProcessRef,
    /// How fast it grows.
    growth: Option<&'a Growth>,
    /// Memory that it keeps alive beyond its elements.
    pinned: Option<&'a Pinned>,
    /// The facts on which it rests.
    evidence: Vec<Fact<'a>>,
    /// A change that removes the cause.
    fix: Option<Fix>,
    /// Other places with the same cause.
    twins: Cow<'a, [Place]>,
    /// How many further ones there are.
    more_twins: usize,
}

/// A fact: its kind, its figures, and the words for them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Fact<'a> {
    /// Its kind and its figures.
    #[serde(flatten)]
    evidence: &'a Evidence,
    /// For people.
    text: String,
}

impl<'a> Shown<'a> {
    /// The finding in words.
    pub fn of(finding: &'a Finding) -> Self {
        Self {
            class: finding.class,
            confidence: finding.confidence,
            scope: finding.scope,
            severity: finding.severity,
            message: message(finding),
            sites: Cow::Borrowed(&finding.sites),
            container: &finding.container,
            holder: &finding.holder,
            holder_path: &finding.holder_path,
            chain: chain(finding),
            process: &finding.process,
            growth: finding.growth.as_ref(),
            pinned: finding.pinned.as_ref(),
            evidence: facts(finding),
            fix: fix(finding),
            twins: Cow::Borrowed(&finding.twins),
            more_twins: finding.more_twins,
        }
    }

    /// The same without source lines and edits. Names of files, functions and variables stay, also in the words of a change.
    pub(crate) fn without_source(finding: &'a Finding) -> Self {
        let mut shown = Self::of(finding);
        shown.sites.to_mut().iter_mut().for_each(|site| site.text.clear());
        shown.chain.iter_mut().for_each(|step| step.text.clear());
        shown.twins.to_mut().iter_mut().for_each(|twin| twin.text.clear());
        if let Some(fix) = &mut shown.fix {
            fix.edits.clear();
        }
        // The source as evidence quotes statements.
        shown.evidence.retain(|fact| fact.evidence.kind() != "source");
        shown
    }
}

/// The facts of a finding.
pub(crate) fn facts(finding: &Finding) -> Vec<Fact<'_>> {
    let fact = |evidence| Fact { evidence, text: evidence_text(evidence) };
    finding.evidence.iter().map(fact).collect()
}
