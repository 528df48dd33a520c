//! Chains: objects of one type, each of which refers to the one before it (`self.last = Step(prev=self.last)`).
//!
//! No container gets longer and no object is replaced by a larger one; what grows is the number of links behind a name.

use std::time::Duration;

use crate::budget::thread_time;
use crate::heap::{Address, AddressSet, Heap, Shape, type_address};

/// Links in a row that make a chain, on a path.
const LINKS: usize = 4;
/// Steps of a path from one link to the next: the object, its dict, a tuple in it.
const MOST_STEPS: usize = 3;
/// Links counted, and CPU time for that.
const MOST_LINKS: usize = 100_000;
const TIME_LIMIT: Duration = Duration::from_millis(10);

/// Where on a path a chain begins, and the steps from one of its links to the next.
pub(crate) fn on(heap: &mut Heap<'_>, nodes: &[Address]) -> Option<(usize, usize)> {
    let types: Vec<Address> = nodes.iter().map(|node| type_address(*node)).collect();
    (1..=MOST_STEPS).find_map(|steps| {
        let repeats = |at: usize| types[at] == types[at + steps];
        let last = types.len().checked_sub(LINKS * steps)?;
        let begins = |at: &usize| (*at..*at + (LINKS - 1) * steps).all(repeats);
        // The namespace of a module is a dict, too, and dicts in dicts are no chain.
        let starts = (1..=last).filter(begins);
        starts.filter(|at| is_link(heap, nodes[*at])).map(|at| (at, steps)).next()
    })
}

/// Rows and the like are nested to a fixed depth; a link is an object or, as in lists of Lisp, a tuple.
fn is_link(heap: &mut Heap<'_>, object: Address) -> bool {
    matches!(heap.type_of(object).shape, Shape::Plain | Shape::Tuple | Shape::Function | Shape::Exception)
}

/// Objects of the type of `head` that are reached from it through nothing else but what they keep themselves.
pub(crate) fn length(heap: &mut Heap<'_>, head: Address) -> u64 {
    let started = thread_time();
    let link_type = type_address(head);
    let mut links = AddressSet::from_iter([head]);
    let mut open = vec![head];
    let mut children = Vec::new();
    while let Some(link) = open.pop() {
        let late = links.len().is_multiple_of(1 << 10) && thread_time().saturating_sub(started) > TIME_LIMIT;
        if links.len() >= MOST_LINKS || late {
            break;
        }
        let mut owners = vec![link];
        for _ in 0..MOST_STEPS {
            for owner in std::mem::take(&mut owners) {
                heap.referents(owner, &mut |child| children.push(child));
            }
            for child in children.drain(..) {
                if type_address(child) == link_type {
                    if links.insert(child) {
                        open.push(child);
                    }
                } else if matches!(heap.type_of(child).shape, Shape::Dict | Shape::Tuple | Shape::List)
                    && heap.references(child) == 1
                {
                    owners.push(child);
                }
            }
        }
    }
    links.len() as u64
}
