//! What lasts: tensors and arrays that were made between two censuses and are alive at the third, and through what they
//! are reached.
//!
//! Containers tell how long they get, and trial deletion what dies with an element. Both are silent where elements are in
//! a web of references (coroutines, callbacks that refer to everything), and where no container gets longer: chains of
//! objects, and tuples, lists and dicts that are bound anew. The bytes that last are followed instead: from a sample
//! of them, each as likely as it is large, what leads to how many of them is told.

use std::time::Duration;

use caulk_wire::{ContainerKind, Holder, Trait};
use pyo3::prelude::*;

use crate::census::Tracker;
use crate::chain;
use crate::heap::{Address, AddressMap, AddressSet, Heap, Shape, type_address};
use crate::holders::{self, Path};
use crate::label;
use crate::replaced::size_of;
use crate::suspects::{Place, Suspects};
use crate::tee;
use crate::torch::Torch;

/// Objects that are searched for.
const SEARCHED: u64 = 32;
/// CPU time for the search.
const TIME_LIMIT: Duration = Duration::from_millis(40);
/// Nodes of a path that are looked at: what was made first lies at the end of a chain.
const LONGEST_PATH: usize = 256;
/// Bytes that must last before anything is searched for.
const WORTH: u64 = 256 << 10;
/// Shortest tuple that is taken for one that is bound anew and longer each time, and shortest list, dict or set that is.
const SHORTEST: u64 = 16;
const SHORTEST_NEW: u64 = 4;
/// Nodes of one path that may lead to what lasts: which of these grows, their lengths tell.
const MOST_LEADS: usize = 3;

/// What leads to so many of the bytes that last.
pub(crate) struct Kept {
    pub(crate) by: By,
    pub(crate) bytes: u64,
}

/// What leads to something that lasts.
pub(crate) enum By {
    /// A container that is followed.
    Container(Address),
    /// Something that is no container, or is bound anew.
    Named(Box<Named>),
}

/// What grows under a name.
pub(crate) struct Named {
    pub(crate) holder: Holder,
    pub(crate) place: Place,
    pub(crate) kind: ContainerKind,
    pub(crate) type_name: String,
    pub(crate) length: u64,
    /// Facts of its elements.
    pub(crate) traits: Vec<Trait>,
}

/// What a look has found.
#[derive(Default)]
pub(crate) struct Look {
    pub(crate) kept: Vec<Kept>,
    /// What was searched for.
    pub(crate) picked: Vec<Address>,
}

/// Tells what leads to these. `elders` are some that were searched for before, and have lasted longer: a chain that gets few
/// links is only seen as one on the way to them.
pub(crate) fn look<'py>(
    heap: &mut Heap<'py>,
    lasting: Vec<Bound<'py, PyAny>>,
    elders: Vec<Bound<'py, PyAny>>,
    suspects: &Suspects,
    tracker: &Tracker,
) -> Look {
    let sized = sizes(heap, &lasting);
    let total: u64 = sized.iter().map(|(_, size)| size).sum();
    if total < WORTH {
        return Look::default();
    }
    let picked = spread(&sized, total / SEARCHED);
    let targets: AddressSet = picked.iter().map(|(object, _)| *object).collect();
    let older: AddressSet = elders.iter().map(|object| object.as_ptr() as Address).collect();
    heap.keep(targets.union(&older).copied());
    drop((lasting, elders));
    let paths = holders::find_beginnings(heap, &targets, &older, LONGEST_PATH, TIME_LIMIT);
    let mut heads = Vec::new();
    for path in older.iter().filter_map(|elder| paths.get(elder)) {
        Head::find(heap, path, suspects, &mut heads);
    }
    // What was looked at and is nothing to be told of is remembered too.
    let mut known: Vec<((Address, ContainerKind), Option<Kept>)> = Vec::new();
    for (object, bytes) in &picked {
        let Some(path) = paths.get(object) else { continue };
        for leads in leads(heap, path, &heads, suspects, tracker) {
            let key = (path.nodes[leads.at], leads.as_what.kind());
            if let Some((_, kept)) = known.iter_mut().find(|(known, _)| *known == key) {
                if let Some(kept) = kept {
                    kept.bytes += bytes;
                }
            } else {
                let by = describe(heap, path, &leads, &heads);
                known.push((key, by.map(|by| Kept { by, bytes: *bytes })));
            }
        }
    }
    let kept = known.into_iter().filter_map(|(_, kept)| kept).collect();
    Look { kept, picked: targets.into_iter().collect() }
}

/// Where a chain begins that was found on the way to something older.
struct Head {
    object: Address,
    /// The name by which a link refers to the next.
    link: String,
}

impl Head {
    fn find(heap: &mut Heap<'_>, path: &Path, suspects: &Suspects, heads: &mut Vec<Self>) {
        if path.nodes.iter().any(|node| suspects.is_container(*node)) {
            return;
        }
        let Some((at, steps)) = chain::on(heap, path, chain::FEW_LINKS) else { return };
        let object = path.nodes[at];
        if heads.iter().all(|head| head.object != object) {
            heads.push(Self { object, link: link_name(heap, path, at + steps) });
        }
    }
}

/// The node of a path that leads to what lasts.
struct Leads {
    at: usize,
    as_what: Role,
}

enum Role {
    /// A container that is followed.
    Followed,
    /// The head of a chain, with the steps from link to link if it is known from this path.
    Chain(Option<usize>),
    /// What is bound anew, with its length.
    Anew(ContainerKind, u64),
    /// An iterator of `itertools.tee`, with the elements that wait for it.
    Tee(u64),
}

impl Role {
    fn kind(&self) -> ContainerKind {
        match self {
            Self::Followed => ContainerKind::List,
            Self::Chain(_) => ContainerKind::Chain,
            Self::Tee(_) => ContainerKind::Queue,
            Self::Anew(kind, _) => *kind,
        }
    }
}

/// A container, or else whatever may be one: which of these grows, their lengths tell.
fn leads(
    heap: &mut Heap<'_>,
    path: &Path,
    heads: &[Head],
    suspects: &Suspects,
    tracker: &Tracker,
) -> Vec<Leads> {
    let followed = path.nodes.iter().rposition(|node| suspects.is_container(*node));
    let split = path.nodes.iter().rposition(|node| heap.type_of(*node).shape == Shape::Tee);
    if let Some(at) = split.filter(|at| followed.is_none_or(|followed| followed < *at))
        && let Some(waiting) = tee::waiting(heap, path.nodes[at])
    {
        return vec![Leads { at, as_what: Role::Tee(waiting) }];
    }
    if let Some(at) = followed {
        return vec![Leads { at, as_what: Role::Followed }];
    }
    let is_head = |node: &Address| heads.iter().any(|head| head.object == *node);
    let chain = match chain::on(heap, path, chain::LINKS) {
        Some((at, steps)) => Some((at, Some(steps))),
        None => path.nodes.iter().position(is_head).map(|at| (at, None)),
    };
    let mut leads: Vec<Leads> =
        chain.into_iter().map(|(at, steps)| Leads { at, as_what: Role::Chain(steps) }).collect();
    for at in 0..path.nodes.len() {
        if leads.len() >= MOST_LEADS {
            break;
        }
        if let Some((kind, length)) = bound_anew(heap, path, at, tracker) {
            leads.push(Leads { at, as_what: Role::Anew(kind, length) });
        }
    }
    leads
}

fn describe(heap: &mut Heap<'_>, path: &Path, Leads { at, as_what }: &Leads, heads: &[Head]) -> Option<By> {
    let object = path.nodes[*at];
    let mut traits = vec![Trait::Tensor];
    let length = match as_what {
        Role::Followed => return Some(By::Container(object)),
        Role::Anew(_, length) | Role::Tee(length) => *length,
        Role::Chain(steps) => {
            let known = || heads.iter().find(|head| head.object == object).map(|head| head.link.clone());
            let link =
                steps.map_or_else(|| known().unwrap_or_default(), |steps| link_name(heap, path, at + steps));
            traits.push(Trait::Link(link));
            chain::length(heap, object)?
        }
    };
    let kind = as_what.kind();
    let mut way = path.up_to(*at);
    if matches!(as_what, Role::Chain(_)) {
        // Where an object keeps its end, a local variable is but another name for that.
        let stored = holders::find_stored(heap, &AddressMap::from_iter([(object, way.clone())]));
        way = stored.into_values().next().unwrap_or(way);
    }
    let label = label::describe(heap, &way);
    let place = Place::new(label.owner, &label.holder);
    let named =
        Named { place, holder: label.holder, kind, type_name: heap.type_name(object), length, traits };
    (!named.holder.name.is_empty()).then(|| By::Named(Box::new(named)))
}

/// The chain that begins on this path, with the number of its links.
pub(crate) fn chain_on(heap: &mut Heap<'_>, path: &Path) -> Option<Named> {
    let (at, steps) = chain::on(heap, path, chain::LINKS)?;
    match describe(heap, path, &Leads { at, as_what: Role::Chain(Some(steps)) }, &[])? {
        By::Named(named) => Some(*named),
        By::Container(_) => None,
    }
}

fn link_name(heap: &mut Heap<'_>, path: &Path, next: usize) -> String {
    label::describe(heap, &path.up_to(next)).holder.name
}

/// Elements of a tuple, or of a list, dict or set with a name of its own that was not there in the census before, that is
/// long enough to be a history.
fn bound_anew(
    heap: &mut Heap<'_>,
    path: &Path,
    at: usize,
    tracker: &Tracker,
) -> Option<(ContainerKind, u64)> {
    let object = path.nodes[at];
    let shape = heap.type_of(object).shape;
    let shortest = match shape {
        Shape::Tuple => SHORTEST,
        Shape::List | Shape::Dict | Shape::Set if tracker.is_new(object, type_address(object)) => {
            SHORTEST_NEW
        }
        _ => return None,
    };
    let length = heap.length(object)? as u64;
    (length >= shortest && label::is_named(heap, path, at)).then_some((shape.kind(), length))
}

/// The objects with their bytes, in the order of their addresses; none whose bytes lie on a GPU.
fn sizes<'py>(heap: &mut Heap<'py>, objects: &[Bound<'py, PyAny>]) -> Vec<(Address, u64)> {
    let size = |object: &Bound<'py, PyAny>| {
        let bytes = size_of(heap, object)?;
        let elsewhere = heap.is_plain_tensor(object) && Torch::is_cuda(object);
        (!elsewhere).then(|| (object.as_ptr() as Address, bytes))
    };
    let mut sized: Vec<(Address, u64)> = objects.iter().filter_map(size).collect();
    sized.retain(|(_, size)| *size > 0);
    sized.sort_unstable();
    sized
}

/// Objects at equal distances along all bytes, with the bytes that each of them stands for.
fn spread(sized: &[(Address, u64)], distance: u64) -> Vec<(Address, u64)> {
    let mut picked: Vec<(Address, u64)> = Vec::new();
    let (mut before, mut next) = (0, distance / 2);
    for (object, size) in sized {
        before += size;
        while next < before {
            match picked.last_mut() {
                Some((last, bytes)) if last == object => *bytes += distance,
                _ => picked.push((*object, distance)),
            }
            next += distance.max(1);
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn what_is_picked_stands_for_all_bytes() {
        let sized: Vec<(usize, u64)> = (1..=100).map(|at| (at, if at == 7 { 901 } else { 1 })).collect();
        let picked = spread(&sized, 1000 / 10);
        assert_eq!(picked.iter().map(|(_, bytes)| bytes).sum::<u64>(), 1000);
        assert_eq!(picked.iter().find(|(at, _)| *at == 7), Some(&(7, 900)));
        assert!(picked.len() == 2, "{picked:?}");
        assert!(spread(&[], 10).is_empty());
    }
}
