//! Where tables by open addressing look for a key: first among a few places that lie together.
//!
//! Each worker of a `DataLoader` starts with empty tables and soon ends: hashed over the whole of them, its few hundred keys
//! would touch nearly as many pages, and each page costs the worker a fault.

/// Places that are tried first.
const NEAR: usize = 1 << 10;
/// How many of them are looked at for one key.
const NEAR_PROBES: usize = 8;

/// Places of a table that has room for `wide` keys, those that are tried first included.
pub(crate) const fn places(wide: usize) -> usize {
    NEAR + wide
}

/// The places for a key in a table with room for `WIDE` keys, in the order in which they are looked at; beyond those that
/// are tried first, `most`. A place that was never used ends the search.
pub(crate) fn probes<const WIDE: usize>(key: u64, most: usize) -> impl Iterator<Item = usize> {
    let key = key as usize;
    let near = (0..NEAR_PROBES).map(move |step| key.wrapping_add(step) % NEAR);
    // The bits above those that chose among the near places.
    let far = (0..most.min(WIDE)).map(move |step| NEAR + (key / NEAR + step) % WIDE);
    near.chain(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_lie_together_and_all_places_are_reached() {
        let mut seen = vec![false; places(4096)];
        for key in (0..NEAR).chain((0..4096).map(|place| place * NEAR)) {
            for place in probes::<4096>(key as u64, 1).take(NEAR_PROBES + 1) {
                seen[place] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen));
        assert!(probes::<4096>(u64::MAX, 128).take(NEAR_PROBES).all(|place| place < NEAR));
        assert!(probes::<4096>(u64::MAX, 128).all(|place| place < places(4096)));
    }
}
