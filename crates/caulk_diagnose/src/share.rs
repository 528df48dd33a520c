//! Shares out the growth of each series among the claims of a process: every byte once.
//!
//! Claims get their share in the order of [`Witness`](crate::claim::Witness): an exact witness before a traced line, the
//! only line, a line of the heap profile and a pattern in source. Of equal witnesses the largest comes first.

use caulk_core::{Scope, Series, State, Verdict};

use crate::claim::{Claim, Relation, Relations, Share};
use crate::judged::Judged;

/// Kinds of memory whose growth is shared out, each by itself: bytes on a GPU are no bytes of the host.
const SERIES: [Series; 3] = [Series::InUse, Series::CudaAllocated, Series::CudaRest];
/// Share of the growth from which on a claim keeps the severity of its class.
const LEADING: f64 = 0.2;
/// Share of the growth below which a claim is advice.
const LITTLE: f64 = 0.05;
/// Error of a rate up to which a claim is not cut.
const ERROR: f64 = 0.1;

/// What each claim has of the growth of its series.
pub(crate) fn relations<'a>(judged: &Judged, claims: &[Claim]) -> Relations<'a> {
    let grows = |series| judged.series(series).filter(|verdict| verdict.state == State::Grows);
    let grow = SERIES.into_iter().filter_map(grows).filter(|verdict| verdict.bytes_per_unit > 0.0);
    grow.flat_map(|verdict| of_series(verdict, claims)).collect()
}

fn of_series<'a>(verdict: &Verdict, claims: &[Claim]) -> Relations<'a> {
    let mut order: Vec<(usize, f64)> = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        let own = own(claim, verdict.series);
        if own > 0.0 && claim.scope == Scope::Run && claim.weighs() {
            order.push((at, own));
        }
    }
    order.sort_by(|a, b| claims[a.0].witness.cmp(&claims[b.0].witness).then(b.1.total_cmp(&a.1)));
    let whole = verdict.bytes_per_unit;
    let mut open = verdict.interval.map_or(whole, |[_, high]| high.max(whole));
    let mut shares: Vec<(usize, f64, f64)> = Vec::new();
    for (at, own) in order {
        let settled = own.min(open);
        open -= settled;
        let part = if settled < (1.0 - ERROR) * own { settled / own } else { 1.0 };
        shares.push((at, settled / whole, part));
    }
    let small = |share: f64| share < LEADING;
    let together: f64 = shares.iter().map(|(_, share, _)| share).filter(|share| small(**share)).sum();
    let share = |share: f64| match share {
        // Many small ones that are a large part together are one matter.
        _ if small(share) && together >= LEADING => Share::Leading,
        LITTLE..LEADING => Share::Some,
        _ if small(share) => Share::Little,
        _ => Share::Leading,
    };
    shares.into_iter().map(|(at, of, part)| (at, Relation::Shares(share(of), part))).collect()
}

/// Bytes per unit of the series, without the pages around them.
fn own(claim: &Claim, series: Series) -> f64 {
    let growth = claim.growth_in(series);
    growth.map_or(0.0, |growth| growth.in_use_per_unit.unwrap_or(growth.bytes_per_unit))
}
