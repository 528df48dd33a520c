//! What the source alone shows of what the run saw: the whole story behind a line, its twins, an edit; the line itself
//! where nobody saw it; and suspects where nothing was found.

use caulk_core::{
    Cause, ChainStep, Diagnostic, Evidence, Fix, Group, LeakClass, Place, Rate, Scope, Severity, Site,
    SiteRole, Why,
};

use crate::claim::{Claim, Standing, Witness};
use crate::native::is_suspected;

/// Suspects that are named for growth that nothing explains.
const SUSPECTS: usize = 3;

/// Lines that allocate what stays, and of which nothing else is known, are what the source shows them to be: an array that is
/// replaced by a longer one holds what the line that makes it allocates.
pub(crate) fn adopt(findings: &mut [Claim], patterns: &[Diagnostic]) {
    for finding in findings.iter_mut().filter(|finding| finding.class == LeakClass::NativeGrowth) {
        let lasts = |pattern: &&Diagnostic| pattern.scope == Scope::Run;
        let at_line = at_line(finding, patterns).filter(|_| is_suspected(finding)).filter(lasts);
        let Some(pattern) = at_line.or_else(|| on_path(finding, patterns).filter(lasts)) else { continue };
        if at_line.is_none() {
            let allocates = |site| Site { role: SiteRole::Allocates, ..site };
            let lines = std::mem::replace(&mut finding.sites, pattern.sites.clone());
            finding.sites.extend(lines.into_iter().map(allocates));
        }
        let rate = finding.growth.as_ref().map(|growth| Rate::new(growth.bytes_per_unit, growth.unit));
        finding.evidence.push(Evidence::PatternAtLine);
        finding.class = pattern.class;
        finding.standing = Standing::Whole;
        finding.yields = false;
        finding.witness = Witness::HeapLine;
        finding.cause = Cause::Pattern { message: pattern.message.clone(), rate };
        finding.container.clone_from(&pattern.container);
        finding.fix.clone_from(&pattern.fix);
    }
}

/// Tells of each finding what the patterns know of it: that at its line, or the only one of its class, but for those that are
/// `of_many_lines`.
pub(crate) fn join(findings: &mut [Claim], patterns: &[Diagnostic], of_many_lines: impl Fn(&Claim) -> bool) {
    for finding in findings {
        let anywhere = || only_one(finding, patterns).filter(|_| !of_many_lines(finding));
        let Some(pattern) = at_line(finding, patterns).or_else(anywhere) else { continue };
        if finding.sites.is_empty() || !overlaps(&finding.sites[0], &pattern.sites[0]) {
            locate(finding, pattern);
        }
        // What its elements pin the run has looked at: with a graph, it would not be of this class.
        let whole = |seen: &Evidence| match seen {
            Evidence::Contents(facts) => !facts.truncated,
            Evidence::Graph { truncated, .. } => !truncated,
            _ => false,
        };
        let pins = pattern.class == LeakClass::ViewPinsStorage || pattern.class.group() == Group::Graph;
        let refuted = pins && finding.evidence.iter().any(whole);
        if finding.class == LeakClass::UnboundedHistory && pattern.container == finding.container && !refuted
        {
            reclass(finding, pattern);
        }
        if pattern.class == finding.class {
            tell(finding, pattern);
            twins(finding, pattern, patterns);
        }
    }
}

/// Patterns that could explain growth for which nothing was found, as suspects.
pub(crate) fn suspected(findings: &[Claim], patterns: &[Diagnostic]) -> Vec<Claim> {
    let told = |pattern: &Diagnostic| {
        let sites = findings.iter().filter_map(|finding| finding.sites.first());
        sites.into_iter().any(|site| overlaps(site, &pattern.sites[0]))
    };
    let grows = |pattern: &&Diagnostic| pattern.severity > Severity::Info && pattern.scope == Scope::Run;
    let open = patterns.iter().filter(grows).filter(|pattern| !told(pattern));
    open.take(SUSPECTS).map(suspect).collect()
}

fn suspect(pattern: &Diagnostic) -> Claim {
    Claim {
        witness: Witness::SourcePattern,
        standing: Standing::Whole,
        cause: Cause::MayExplain { message: pattern.message.clone() },
        sites: pattern.sites.clone(),
        container: pattern.container.clone(),
        chain: pattern.chain.clone(),
        evidence: vec![Evidence::PatternUnseen],
        fix: pattern.fix.clone(),
        twins: pattern.twins.clone(),
        more_twins: pattern.more_twins,
        ..Claim::of(pattern.class)
    }
}

/// The pattern at the line to blame, that of the same class first.
fn at_line<'a>(finding: &Claim, patterns: &'a [Diagnostic]) -> Option<&'a Diagnostic> {
    let site = finding.sites.first().filter(|site| site.role != SiteRole::Allocates)?;
    let here = patterns.iter().filter(|pattern| overlaps(site, &pattern.sites[0]));
    here.min_by_key(|pattern| pattern.class != finding.class)
}

/// The pattern of a graph that gets longer at a line which calls the one that allocates: its tensors are made somewhere
/// in the model, and kept by the line that feeds them back.
fn on_path<'a>(finding: &Claim, patterns: &'a [Diagnostic]) -> Option<&'a Diagnostic> {
    let calls = |site: &Site| {
        let at = |step: &ChainStep| {
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
    let mut same = patterns.iter().filter(|pattern| open && pattern.class == finding.class);
    let names_it = |pattern: &&Diagnostic| {
        finding.holder.is_empty()
            || last_name(&pattern.container) == last_name(&finding.holder)
            || base_name(&pattern.container) == base_name(&finding.holder)
            || of_library(finding.class)
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

fn locate(finding: &mut Claim, pattern: &Diagnostic) {
    finding.sites.clone_from(&pattern.sites);
    finding.container.clone_from(&pattern.container);
    if finding.weighs() {
        finding.witness = finding.witness.min(Witness::OnlyLine);
    }
    finding.evidence.push(Evidence::OnlyPlace { opens: false });
}

/// What grows without a bound is what the source knows by a closer name: step outputs, say.
fn reclass(finding: &mut Claim, pattern: &Diagnostic) {
    if let Cause::Grows(grows) = &mut finding.cause
        && grows.why == Why::Class(finding.class)
    {
        grows.why = Why::Class(pattern.class);
    }
    finding.class = pattern.class;
    finding.fix.clone_from(&pattern.fix);
}

fn tell(finding: &mut Claim, pattern: &Diagnostic) {
    let seen = std::mem::replace(&mut finding.chain, pattern.chain.clone());
    let new = |place: &ChainStep| {
        !pattern.chain.iter().any(|step| (&step.file, step.line) == (&place.file, place.line))
    };
    finding.chain.extend(seen.into_iter().filter(new));
    let edits = |fix: &Option<Fix>| fix.as_ref().is_some_and(|fix| !fix.edits.is_empty());
    if !edits(&finding.fix) && edits(&pattern.fix) {
        finding.fix.clone_from(&pattern.fix);
    }
}

/// Other places with the same pattern.
fn twins(finding: &mut Claim, pattern: &Diagnostic, patterns: &[Diagnostic]) {
    let others = patterns.iter().filter(|other| other.class == pattern.class && *other != pattern);
    for site in others.map(|other| &other.sites[0]) {
        let known = |twin: &Place| (&twin.file, twin.line) == (&site.file, site.line);
        if !finding.twins.iter().any(known) {
            finding.twins.push(Place { file: site.file.clone(), line: site.line, text: site.text.clone() });
        }
    }
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
    use caulk_core::{Confidence, Proof};

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
        let step = |line| ChainStep {
            file: "main.py".into(),
            line,
            text: String::new(),
            note: "called from here".into(),
        };
        let allocates = || Claim {
            sites: vec![site(32)],
            chain: vec![step(60), step(104)],
            ..Claim::of(LeakClass::NativeGrowth)
        };
        let mut claims = [allocates(), allocates()];
        adopt(&mut claims[..1], &[state_fed_back(60)]);
        adopt(&mut claims[1..], &[state_fed_back(61)]);
        assert_eq!(claims[0].class, LeakClass::StateNotDetached);
        assert_eq!(claims[0].sites.iter().map(|site| site.line).collect::<Vec<_>>(), [60, 32]);
        assert_eq!(claims[1].class, LeakClass::NativeGrowth, "a line elsewhere explains nothing");
    }
}
