//! A finding as JSON shows it: its fields, with the words for its cause and its facts.

use caulk_core::{
    ChainStep, Confidence, Evidence, Finding, Fix, Growth, LeakClass, Pinned, Place, ProcessRef, Scope,
    Severity, Site,
};
use serde::Serialize;

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
    sites: &'a [Site],
    /// The container as source writes it.
    container: &'a str,
    /// The container as a person would type it.
    holder: &'a str,
    /// References from a root to the container.
    holder_path: &'a [String],
    /// From what makes a value to the reason why it lives on.
    chain: &'a [ChainStep],
    /// Whose memory.
    process: &'a ProcessRef,
    /// How fast it grows.
    growth: Option<&'a Growth>,
    /// Memory that it keeps alive beyond its elements.
    pinned: Option<&'a Pinned>,
    /// The facts on which it rests.
    evidence: Vec<Fact<'a>>,
    /// A change that removes the cause.
    fix: Option<&'a Fix>,
    /// Other places with the same cause.
    twins: &'a [Place],
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
            sites: &finding.sites,
            container: &finding.container,
            holder: &finding.holder,
            holder_path: &finding.holder_path,
            chain: &finding.chain,
            process: &finding.process,
            growth: finding.growth.as_ref(),
            pinned: finding.pinned.as_ref(),
            evidence: facts(finding),
            fix: finding.fix.as_ref(),
            twins: &finding.twins,
            more_twins: finding.more_twins,
        }
    }
}

/// The facts of a finding.
pub(crate) fn facts(finding: &Finding) -> Vec<Fact<'_>> {
    let fact = |evidence| Fact { evidence, text: evidence_text(evidence) };
    finding.evidence.iter().map(fact).collect()
}
