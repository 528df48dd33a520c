//! Growth for which nothing was found, and what is said of it.

use caulk_core::{LeakClass, Remark, Series, State};

use crate::claim::{Claim, Witness};
use crate::judged::Judged;
use crate::process::Process;
use crate::{heap, native};

/// Part of the growth that is explained by what is proved, however little that is.
const PROVED: f64 = 0.5;

/// Memory grows, and nothing was found that accounts for it.
pub(crate) fn is_unexplained(judged: &Judged, findings: &[Claim]) -> bool {
    let explains = |finding: &Claim| finding.weighs() && !native::is_suspected(finding);
    let grows = judged.in_use().filter(|verdict| verdict.state == State::Grows);
    grows.is_some_and(|verdict| {
        !findings.iter().any(explains) && proved(findings) < PROVED * verdict.bytes_per_unit
    })
}

/// Memory grows by little, and what grows is proved to be histories of plain values, which are mere advice. If resident memory
/// grows as well, they pin the pages that they lie in, and the run ends by these.
pub(crate) fn is_harmless(judged: &Judged, findings: &[Claim]) -> bool {
    if judged.series(Series::Rss).is_some_and(|verdict| verdict.state == State::Grows) {
        return false;
    }
    let rate = judged.in_use().filter(|_| judged.is_small()).map(|verdict| verdict.bytes_per_unit);
    let is_advice = findings.iter().all(|finding| !finding.weighs());
    let histories = findings.iter().filter(|finding| finding.class() == LeakClass::UnboundedHistory);
    rate.is_some_and(|rate| is_advice && proved(histories) >= PROVED * rate)
}

/// Bytes per unit that proved findings account for, harmful or not.
fn proved<'a>(findings: impl IntoIterator<Item = &'a Claim>) -> f64 {
    let proved = findings.into_iter().filter(|finding| finding.witness <= Witness::TracedLine);
    let growths = proved.filter_map(|finding| finding.growth.as_ref());
    growths
        .filter(|growth| growth.series == Series::InUse)
        .map(|growth| growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit))
        .sum()
}

/// The growth for which nothing was found.
pub(crate) fn unexplained(process: &Process<'_>, judged: &Judged, claims: &[Claim]) -> Remark {
    Remark::Unexplained {
        censuses: process.censuses(),
        followed: process.ids().len(),
        line_known: claims.iter().any(native::is_suspected),
        beside_profile: heap::is_beside_profile(process, judged),
    }
}
