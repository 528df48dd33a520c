//! Chains: objects of one type, each of which refers to the one before it (`self.last = Step(prev=self.last)`).
//!
//! No container gets longer and no object is replaced by a larger one; what grows is the number of links behind a name.

use std::time::Duration;

use crate::heap::{Address, AddressSet, Heap, Shape, type_address};
use crate::holders::{Path, Root};
use crate::stopwatch::Stopwatch;

/// Links in a row that make a chain, on the path to something.
pub(crate) const LINKS: usize = 4;
/// The same on the path to what has lasted longer, which is told of only where what is new is reached by it too.
pub(crate) const FEW_LINKS: usize = 3;
/// Steps of a path from one link to the next: the object, its dict, a tuple in it.
const MOST_STEPS: usize = 3;
/// CPU time for counting links, which is looked at after so many references.
const TIME_LIMIT: Duration = Duration::from_millis(8);
const REFERENCES_PER_LOOK: usize = 1 << 12;

/// Where on a path a chain of so many links begins, and the steps from its first link to the next: not all links need have
/// as many, since only some objects have a dict of their own.
pub(crate) fn on(heap: &mut Heap<'_>, path: &Path, links: usize) -> Option<(usize, usize)> {
    let types: Vec<Address> = path.nodes.iter().map(|node| type_address(*node)).collect();
    let next = |at: &usize| {
        let near = &types[at + 1..types.len().min(at + 1 + MOST_STEPS)];
        near.iter().position(|other| *other == types[*at]).map(|steps| at + 1 + steps)
    };
    // The first node of a module's path is its namespace.
    let first = usize::from(matches!(path.root, Root::Module(_)));
    let is_long = |at: &usize| std::iter::successors(Some(*at), next).take(links).count() == links;
    let mut starts = (first..types.len()).filter(is_long);
    let start = starts.find(|at| is_link(heap, path.nodes[*at]))?;
    Some((start, next(&start)? - start))
}

/// Rows and the like are nested to a fixed depth; a link is an object or, as in lists of Lisp, a tuple.
fn is_link(heap: &mut Heap<'_>, object: Address) -> bool {
    matches!(heap.type_of(object).shape, Shape::Plain | Shape::Tuple | Shape::Function | Shape::Exception)
}

/// Objects of the type of `head` that are reached from it through nothing else but what they keep themselves; `None` where
/// there are too many to be counted.
pub(crate) fn length(heap: &mut Heap<'_>, head: Address) -> Option<u64> {
    let started = Stopwatch::start();
    let link_type = type_address(head);
    let mut links = AddressSet::from_iter([head]);
    let mut open = vec![head];
    let mut children = Vec::new();
    let mut references = 0;
    while let Some(link) = open.pop() {
        let mut owners = vec![link];
        for _ in 0..MOST_STEPS {
            for owner in std::mem::take(&mut owners) {
                heap.referents(owner, &mut |child| children.push(child));
            }
            references += children.len() + 1;
            if references >= REFERENCES_PER_LOOK {
                references = 0;
                if started.work() > TIME_LIMIT {
                    return None;
                }
            }
            for child in children.drain(..) {
                if type_address(child) == link_type {
                    if links.insert(child) {
                        open.push(child);
                    }
                } else if is_between(heap, child) {
                    owners.push(child);
                }
            }
        }
    }
    Some(links.len() as u64)
}

/// May it be a step from link to link: an object that a link keeps for itself?
fn is_between(heap: &mut Heap<'_>, object: Address) -> bool {
    let info = heap.type_of(object);
    let closed =
        matches!(info.shape, Shape::Module | Shape::Type | Shape::Code | Shape::Frame | Shape::Tensor);
    info.collected && !closed && heap.references(object) == 1
}
