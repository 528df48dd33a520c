//! How much a census looks at: every reference, or those alone that may have changed since the census before.

use std::time::Duration;

use crate::heap::{Address, AddressTypes};

/// How much of the heap a census looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All that containers and instances refer to.
    Whole,
    /// The lengths of what the collector tracks, and what is behind that which has changed or held untracked referents before: half
    /// the cost.
    Changed,
}

/// A census that takes longer than this, in CPU time of the thread, is given up.
const LONGEST_WHOLE: Duration = Duration::from_millis(200);
/// The same of one that cannot be made cheaper: some ten million objects.
const LONGEST_CHANGED: Duration = Duration::from_millis(600);

impl Depth {
    /// What an ordinary machine takes to look at so many objects and references: the usual figures of a process with torch
    /// on two cores of a shared server, where most of it is waiting for memory. References lie closer together than objects.
    pub(super) fn typical(self, looks: u64) -> Duration {
        Duration::from_nanos(looks * if self == Self::Whole { 60 } else { 75 })
    }

    pub(super) fn longest(self) -> Duration {
        match self {
            Self::Whole => LONGEST_WHOLE,
            Self::Changed => LONGEST_CHANGED,
        }
    }
}

/// What censuses have cost lately, each with the number of pymalloc's blocks then.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Costs {
    whole: Option<(Duration, u64)>,
    changed: Option<(Duration, u64)>,
}

/// What one that looks at everything costs, in times of one that does not, until both are known.
const TIMES: u32 = 2;

impl Costs {
    /// What the next one is taken to cost: as much as the last one, by the size of the heap.
    pub(crate) fn expected(&self, depth: Depth, blocks: u64) -> Option<Duration> {
        let now = |(cost, before): (Duration, u64)| cost.mul_f64(blocks as f64 / before.max(1) as f64);
        let (whole, changed) = (self.whole.map(now), self.changed.map(now));
        match depth {
            Depth::Whole => whole.or(changed.map(|cost| cost * TIMES)),
            Depth::Changed => changed.or(whole.map(|cost| cost / TIMES)),
        }
    }

    /// The cost of the last one by lengths alone, or else of the last whole one.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.changed.or(self.whole).map(|(cost, _)| cost)
    }

    /// Takes in what one has cost, or is taken to cost from now on.
    pub(crate) fn learn(&mut self, depth: Depth, cost: Duration, blocks: u64) {
        let of_depth = match depth {
            Depth::Whole => &mut self.whole,
            Depth::Changed => &mut self.changed,
        };
        *of_depth = Some((cost, blocks));
    }
}

/// What holds referents that the collector does not track.
#[derive(Default)]
pub(super) struct Owners {
    known: AddressTypes,
    /// A bit for each of them, several for one: what is none of them mostly shows here, in few cache lines.
    marks: Vec<u64>,
    /// Whatever may hold some is looked into.
    all: bool,
}

impl Owners {
    /// Everything is looked into.
    pub(super) fn of_all() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// Those that are known are looked into.
    pub(super) fn of_known(self) -> Self {
        Self { all: false, ..self }
    }

    /// Is this object to be looked into while the heap is walked?
    pub(super) fn are_asked(&self, object: Address, object_type: Address) -> bool {
        self.all || self.is_marked(object) && self.known.contains(object, object_type)
    }

    fn is_marked(&self, object: Address) -> bool {
        let (word, bit) = mark(object);
        self.marks.get(word).is_some_and(|marks| marks & bit != 0)
    }

    /// It holds some.
    pub(super) fn add(&mut self, object: Address, object_type: Address) {
        self.marks.resize(MARKS / 64, 0);
        let (word, bit) = mark(object);
        self.marks[word] |= bit;
        self.known.insert(object, object_type);
    }
}

/// Bits that mark owners: 16 KB.
const MARKS: usize = 1 << 17;

/// Word and bit of an object: Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4).
fn mark(object: Address) -> (usize, u64) {
    let hash = (object as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - MARKS.ilog2());
    (hash as usize / 64, 1 << (hash % 64))
}

/// Which censuses look at everything: the first two, then those at doubling distances.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Turns {
    taken: u32,
}

impl Turns {
    pub(super) fn next(self) -> Depth {
        if (self.taken + 1).is_power_of_two() { Depth::Whole } else { Depth::Changed }
    }

    pub(super) fn take(&mut self) {
        self.taken = self.taken.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_by_address_and_type() {
        let mut owners = Owners::default();
        owners.add(0x7f00_0000_0010, 0x9_5ac0);
        assert!(owners.are_asked(0x7f00_0000_0010, 0x9_5ac0));
        assert!(
            !owners.are_asked(0x7f00_0000_0010, 0x9_5c60) && !owners.are_asked(0x7f00_0000_0020, 0x9_5ac0)
        );
        assert!(Owners::of_all().are_asked(0x7f00_0000_0020, 0x9_5ac0));
    }

    #[test]
    fn everything_is_looked_at_ever_more_rarely() {
        let mut turns = Turns::default();
        let mut whole = Vec::new();
        for number in 1..=20 {
            if turns.next() == Depth::Whole {
                whole.push(number);
            }
            turns.take();
        }
        assert_eq!(whole, [1, 2, 4, 8, 16]);
    }
}
