//! Lines of what grows without one: where the program allocates as much as a container gains, by the heap profile.

use caulk_core::{Series, State};

use crate::claim::{Claim, Relation, Relations};
use crate::files::Files;
use crate::heap::{self, is_of_user};
use crate::judged::Judged;
use crate::native;
use crate::process::Process;

/// How far a line's share of the growth may lie from the container's, as a part of that.
const MARGIN: f64 = 0.3;
/// Standard deviations of sampling within which a line may have a share as well.
const ERRORS: f64 = 2.0;

/// The line of claims that have none, in a process whose growth the claims account for: if one line of the program has the
/// container's share of it, and no other container's.
pub(crate) fn relations<'a>(
    files: &Files<'_>,
    process: &Process<'_>,
    judged: &Judged,
    findings: &[Claim],
) -> Relations<'a> {
    let mut located = Relations::new();
    let Some(in_use) = judged.in_use().filter(|verdict| verdict.state == State::Grows) else {
        return located;
    };
    let Some(scale) = judged.scale else { return located };
    // What containers gain may be told in resident memory: shares are of the same.
    let gained = |finding: &Claim| {
        if finding.weighs() { finding.bytes_in(Series::InUse) } else { 0.0 }
    };
    let whole: f64 = findings.iter().map(gained).sum();
    let shares: Vec<f64> = findings.iter().map(|finding| gained(finding) / whole.max(1.0)).collect();
    let lacks = |finding: &Claim| finding.sites.is_empty() && !native::is_nameless(finding);
    if !findings.iter().zip(&shares).any(|(finding, share)| lacks(finding) && *share > 0.0) {
        return located;
    }
    let lines = heap::of_process(process, scale);
    let sites = findings.iter().flat_map(|finding| &finding.sites);
    let told: Vec<(String, u32)> = sites.map(|site| (site.file.clone(), site.line)).collect();
    let may_be_told = |line: &heap::Line<'_>| {
        let place = (files.display(&line.frame.file), line.frame.line);
        line.judgement.slope >= judged.least && is_of_user(&line.frame.file) && !told.contains(&place)
    };
    for at in 0..findings.len() {
        // Errors of sampling count against a line: what others may have, it must not have alone.
        let away = |line: &heap::Line<'_>, share: f64, errors: f64| {
            let gained = line.judgement.slope - share * in_use.bytes_per_unit;
            gained.abs() - errors * line.growth.deviation
        };
        let fits = |line: &heap::Line<'_>, share: f64, errors: f64| {
            share > 0.0 && away(line, share, errors) <= MARGIN * share * in_use.bytes_per_unit
        };
        let mut may_fit = lines.iter().filter(|line| fits(line, shares[at], ERRORS));
        let (Some(line), None) = (may_fit.next(), may_fit.next()) else { continue };
        let is_its_own = shares.iter().filter(|share| fits(line, **share, ERRORS)).count() == 1;
        if lacks(&findings[at])
            && line.grows()
            && fits(line, shares[at], 0.0)
            && is_its_own
            && may_be_told(line)
        {
            let site = native::site(files, &line.frame.file, line.frame.line, &line.frame.function);
            located.push((at, Relation::AllocatedAt(site, native::seen(line))));
        }
    }
    located
}
