//! Places of estimated amounts: what sampling cannot tell apart shares one, and no choice is made within one.

use crate::Sampled;

/// Gives places from 1 by an amount, the largest first; what sampling cannot tell from the first of a place shares it.
pub fn rank<T>(all: &mut [T], amount: impl Fn(&T) -> Sampled, mut set: impl FnMut(&mut T, u32)) {
    all.sort_by(|a, b| amount(b).bytes.total_cmp(&amount(a).bytes));
    let (mut rank, mut first) = (1, all.first().map_or_else(Sampled::default, &amount));
    for (place, one) in (1..).zip(all.iter_mut()) {
        if first.exceeds(amount(one)) {
            (rank, first) = (place, amount(one));
        }
        set(one, rank);
    }
}

/// Those of the first places, about so many. Where those of the next place do not all fit, all of them are left out; those of
/// the first place always stay.
pub fn first_places<T>(mut rows: Vec<T>, rank: impl Fn(&T) -> u32, most: usize) -> Vec<T> {
    let ranks: Vec<u32> = rows.iter().map(&rank).collect();
    let first = ranks.iter().copied().min();
    let up_to = |place: u32| ranks.iter().filter(|rank| **rank <= place).count();
    rows.retain(|row| Some(rank(row)) == first || up_to(rank(row)) <= most);
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
        let first = first_places(all, |one| one.1, 2);
        assert_eq!(first.iter().map(|one| one.0).collect::<Vec<_>>(), kept);
    }

    #[test]
    fn what_cannot_be_told_apart_is_kept_together_or_not_at_all() {
        check(&[], &[], &[]);
        check(&[[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]], &[1, 2, 3], &[1, 2]);
        // The second place is shared by two, of which one alone would fit.
        check(&[[90.0, 10.0], [200.0, 1.0], [95.0, 10.0]], &[1, 2, 2], &[1]);
        // The first place stays, however many share it.
        check(&[[9.0, 9.0], [9.0, 9.0], [8.0, 9.0], [0.0, 0.0]], &[1, 1, 1, 1], &[0, 1, 2, 3]);
    }
}
