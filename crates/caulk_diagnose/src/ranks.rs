//! Ranks of a distributed job do the same work: one whose memory moves otherwise does something that the others do not.

use caulk_core::wire::NoteCode;
use caulk_core::{Bytes, Note, Role, Series, State, Verdict};

use crate::part::Part;
use crate::units::unit_name;

/// A rank that grows so many times as fast as the middle one is out of the ordinary.
const FAR: f64 = 3.0;
/// Ranks that are named; of more the number is told.
const NAMED: usize = 4;

/// A line for people about each kind of memory; none where there are fewer than two ranks.
pub(crate) fn notes(parts: &[Part<'_>]) -> Vec<Note> {
    let ranks: Vec<&Part<'_>> = parts.iter().filter(|part| part.process.record.role == Role::Rank).collect();
    let host = [Series::InUse, Series::Rss].map(|series| compared(&ranks, series));
    host.into_iter().flatten().take(1).chain(compared(&ranks, Series::CudaAllocated)).collect()
}

fn compared(ranks: &[&Part<'_>], series: Series) -> Option<Note> {
    let mut verdicts: Vec<(u32, &Verdict)> = ranks
        .iter()
        .filter_map(|part| Some((part.process.record.index, part.judged.series(series)?)))
        .collect();
    verdicts.sort_by_key(|(rank, _)| *rank);
    let unit = verdicts.first()?.1.unit;
    verdicts.retain(|(_, verdict)| verdict.unit == unit);
    (verdicts.len() > 1).then(|| {
        let note = Note::new(NoteCode::Ranks, told(&verdicts)).with("ranks", verdicts.len() as u64);
        let outliers: Vec<String> = outliers(&verdicts).iter().map(ToString::to_string).collect();
        if outliers.is_empty() { note } else { note.with("outliers", outliers) }
    })
}

/// Of two ranks or more.
fn told(verdicts: &[(u32, &Verdict)]) -> String {
    let (count, first) = (verdicts.len(), verdicts[0].1);
    let what = match first.series {
        Series::CudaAllocated => "memory on the GPU",
        Series::Rss => "resident memory",
        _ => "memory in use",
    };
    let out = outliers(verdicts);
    let (outliers, others): (Vec<_>, Vec<_>) = verdicts.iter().partition(|(rank, _)| out.contains(rank));
    let unit = unit_name(first.unit);
    let rates = |some: &[_]| range(some, |verdict| verdict.bytes_per_unit, Bytes::signed);
    if outliers.is_empty() {
        let last = range(verdicts, |verdict| verdict.last, |bytes| Bytes(bytes as u64).to_string());
        return format!("{count} ranks, alike: {what} moves by {} per {unit}, to {last}", rates(verdicts));
    }
    let stand = if outliers.len() == 1 { "stands" } else { "stand" };
    format!(
        "of {count} ranks, {} {stand} out: {what} grows by {} per {unit} there, and moves by {} in the others. Look at what is \
         done there alone: logging, validation, checkpoints, or a part of the data",
        names(&outliers),
        rates(&outliers),
        rates(&others)
    )
}

/// Ranks that grow where most do not, or far faster than the middle one.
fn outliers(verdicts: &[(u32, &Verdict)]) -> Vec<u32> {
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

fn names(ranks: &[(u32, &Verdict)]) -> String {
    let named: Vec<String> = ranks.iter().take(NAMED).map(|(rank, _)| format!("rank {rank}")).collect();
    match ranks.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn range(verdicts: &[(u32, &Verdict)], of: fn(&Verdict) -> f64, write: fn(f64) -> String) -> String {
    let figures = || verdicts.iter().map(|(_, verdict)| of(verdict));
    let [low, high] = [figures().fold(f64::INFINITY, f64::min), figures().fold(f64::NEG_INFINITY, f64::max)];
    let [low, high] = [low, high].map(write);
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(megabytes: f64) -> Verdict {
        let state = if megabytes > 1.0 { State::Grows } else { State::Flat };
        crate::verdicts::tests::verdict(state, megabytes * 1_048_576.0)
    }

    fn check(megabytes: &[f64], expected: &str) {
        let verdicts: Vec<Verdict> = megabytes.iter().copied().map(verdict).collect();
        let text = told(&(0..).zip(&verdicts).collect::<Vec<_>>());
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
