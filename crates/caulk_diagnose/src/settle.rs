//! The one place that makes findings: it decides severity and confidence by the table, in the order of reports.

use caulk_core::{Finding, Harm, Settled, most_harmful_first};

use crate::claim::{Claim, settle};
use crate::merge;

/// The findings of all processes, the most harmful first: one for the processes that do the same work.
pub(crate) fn findings(mut claims: Vec<Claim>) -> Vec<Finding> {
    claims.sort_by(|a, b| harm(a).in_order(&harm(b)));
    let claims = settle(settle(claims, merge::by_role), merge::repeated);
    let mut findings: Vec<Finding> = claims.into_iter().map(finding).collect();
    most_harmful_first(&mut findings);
    findings
}

fn harm(claim: &Claim) -> Harm {
    Harm {
        severity: claim.severity(),
        scope: claim.scope,
        class: claim.class(),
        confidence: claim.confidence(),
        bytes_per_unit: claim.bytes_per_unit(),
    }
}

fn finding(claim: Claim) -> Finding {
    let (class, severity, confidence) = (claim.class(), claim.severity(), claim.confidence());
    let seen = claim.into_observed();
    Finding::new(Settled {
        class,
        severity,
        confidence,
        scope: seen.scope,
        cause: seen.cause,
        sites: seen.sites,
        container: seen.container,
        holder: seen.holder,
        holder_path: seen.holder_path,
        chain: seen.chain,
        process: seen.process,
        growth: seen.growth,
        pinned: seen.pinned,
        evidence: seen.evidence,
        remedy: seen.remedy,
        twins: seen.twins,
        more_twins: seen.more_twins,
    })
}
