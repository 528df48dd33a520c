//! The one place that makes findings: it decides severity and confidence by the table, in the order of reports.

use caulk_core::{Finding, Harm, Settled, most_harmful_first};

use crate::claim::Claim;
use crate::merge;

/// The findings of all processes, the most harmful first: one for the processes that do the same work.
pub(crate) fn findings(mut claims: Vec<Claim>) -> Vec<Finding> {
    claims.sort_by(|a, b| harm(a).in_order(&harm(b)));
    let claims = merge::once(merge::by_role(claims));
    let mut findings: Vec<Finding> = claims.into_iter().map(finding).collect();
    most_harmful_first(&mut findings);
    findings
}

fn harm(claim: &Claim) -> Harm {
    Harm {
        severity: claim.severity(),
        scope: claim.scope,
        class: claim.class,
        confidence: claim.confidence(),
        bytes_per_unit: claim.growth.as_ref().map_or(0.0, |growth| growth.bytes_per_unit),
    }
}

fn finding(claim: Claim) -> Finding {
    Finding::new(Settled {
        severity: claim.severity(),
        confidence: claim.confidence(),
        class: claim.class,
        scope: claim.scope,
        cause: claim.cause,
        sites: claim.sites,
        container: claim.container,
        holder: claim.holder,
        holder_path: claim.holder_path,
        chain: claim.chain,
        process: claim.process,
        growth: claim.growth,
        pinned: claim.pinned,
        evidence: claim.evidence,
        fix: claim.fix,
        twins: claim.twins,
        more_twins: claim.more_twins,
    })
}
