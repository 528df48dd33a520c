//! What the source alone shows of what the run saw: the whole story behind a line, its twins, an edit; the line itself
//! where nobody saw it; and suspects where nothing was found.

use caulk_core::{
    Cause, Diagnostic, Evidence, Group, LeakClass, Link, Place, Remedy, Scope, Severity, Site, SiteRole,
};

use crate::claim::{Claim, Observed, PatternAt, Relation, Relations, Standing, Witness};
use crate::native::is_suspected;

/// Suspects that are named for growth that nothing explains.
const SUSPECTS: usize = 3;

/// Lines that allocate and whose holder is not known: the pattern at the line, or at one that calls it. An array that is replaced
/// by a longer one holds what the line that makes it allocates.
pub(crate) fn of_lines<'a>(claims: &[Claim], patterns: &'a [Diagnostic]) -> Relations<'a> {
    let lines = claims.iter().enumerate().filter(|(_, claim)| claim.class() == LeakClass::NativeGrowth);
    let lasts = |pattern: &&Diagnostic| pattern.scope == Scope::Run;
    let explained = |(at, claim): (usize, &Claim)| {
        let at_line = at_line(claim, patterns).filter(|_| is_suspected(claim)).filter(lasts);
        let relation = match at_line {
            Some(pattern) => Relation::Explained(pattern, PatternAt::Line),
            None => Relation::Explained(on_path(claim, patterns).filter(lasts)?, PatternAt::Caller),
        };
        Some((at, relation))
    };
    lines.filter_map(explained).collect()
}

/// What the patterns know of each claim: the one at its line, or the only one of its class, but for claims that are
/// `of_many_lines`.
pub(crate) fn relations<'a>(
    claims: &[Claim],
    patterns: &'a [Diagnostic],
    of_many_lines: impl Fn(&Claim) -> bool,
) -> Relations<'a> {
    let mut relations = Relations::new();
    for (at, claim) in claims.iter().enumerate() {
        let anywhere = || only_one(claim, patterns).filter(|_| !of_many_lines(claim));
        let Some(pattern) = at_line(claim, patterns).or_else(anywhere) else { continue };
        let moves = claim.sites.first().is_none_or(|site| !overlaps(site, &pattern.sites[0]));
        if moves {
            let at_most = if claim.weighs() { Witness::OnlyLine } else { claim.witness };
            relations.push((at, Relation::OnlyPlace(pattern, claim.witness.min(at_most))));
        }
        let closer = claim.class() == LeakClass::UnboundedHistory
            && (moves || pattern.container == claim.container)
            && !is_refuted(claim, pattern);
        if closer {
            relations.push((at, Relation::Closer(pattern)));
        }
        if closer || pattern.class == claim.class() {
            relations.push((at, Relation::InSource(pattern, twins(claim, pattern, patterns))));
        }
    }
    relations
}

/// The run has measured what its elements pin: with a graph, it would not be of this class.
fn is_refuted(claim: &Claim, pattern: &Diagnostic) -> bool {
    let whole = |seen: &Evidence| match seen {
        Evidence::Contents(facts) => !facts.truncated,
        Evidence::Graph { truncated, .. } => !truncated,
        _ => false,
    };
    let pins = pattern.class == LeakClass::ViewPinsStorage || pattern.class.group() == Group::Graph;
    pins && claim.evidence.iter().any(whole)
}

/// Patterns that could explain growth for which nothing was found, as suspects.
pub(crate) fn suspected(findings: &[Claim], patterns: &[Diagnostic]) -> Vec<Observed> {
    let told = |pattern: &Diagnostic| {
        let sites = findings.iter().filter_map(|finding| finding.sites.first());
        sites.into_iter().any(|site| overlaps(site, &pattern.sites[0]))
    };
    let grows = |pattern: &&Diagnostic| pattern.severity > Severity::Info && pattern.scope == Scope::Run;
    let open = patterns.iter().filter(grows).filter(|pattern| !told(pattern));
    open.take(SUSPECTS).map(suspect).collect()
}

fn suspect(pattern: &Diagnostic) -> Observed {
    let cause = Cause::MayExplain { class: pattern.class, message: pattern.message.clone() };
    Observed {
        witness: Witness::SourcePattern,
        standing: Standing::Whole,
        sites: pattern.sites.clone(),
        container: pattern.container.clone(),
        chain: pattern.chain.iter().map(Link::from).collect(),
        evidence: vec![Evidence::PatternUnseen],
        remedy: pattern.fix.clone().map(Remedy::from),
        twins: pattern.twins.clone(),
        more_twins: pattern.more_twins,
        ..Observed::of(cause)
    }
}

/// The pattern at the line to blame, that of the same class first.
fn at_line<'a>(finding: &Claim, patterns: &'a [Diagnostic]) -> Option<&'a Diagnostic> {
    let site = finding.sites.first().filter(|site| site.role != SiteRole::Allocates)?;
    let here = patterns.iter().filter(|pattern| overlaps(site, &pattern.sites[0]));
    here.min_by_key(|pattern| pattern.class != finding.class())
}

/// The pattern of a graph that gets longer at a line which calls the one that allocates: its tensors are made somewhere
/// in the model, and kept by the line that feeds them back.
fn on_path<'a>(finding: &Claim, patterns: &'a [Diagnostic]) -> Option<&'a Diagnostic> {
    let calls = |site: &Site| {
        let at = |step: &Link| {
            step.file == site.file && (site.line..=site.end_line.max(site.line)).contains(&step.line)
        };
        finding.chain.iter().any(at)
    };
    patterns
        .iter()
        .find(|pattern| pattern.class.group() == Group::Graph && pattern.sites.first().is_some_and(calls))
}

/// The one pattern of the class in all of the source, for what was seen to grow by a line that nobody saw.
fn only_one<'a>(finding: &Claim, patterns: &'a [Diagnostic]) -> Option<&'a Diagnostic> {
    let grown_at = |site: &Site| site.role != SiteRole::Allocates;
    let open = !finding.sites.iter().any(grown_at) || finding.witness >= Witness::SourcePattern;
    let mut same = patterns.iter().filter(|pattern| open && pattern.class == finding.class());
    let names_it = |pattern: &&Diagnostic| {
        finding.holder.is_empty()
            || last_name(&pattern.container) == last_name(&finding.holder)
            || base_name(&pattern.container) == base_name(&finding.holder)
            || of_library(finding.class())
    };
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only).filter(names_it),
        _ => None,
    }
}

/// What grows is the library's own; the line to blame is a call into it.
fn of_library(class: LeakClass) -> bool {
    matches!(
        class,
        LeakClass::FigureNotClosed
            | LeakClass::HookNeverRemoved
            | LeakClass::OptimizerRecreated
            | LeakClass::LogRecordsKept
            | LeakClass::GraphRetained
            | LeakClass::FileHandlesGrow
            | LeakClass::ThreadNeverEnds
            | LeakClass::SharedMemoryLeft
            | LeakClass::OrphanProcess
            | LeakClass::LoaderPerEpoch
    )
}

/// Other places with the same pattern that the claim does not have.
fn twins(claim: &Claim, pattern: &Diagnostic, patterns: &[Diagnostic]) -> Vec<Place> {
    let mut twins: Vec<Place> = Vec::new();
    let others = patterns.iter().filter(|other| other.class == pattern.class && *other != pattern);
    for site in others.map(|other| &other.sites[0]) {
        let known = |twin: &Place| (&twin.file, twin.line) == (&site.file, site.line);
        if !claim.twins.iter().chain(&twins).any(known) {
            twins.push(Place { file: site.file.clone(), line: site.line, text: site.text.clone() });
        }
    }
    twins
}

fn overlaps(one: &Site, other: &Site) -> bool {
    one.file == other.file
        && one.line <= other.end_line.max(other.line)
        && other.line <= one.end_line.max(one.line)
}

/// `series` of `board.series['loss']`.
fn base_name(expression: &str) -> &str {
    last_name(expression.split('[').next().unwrap_or(expression))
}

/// `ious` of `trainer.metrics.ious`.
fn last_name(expression: &str) -> &str {
    let end = expression.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != '_');
    end.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use caulk_core::{Confidence, LinkEvent, Proof, Rate, VerdictUnit};

    use crate::claim::settle;

    use super::*;

    fn site(line: u32) -> Site {
        Site {
            file: "main.py".into(),
            line,
            column: 1,
            end_line: line,
            cell: None,
            function: "step".into(),
            text: String::new(),
            role: SiteRole::Grows,
        }
    }

    fn state_fed_back(line: u32) -> Diagnostic {
        Diagnostic {
            class: LeakClass::StateNotDetached,
            confidence: Confidence::Likely,
            scope: Scope::Run,
            severity: Severity::Error,
            proof: Proof::FULL,
            message: "`self.state` is fed back".into(),
            container: "self.state".into(),
            sites: vec![site(line)],
            chain: Vec::new(),
            fix: None,
            twins: Vec::new(),
            more_twins: 0,
        }
    }

    #[test]
    fn a_line_that_a_fed_back_state_calls_is_that_of_the_state() {
        let step = |line| Link { file: "main.py".into(), line, text: String::new(), event: LinkEvent::Calls };
        let allocates = || {
            Claim::from(Observed {
                sites: vec![site(32)],
                chain: vec![step(60), step(104)],
                ..Observed::of(Cause::NeverFreed(Rate::new(1.0, VerdictUnit::Epoch)))
            })
        };
        let explained = |patterns: &[Diagnostic]| {
            settle(vec![allocates()], |claims| of_lines(claims, patterns)).remove(0)
        };
        let state = explained(&[state_fed_back(60)]);
        assert_eq!(state.class(), LeakClass::StateNotDetached);
        assert_eq!(state.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [60, 32]);
        let line = explained(&[state_fed_back(61)]);
        assert_eq!(line.class(), LeakClass::NativeGrowth, "a line elsewhere explains nothing");
    }
}
