//! Places of estimated amounts: what sampling cannot tell apart shares one, and no choice is made within one.

use std::ops::RangeInclusive;

use crate::Sampled;

/// Gives places from 1 by an amount, the largest first. A new one begins where everything before surely exceeds everything
/// from there on: no two of different places are closer than what sampling can tell.
pub fn rank<T>(all: &mut [T], amount: impl Fn(&T) -> Sampled, mut set: impl FnMut(&mut T, u32)) {
    all.sort_by(|a, b| amount(b).bytes.total_cmp(&amount(a).bytes));
    let amounts: Vec<Sampled> = all.iter().map(amount).collect();
    let (mut rank, mut last) = (0, None::<usize>);
    for (at, one) in all.iter_mut().enumerate() {
        if last.is_none_or(|last| last < at) {
            rank = at as u32 + 1;
        }
        // The last that cannot be told from one of this place belongs to it, and so does what lies between.
        let beyond = last.map_or(at, |last| last.max(at)) + 1;
        let close = amounts.iter().skip(beyond).rposition(|other| !amounts[at].exceeds(*other));
        last = Some(close.map_or(beyond - 1, |close| beyond + close));
        set(one, rank);
    }
}

/// Those of the first places, so `many` or about so many. Where those of the next place do not all fit, all of them are left
/// out, unless there are fewer than the least; those of the first place always stay.
pub fn first_places<T>(mut rows: Vec<T>, rank: impl Fn(&T) -> u32, many: RangeInclusive<usize>) -> Vec<T> {
    let ranks: Vec<u32> = rows.iter().map(&rank).collect();
    let first = ranks.iter().copied().min();
    let count = |fits: &dyn Fn(u32) -> bool| ranks.iter().filter(|rank| fits(**rank)).count();
    let stays = |place: u32| {
        count(&|other| other <= place) <= *many.end() || count(&|other| other < place) < *many.start()
    };
    rows.retain(|row| Some(rank(row)) == first || stays(rank(row)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(amounts: &[[f64; 2]], places: &[u32], kept: &[usize]) {
        let amount = |index: &(usize, u32)| {
            let [bytes, deviation] = amounts[index.0];
            Sampled { bytes, deviation }
        };
        let mut all: Vec<(usize, u32)> = (0..amounts.len()).map(|index| (index, 0)).collect();
        rank(&mut all, amount, |one, place| one.1 = place);
        assert_eq!(all.iter().map(|one| one.1).collect::<Vec<_>>(), places);
        let first = first_places(all.clone(), |one| one.1, 1..=2);
        assert_eq!(first.iter().map(|one| one.0).collect::<Vec<_>>(), kept);
        assert_eq!(first_places(all, |one| one.1, amounts.len()..=amounts.len()).len(), amounts.len());
    }

    #[test]
    fn what_cannot_be_told_apart_is_kept_together_or_not_at_all() {
        check(&[], &[], &[]);
        check(&[[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]], &[1, 2, 3], &[1, 2]);
        // The second place is shared by two, of which one alone would fit.
        check(&[[90.0, 10.0], [200.0, 1.0], [95.0, 10.0]], &[1, 2, 2], &[1]);
        // Neighbours that cannot be told apart, one after another: the first and the last can, and share the place.
        check(&[[100.0, 5.0], [90.0, 5.0], [85.0, 5.0], [10.0, 1.0]], &[1, 1, 1, 4], &[0, 1, 2]);
        // What is least sure may be as much as what comes long before it.
        check(&[[100.0, 0.0], [95.0, 0.0], [94.0, 50.0]], &[1, 1, 1], &[0, 1, 2]);
        check(&[[100.0, 0.0], [95.0, 0.0], [60.0, 20.0]], &[1, 2, 2], &[0]);
        // The first place stays, however many share it.
        check(&[[9.0, 9.0], [9.0, 9.0], [8.0, 9.0], [0.0, 0.0]], &[1, 1, 1, 1], &[0, 1, 2, 3]);
    }
}
