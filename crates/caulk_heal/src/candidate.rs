//! Edits to try: the fixes of a report's findings, and the sources with some of them applied.

use crate::alternatives::alternatives;
use caulk_check::Texts;
use caulk_core::{Edit, Finding, Growth, LeakClass, ProcessRef, Remedy, Scope, Severity, Site};

/// Edits of one finding that are tried.
const MOST_TRIES: usize = 10;

/// An edit to try.
#[derive(Debug, Clone, PartialEq)]
pub struct EditCandidate {
    /// Pattern of the finding.
    pub class: LeakClass,
    /// The place that the report names.
    pub site: Site,
    /// The container as a person would type it.
    pub holder: String,
    /// Whose memory.
    pub process: ProcessRef,
    /// How fast it grows.
    pub growth: Option<Growth>,
    /// The change.
    pub remedy: Remedy,
}

impl EditCandidate {
    /// The edits of a finding that claims harm, the finding's own first.
    fn of(finding: &Finding, texts: &Texts) -> Vec<Self> {
        let Some(site) = finding.sites.first().filter(|_| is_harmful(finding)) else { return Vec::new() };
        let own = finding.remedy.iter().filter(|remedy| remedy.edit().is_some()).cloned();
        let candidate = |remedy: Remedy| Self {
            class: finding.class,
            site: site.clone(),
            holder: finding.holder.clone(),
            process: finding.process.clone(),
            growth: finding.growth.clone(),
            remedy,
        };
        own.chain(alternatives(finding, texts).into_iter().map(Remedy::from)).map(candidate).collect()
    }

    /// Whether a finding is about the same leak. Lines move when others are edited, so their text decides.
    pub fn is_about(&self, finding: &Finding) -> bool {
        let place = |site: &Site| {
            (&site.file, &site.function) == (&self.site.file, &self.site.function)
                && site.text == self.site.text
        };
        let same_holder = !self.holder.is_empty() && finding.holder == self.holder;
        finding.severity > Severity::Info
            && (same_holder || finding.class == self.class && finding.sites.first().is_some_and(place))
    }

    /// Whether it is the same change at the same text as one that was tried before.
    fn repeats(&self, other: &Self) -> bool {
        let contents =
            |remedy: &Remedy| remedy.edits().iter().map(|edit| edit.content.clone()).collect::<Vec<_>>();
        let place = |site: &Site| (site.file.clone(), site.function.clone(), site.text.clone());
        place(&self.site) == place(&other.site) && contents(&self.remedy) == contents(&other.remedy)
    }

    fn touches(&self, other: &Self) -> bool {
        let pairs = self
            .remedy
            .edits()
            .iter()
            .flat_map(|one| other.remedy.edits().iter().map(move |other| (one, other)));
        pairs.into_iter().any(|(one, other)| one != other && caulk_check::touch(one, other))
    }
}

fn is_harmful(finding: &Finding) -> bool {
    finding.severity > Severity::Info && finding.scope != Scope::Peak
}

/// For each finding of a report the first edit that was not tried before and that fits the sources, alone and together with the
/// others. What touches another edit waits for the next report.
pub fn candidates(findings: &[Finding], tried: &[EditCandidate], texts: &Texts) -> Vec<EditCandidate> {
    let mut chosen: Vec<EditCandidate> = Vec::new();
    for finding in findings {
        let fits = |candidate: &EditCandidate| {
            let known = tried.iter().chain(&chosen).any(|other| candidate.repeats(other));
            let apart = !chosen.iter().any(|other| candidate.touches(other));
            !known && apart && patched(texts, [candidate]).is_some()
        };
        let about = |candidate: &&EditCandidate| candidate.is_about(finding);
        if tried.iter().filter(about).count() < MOST_TRIES {
            chosen.extend(EditCandidate::of(finding, texts).into_iter().find(fits));
        }
    }
    chosen
}

/// The files that some edits change, as they are then; `None` if the edits do not fit.
pub fn patched<'a>(texts: &Texts, edits: impl IntoIterator<Item = &'a EditCandidate>) -> Option<Texts> {
    let edits: Vec<&Edit> = edits.into_iter().flat_map(|candidate| candidate.remedy.edits()).collect();
    caulk_check::edited(texts, &edits)
}

/// Edits of findings that change files which are no part of the sources.
pub fn outside(findings: &[Finding], texts: &Texts) -> Vec<EditCandidate> {
    let foreign = |candidate: &EditCandidate| {
        candidate.remedy.edits().iter().any(|edit| !texts.contains_key(&edit.file))
    };
    findings.iter().flat_map(|finding| EditCandidate::of(finding, texts)).filter(foreign).collect()
}
