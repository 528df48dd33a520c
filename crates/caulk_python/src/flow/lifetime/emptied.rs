//! Objects that a loop of the program empties again and again: between calls of a callback, too, which are in no loop of the
//! program's.

use rustc_hash::FxHashMap;

use crate::flow::heap::Maker;
use crate::flow::ids::ObjectId;
use crate::flow::run::Run;
use crate::project::Location;

/// Owners of owners that are asked for.
const MOST_OWNERS: usize = 4;

/// The objects, by where they are made.
#[derive(Debug, Default)]
pub(super) struct EmptiedAgain(FxHashMap<Location, Vec<ObjectId>>);

impl EmptiedAgain {
    pub(super) fn of(run: &Run, emptied: impl Iterator<Item = ObjectId>) -> Self {
        let mut found: FxHashMap<Location, Vec<ObjectId>> = FxHashMap::default();
        for id in emptied {
            if let Some(made) = run.heap.get(id).at {
                found.entry(made).or_default().push(id);
            }
        }
        Self(found)
    }

    /// Whether an object is one of them, or of the same line as one and the owner of either is not known.
    pub(super) fn includes(&self, run: &Run, object: ObjectId) -> bool {
        let made = run.heap.get(object).at.and_then(|made| self.0.get(&made));
        let same = |emptied: &ObjectId| {
            *emptied == object || !is_of_known(run, *emptied) || !is_of_known(run, object)
        };
        made.is_some_and(|emptied| emptied.iter().any(same))
    }
}

/// Whether a method of an object made an object, and some line of the program made that one in turn.
fn is_of_known(run: &Run, mut object: ObjectId) -> bool {
    for _ in 0..MOST_OWNERS {
        let Maker::Receiver(owner) = run.heap.get(object).maker else { break };
        let made = run.heap.get(owner);
        match made.maker {
            _ if made.at.is_none() => return false,
            Maker::Receiver(_) => object = owner,
            _ => return true,
        }
    }
    false
}
