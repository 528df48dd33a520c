//! Which of some objects nothing outside refers to: trial deletion over a side table.
//!
//! It holds for any set of objects, so that more may be taken in where it serves: what is referred to by these alone, or
//! nearly so, is taken to have been made with them, whatever lived at its address before (a figure that is drawn anew is
//! made of the memory of the one before).

use std::time::Duration;

use crate::heap::{Address, AddressMap, Heap};
use crate::stopwatch::Stopwatch;

/// CPU time for the trial, which is looked at after so many references.
const TIME_LIMIT: Duration = Duration::from_millis(60);
const REFERENCES_PER_LOOK: usize = 1 << 14;
/// References that an object may lack and is taken in all the same: it may be in a cycle with another one that is.
const LACKING: usize = 2;
/// Objects that are taken in: as many as there were, and so many more.
const MOST_TAKEN_IN: usize = 1 << 10;
/// Others that are noted because the objects refer to them.
const MOST_BESIDE: usize = 1 << 16;

/// References to objects that do not come from among them.
pub(super) struct Trial<'h, 'py> {
    heap: &'h mut Heap<'py>,
    objects: Vec<Address>,
    index: AddressMap<u32>,
    outside: Vec<usize>,
    /// Others that the collector knows, and how often the objects refer to each; those met since the last were taken in.
    beside: AddressMap<usize>,
    met: Vec<Address>,
    /// Objects whose references are accounted for, and references met since the time was looked at.
    counted: usize,
    references: usize,
    started: Stopwatch,
}

impl<'h, 'py> Trial<'h, 'py> {
    /// Those that would be freed; `None` where it takes too long to tell.
    pub(super) fn dead(heap: &'h mut Heap<'py>, among: &[Address]) -> Option<Vec<Address>> {
        let mut trial = Self {
            heap,
            objects: Vec::new(),
            index: AddressMap::default(),
            outside: Vec::new(),
            beside: AddressMap::default(),
            met: Vec::new(),
            counted: 0,
            references: 0,
            started: Stopwatch::start(),
        };
        trial.index.try_reserve(among.len()).ok()?;
        for object in among {
            trial.take_in(*object, 0);
        }
        if !trial.count() {
            return None;
        }
        // What is taken in and not accounted for any more counts as from outside: at worst garbage is missed.
        let most = 2 * among.len() + MOST_TAKEN_IN;
        while trial.widen(most) && trial.count() {}
        trial.spread();
        let left = trial.objects.iter().zip(&trial.outside);
        Some(left.filter(|(_, left)| **left == 0).map(|(object, _)| *object).collect())
    }

    /// One more object, to which those before refer so often.
    fn take_in(&mut self, object: Address, known: usize) {
        self.index.insert(object, self.objects.len() as u32);
        self.objects.push(object);
        self.outside.push(self.heap.references(object).saturating_sub(known));
    }

    /// Accounts for the references of the objects that were taken in; false where there is no time left.
    fn count(&mut self) -> bool {
        let mut others = Vec::new();
        while let Some(&object) = self.objects.get(self.counted) {
            if self.is_out_of_time() {
                return false;
            }
            self.counted += 1;
            let Self { heap, index, outside, references, .. } = self;
            heap.counted_referents(object, &mut |referent| {
                *references += 1;
                match index.get(&referent) {
                    Some(at) => outside[*at as usize] = outside[*at as usize].saturating_sub(1),
                    None => others.push(referent),
                }
            });
            for other in others.drain(..) {
                if self.heap.type_of(other).collected && self.beside.len() < MOST_BESIDE {
                    *self.beside.entry(other).or_default() += 1;
                    self.met.push(other);
                }
            }
        }
        true
    }

    fn is_out_of_time(&mut self) -> bool {
        if self.references < REFERENCES_PER_LOOK {
            return false;
        }
        self.references = 0;
        self.started.work() > TIME_LIMIT
    }

    /// Takes in what (nearly) all references to come from the objects, up to so many in all; false where there is nothing.
    fn widen(&mut self, most: usize) -> bool {
        let before = self.objects.len();
        for object in std::mem::take(&mut self.met) {
            let Some(&count) = self.beside.get(&object) else { continue };
            if self.objects.len() < most && self.heap.references(object) <= count + LACKING {
                self.beside.remove(&object);
                self.take_in(object, count);
            }
        }
        self.objects.len() > before
    }

    /// What is reached from outside keeps what it refers to.
    fn spread(&mut self) {
        let Self { heap, objects, index, outside, .. } = self;
        let mut stack: Vec<u32> = (0..objects.len() as u32).filter(|at| outside[*at as usize] > 0).collect();
        while let Some(at) = stack.pop() {
            heap.referents(objects[at as usize], &mut |referent| {
                if let Some(next) = index.get(&referent)
                    && outside[*next as usize] == 0
                {
                    outside[*next as usize] = 1;
                    stack.push(*next);
                }
            });
        }
    }
}
