//! What grows, told by comparing each census with the one before.

use std::collections::TryReserveError;

use super::depth::{Depth, Owners, Turns};
use super::found::{Census, Seen};
use crate::heap::{Address, type_address};

/// How one container has moved over the censuses.
#[derive(Debug, Clone, Copy)]
struct Track {
    address: Address,
    object_type: TypeMark,
    /// Lengths in the last censuses, newest first; 0 before it was met.
    history: [u32; HISTORY],
    first_len: u32,
    /// Censuses in which it was longer than before, newest in the lowest bit.
    grew: u32,
    seen: u8,
    /// It was not there in the census before.
    is_new: bool,
}

/// The part of a type's address in which types differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TypeMark(u32);

impl TypeMark {
    fn of(object_type: Address) -> Self {
        Self((object_type >> 4) as u32)
    }
}

/// Compares each census with the one before.
#[derive(Default)]
pub(crate) struct Tracker {
    /// By address.
    tracks: Vec<Track>,
    owners: Owners,
    turns: Turns,
}

/// A container that grew in at least two of its last three censuses, or every so many, and never shrank in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grown {
    pub(crate) seen: Seen,
    pub(crate) gained: usize,
    /// Of what grows every so many censuses, as caches and registries of libraries do too: how many censuses ago it was
    /// met first, and its length then.
    pub(crate) rare: Option<(u8, u32)>,
    /// Lengths in the last censuses, newest first; 0 before it was met.
    pub(crate) history: [u32; HISTORY],
}

/// Lengths kept for every container, so that a candidate's series begins before it became one.
pub(crate) const HISTORY: usize = 4;
/// Censuses that are told apart: of what was met before them nobody says when.
pub(crate) const MOST_CENSUSES: usize = u8::MAX as usize - 1;

/// Growing containers that are told of: the fastest.
const MOST_GROWN: usize = 4096;

/// How far back a growing container may have been seen: growth in two of three intervals makes a candidate.
const WINDOW: u32 = 0b111;

impl Track {
    fn after(before: Option<&Self>, seen: Seen, is_first: bool) -> Self {
        let object_type = TypeMark::of(type_address(seen.address));
        let len = u32::try_from(seen.len).unwrap_or(u32::MAX);
        let before = before.filter(|track| track.object_type == object_type);
        match before {
            // A shorter container starts anew: it is emptied or trimmed, or another one at the same address.
            Some(track) if len >= track.history[0] => {
                let mut history = [len; HISTORY];
                history[1..].copy_from_slice(&track.history[..HISTORY - 1]);
                let grew = (track.grew << 1) | u32::from(len > track.history[0]);
                Self { history, grew, seen: track.seen.saturating_add(1), is_new: false, ..*track }
            }
            _ => {
                let mut history = [0; HISTORY];
                history[0] = len;
                let is_new = before.is_none() && !is_first;
                Self { address: seen.address, object_type, history, first_len: len, grew: 0, seen: 1, is_new }
            }
        }
    }
}

impl Tracker {
    /// Takes the next census in, and returns what grows, fastest first.
    ///
    /// # Errors
    /// Where there is no memory; then it knows nothing.
    pub(crate) fn update(&mut self, census: &Census) -> Result<Vec<Grown>, TryReserveError> {
        let (containers, is_first) = (&census.containers, self.tracks.is_empty());
        self.follow(containers);
        if let Err(error) = self.tracks.try_reserve_exact(containers.len() - self.tracks.len()) {
            self.tracks = Vec::new();
            return Err(error);
        }
        self.add(containers, is_first);
        let mut grown = Vec::new();
        for (track, seen) in self.tracks.iter().zip(containers) {
            let is_rare = (track.grew & WINDOW).count_ones() < 2;
            if track.seen >= 3 && (!is_rare || grows_regularly(track.grew)) {
                let gained = (track.history[0] - track.first_len) as usize;
                let rare = is_rare.then_some((track.seen - 1, track.first_len));
                grown.push(Grown { seen: *seen, gained, rare, history: track.history });
            }
        }
        grown.sort_by_key(|grown| std::cmp::Reverse(grown.gained));
        grown.truncate(MOST_GROWN);
        Ok(grown)
    }

    /// How much the next census is to look at.
    pub(crate) fn depth(&self) -> Depth {
        self.turns.next()
    }

    /// What a census of this depth looks into, taken out.
    pub(super) fn owners_for(&mut self, depth: Depth) -> Owners {
        match depth {
            Depth::Whole => Owners::of_all(),
            Depth::Changed => std::mem::take(&mut self.owners).of_known(),
        }
    }

    /// What it found, for the next one; where it was to look at everything and did not, the next one is.
    pub(super) fn set_owners(&mut self, depth: Depth, owners: Owners) {
        if depth == Depth::Whole || self.depth() == Depth::Changed {
            self.turns.take();
        }
        self.owners = owners.of_known();
    }

    /// Those of these containers, by address, that were not there in the last census or had another length.
    pub(super) fn changed(&self, containers: &[Seen]) -> Vec<Address> {
        let mut known = self.tracks.iter().peekable();
        let is_changed = |seen: &&Seen| {
            while known.next_if(|track| track.address < seen.address).is_some() {}
            let before = known.next_if(|track| track.address == seen.address);
            before.is_none_or(|track| track.history[0] as usize != seen.len)
        };
        containers.iter().filter(is_changed).map(|seen| seen.address).collect()
    }

    /// Takes in the lengths of what is known, and forgets what is gone.
    fn follow(&mut self, containers: &[Seen]) {
        let mut rest = containers.iter().peekable();
        self.tracks.retain_mut(|track| {
            while rest.next_if(|seen| seen.address < track.address).is_some() {}
            let seen = rest.next_if(|seen| seen.address == track.address);
            if let Some(seen) = seen {
                *track = Track::after(Some(track), *seen, false);
            }
            seen.is_some()
        });
    }

    /// Adds what was not known, where there is room for it: from the end, so that nothing is in the way.
    fn add(&mut self, containers: &[Seen], is_first: bool) {
        let mut known = self.tracks.len();
        let Some(first) = containers.first() else { return };
        self.tracks.resize(containers.len(), Track::after(None, *first, is_first));
        for (at, seen) in containers.iter().enumerate().rev() {
            let last = known.checked_sub(1).map(|last| self.tracks[last]);
            self.tracks[at] = match last.filter(|track| track.address == seen.address) {
                Some(track) => {
                    known -= 1;
                    track
                }
                None => Track::after(None, *seen, is_first),
            };
        }
    }

    fn track(&self, address: Address) -> Option<&Track> {
        let at = self.tracks.binary_search_by_key(&address, |track| track.address).ok()?;
        self.tracks.get(at)
    }

    /// Is this a container that was not there in the census before the last?
    pub(crate) fn is_new(&self, address: Address, object_type: Address) -> bool {
        let is_its = |track: &Track| track.is_new && track.object_type == TypeMark::of(object_type);
        self.track(address).is_some_and(is_its)
    }

    /// Was there a container at this address in the last census?
    pub(crate) fn knows(&self, address: Address) -> bool {
        self.track(address).is_some()
    }

    /// Is this a container that was longer in the last census than in the one before?
    pub(crate) fn lengthened(&self, address: Address) -> bool {
        self.track(address).is_some_and(|track| track.seen >= 2 && track.history[0] > track.history[1])
    }
}

/// Did it get longer just now, and the two times before at about equal distances? A validation every fifth epoch adds to
/// a list so; what fills up when it is first used does not.
fn grows_regularly(grew: u32) -> bool {
    let [newest, before, oldest] = std::array::from_fn(|turn| {
        let rest = (0..turn).fold(grew, |rest, _| rest & rest.wrapping_sub(1));
        rest.trailing_zeros()
    });
    let (late, early) = (before.wrapping_sub(newest), oldest.wrapping_sub(before));
    newest == 0 && oldest < u32::BITS && late <= 2 * early && early <= 2 * late
}

#[cfg(test)]
mod tests {
    use super::grows_regularly;

    #[test]
    fn growth_every_so_many_censuses_is_regular() {
        for grew in [0b111, 0b1_0010_0100_1001, 0b1_00001_00001, 1 | 1 << 10 | 1 << 21] {
            assert!(grows_regularly(grew), "{grew:b}");
        }
        // Not just now, twice only, less and less often.
        for grew in [0, 0b1110, 0b1001, 0b1_1000_0001, u32::MAX << 1] {
            assert!(!grows_regularly(grew), "{grew:b}");
        }
    }
}
