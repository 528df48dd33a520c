//! Ranks of a distributed job do the same work: one whose memory moves otherwise does something that the others do not.

use caulk_core::{RankGrowth, Remark, Role, Series, State, Verdict};

use crate::part::Part;

/// A rank that grows so many times as fast as the middle one is out of the ordinary.
const FAR: f64 = 3.0;

/// How they compare in each kind of memory; nothing if there are fewer than two ranks.
pub(crate) fn remarks(parts: &[Part<'_>]) -> Vec<Remark> {
    let ranks: Vec<&Part<'_>> = parts.iter().filter(|part| part.process.record.role == Role::Rank).collect();
    let of = |series| {
        let verdict = |part: &&Part<'_>| {
            part.judged.series(series).map(|verdict| (part.process.record.index, verdict.clone()))
        };
        compared(ranks.iter().filter_map(verdict).collect())
    };
    let host = [Series::InUse, Series::Rss].map(of);
    host.into_iter().flatten().take(1).chain(of(Series::CudaAllocated)).collect()
}

fn compared(mut verdicts: Vec<(u32, Verdict)>) -> Option<Remark> {
    verdicts.sort_by_key(|(rank, _)| *rank);
    let (unit, series) = verdicts.first().map(|(_, verdict)| (verdict.unit, verdict.series))?;
    verdicts.retain(|(_, verdict)| verdict.unit == unit);
    let outliers = if verdicts.len() > 1 { outliers(&verdicts) } else { return None };
    let growth = |(rank, verdict): &(u32, Verdict)| RankGrowth {
        rank: *rank,
        bytes_per_unit: verdict.bytes_per_unit,
        last: verdict.last,
        stands_out: outliers.contains(rank),
    };
    Some(Remark::Ranks { series, unit, ranks: verdicts.iter().map(growth).collect() })
}

/// Ranks that grow where most do not, or far faster than the middle one.
fn outliers(verdicts: &[(u32, Verdict)]) -> Vec<u32> {
    let growing: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.state == State::Grows).collect();
    let mut rates: Vec<f64> = verdicts.iter().map(|(_, verdict)| verdict.bytes_per_unit).collect();
    rates.sort_by(f64::total_cmp);
    let middle = rates[(rates.len() - 1) / 2];
    let few = 2 * growing.len() <= verdicts.len();
    let far = |rate: f64| rate > FAR * middle.max(0.0);
    growing
        .into_iter()
        .filter(|(_, verdict)| few || far(verdict.bytes_per_unit))
        .map(|(rank, _)| *rank)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(megabytes: f64) -> Verdict {
        let state = if megabytes > 1.0 { State::Grows } else { State::Flat };
        crate::verdicts::tests::verdict(state, megabytes * 1_048_576.0)
    }

    fn check(megabytes: &[f64], expected: &str) {
        let remark = compared((0..).zip(megabytes.iter().copied().map(verdict)).collect());
        let text = caulk_report::note(&remark.expect("several ranks")).text;
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_rank_that_grows_where_others_do_not_stands_out() {
        check(&[0.0, 10.0], "of 2 ranks, rank 1 stands out: memory in use grows by +10.0 MB per epoch there");
        check(&[12.0, 2.0, 2.0, 3.0], "of 4 ranks, rank 0 stands out");
        check(&[0.0, 9.0, 0.0, 9.0], "of 4 ranks, rank 1, rank 3 stand out");
    }

    #[test]
    fn ranks_that_move_alike_are_told_as_one() {
        check(&[0.0, 0.0], "2 ranks, alike: memory in use moves by +0 B per epoch, to 512 MB");
        check(&[10.0, 11.0, 9.0], "3 ranks, alike: memory in use moves by +9.00 MB to +11.0 MB per epoch");
    }
}
